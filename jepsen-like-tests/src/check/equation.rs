//! The account equation: every node's own audit of its whole book (C1–C8 of the invariants) is clean.

use super::{Finding, Findings};
use crate::evidence::NodeAudit;

/// Reports what the audits found.
pub fn check(audits: &[NodeAudit]) -> Vec<Finding> {
    let mut findings = Findings::of("equation");
    for audit in audits {
        for violation in &audit.violations {
            findings.violation(format!("node {} at revision {}: {violation}", audit.node, audit.revision));
        }
    }
    findings.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_clean_audit_passes_and_a_violation_is_found() {
        let mut audit = fixture::audit(1, 9);
        assert_eq!(check(std::slice::from_ref(&audit)), vec![]);
        audit.violations.push("C1 does not hold on tenant-tokens/acme".to_owned());
        assert_eq!(check(&[audit]).len(), 1);
    }
}
