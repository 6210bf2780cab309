//! Same revision, same command: what one node applied at an index or a revision, every node did.
//!
//! This is state machine safety. It also holds within one node: what it applies again after a
//! restart is what it applied before.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::applied::{AppliedEntry, NodeApplied};

/// Compares all nodes' entries, by log index and by revision.
pub fn check(nodes: &[NodeApplied]) -> Vec<Finding> {
    let mut findings = Findings::of("same_command");
    let mut by_index: BTreeMap<u64, (u64, &AppliedEntry)> = BTreeMap::new();
    let mut by_revision: BTreeMap<u64, (u64, u64, usize)> = BTreeMap::new();
    for node in nodes {
        for entry in &node.entries {
            let index = entry.header.index;
            let (first_node, first) = *by_index.entry(index).or_insert((node.node, entry));
            if let Some(difference) = difference(first, entry) {
                findings.violation(format!(
                    "index {index}: node {first_node} and node {} applied entries that differ in {difference}",
                    node.node
                ));
            }
            for at in 0..entry.commands.len() {
                let revision = entry.revision_before + at as u64 + 1;
                let (other, other_index, other_at) =
                    *by_revision.entry(revision).or_insert((node.node, index, at));
                if (other_index, other_at) != (index, at) {
                    findings.violation(format!(
                        "revision {revision}: node {other} has it at index {other_index}, position {other_at}, \
                         node {} at index {index}, position {at}",
                        node.node
                    ));
                }
            }
        }
    }
    findings.done()
}

fn difference(a: &AppliedEntry, b: &AppliedEntry) -> Option<&'static str> {
    if a.header.term != b.header.term {
        return Some("term");
    }
    if a.header != b.header {
        return Some("stamp or epoch bounds");
    }
    if a.revision_before != b.revision_before {
        return Some("revision");
    }
    (a.commands != b.commands).then_some("commands")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn equal_logs_pass_and_a_node_may_apply_again() {
        let entry = fixture::entry(5, 1, 0, &[7, 8]);
        let nodes = [fixture::node(1, vec![entry.clone(), entry.clone()]), fixture::node(2, vec![entry])];
        assert_eq!(check(&nodes), vec![]);
    }

    #[test]
    fn another_command_at_the_index_is_found() {
        let nodes = [
            fixture::node(1, vec![fixture::entry(5, 1, 0, &[7])]),
            fixture::node(2, vec![fixture::entry(5, 1, 0, &[8])]),
        ];
        assert!(check(&nodes)[0].detail.contains("commands"));
    }

    #[test]
    fn another_term_at_the_index_is_found() {
        let nodes = [
            fixture::node(1, vec![fixture::entry(5, 1, 0, &[7])]),
            fixture::node(2, vec![fixture::entry(5, 2, 0, &[7])]),
        ];
        assert!(check(&nodes)[0].detail.contains("term"));
    }

    #[test]
    fn the_same_revision_at_another_index_is_found() {
        let nodes = [
            fixture::node(1, vec![fixture::entry(5, 1, 0, &[7])]),
            fixture::node(2, vec![fixture::entry(6, 1, 0, &[7])]),
        ];
        assert!(check(&nodes)[0].detail.contains("revision 1"));
    }
}
