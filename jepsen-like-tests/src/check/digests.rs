//! Equal digests at equal revision, in everything the nodes applied and in their final audits.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::applied::NodeApplied;
use crate::evidence::NodeAudit;

/// Compares the digests. After an entry without commands the revision stands still while timer
/// work may have changed the book, so the key is (revision, index); an audit is compared with the
/// last entry of its revision.
pub fn check(nodes: &[NodeApplied], audits: &[NodeAudit]) -> Vec<Finding> {
    let mut findings = Findings::of("digests");
    let mut seen: BTreeMap<(u64, u64), (u64, u128)> = BTreeMap::new();
    for node in nodes {
        for entry in &node.entries {
            let key = (entry.revision_after(), entry.header.index);
            let (first, digest) = *seen.entry(key).or_insert((node.node, entry.digest));
            if digest != entry.digest {
                findings.violation(format!(
                    "revision {} (index {}): node {first} has digest {digest:032x}, node {} has {:032x}",
                    key.0, key.1, node.node, entry.digest
                ));
            }
        }
    }
    let mut audited: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for audit in audits {
        let (first, digest) = *audited.entry(audit.revision).or_insert((audit.node, audit.digest.as_str()));
        if digest != audit.digest {
            findings.violation(format!(
                "audit at revision {}: node {first} has digest {digest}, node {} has {}",
                audit.revision, audit.node, audit.digest
            ));
        }
    }
    findings.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn equal_digests_pass() {
        let entry = fixture::entry(5, 1, 0, &[7]);
        assert_eq!(
            check(&[fixture::node(1, vec![entry.clone()]), fixture::node(2, vec![entry])], &[]),
            vec![]
        );
    }

    #[test]
    fn a_replica_that_went_another_way_is_found() {
        let entry = fixture::entry(5, 1, 0, &[7]);
        let mut odd = entry.clone();
        odd.digest += 1;
        assert_eq!(check(&[fixture::node(1, vec![entry]), fixture::node(2, vec![odd])], &[]).len(), 1);
    }

    #[test]
    fn audits_that_differ_are_found() {
        let mut audits = vec![fixture::audit(1, 9), fixture::audit(2, 9)];
        assert_eq!(check(&[], &audits), vec![]);
        audits[1].digest = "ff".to_owned();
        assert_eq!(check(&[], &audits).len(), 1);
    }
}
