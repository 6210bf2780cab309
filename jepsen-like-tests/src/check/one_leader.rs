//! Election safety: at most one leader in a term.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::evidence::LeaderSeen;

/// Looks for a term with two leaders.
pub fn check(leaders: &[LeaderSeen]) -> Vec<Finding> {
    let mut findings = Findings::of("one_leader");
    let mut by_term: BTreeMap<u64, u64> = BTreeMap::new();
    for seen in leaders {
        let first = *by_term.entry(seen.term).or_insert(seen.node);
        if first != seen.node {
            findings.violation(format!("term {}: node {first} and node {} both led", seen.term, seen.node));
        }
    }
    findings.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leader_a_term_passes() {
        let leaders = [(1, 1), (1, 1), (2, 3)].map(|(term, node)| LeaderSeen { term, node });
        assert_eq!(check(&leaders), vec![]);
    }

    #[test]
    fn two_leaders_in_a_term_are_found() {
        let leaders = [(1, 1), (1, 2)].map(|(term, node)| LeaderSeen { term, node });
        assert_eq!(check(&leaders).len(), 1);
    }
}
