//! The checkers: one property a file, each a pure function of the [`Evidence`].
//!
//! | checker | what it finds |
//! | --- | --- |
//! | [`same_command`] | two nodes that applied different commands at one revision or index |
//! | [`digests`] | two nodes whose books differ at one revision |
//! | [`one_leader`] | two leaders in a term |
//! | [`replay`] | an answer that a fresh book, fed the committed order, does not give; an acknowledged command that is not in that order |
//! | [`real_time`] | an order of revisions that contradicts the order in which calls returned and were made |
//! | [`stale_read`] | a read that knows less than what was acknowledged before it was made |
//! | [`receipts`] | two receipts of one id that cannot be of one reservation; a second admission or end |
//! | [`keys`] | two reservations of one idempotency key |
//! | [`granted`] | a grant that is not between the minimum and the ask, or is not said to be less |
//! | [`frozen`] | an admission of a subject that was frozen all the while |
//! | [`totals`] | books that do not add up to what the clients were told |
//! | [`equation`] | a book that an audit finds wrong |
//! | [`error_codes`] | an error outside the documented table, or one whose class contradicts the outcome |
//! | [`no_effect`] | an effect of a call that was said to have none |

pub mod digests;
pub mod equation;
pub mod error_codes;
pub mod frozen;
pub mod granted;
pub mod keys;
pub mod no_effect;
pub mod one_leader;
pub mod real_time;
pub mod receipts;
pub mod replay;
pub mod same_command;
pub mod stale_read;
pub mod totals;

use crate::evidence::Evidence;

/// Findings of one checker beyond this many are counted, not kept: the first ones tell the story.
const FINDINGS_KEPT_MAX: usize = 20;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The evidence does not suffice to judge.
    Inconclusive,
    /// A promise was broken.
    Violation,
}

/// One thing that a checker found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The checker's name.
    pub check: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What, in words, with the revision or the operation.
    pub detail: String,
}

/// Collects a checker's findings.
pub(crate) struct Findings {
    check: &'static str,
    found: Vec<Finding>,
    left_out: usize,
}

impl Findings {
    pub(crate) fn of(check: &'static str) -> Self {
        Findings { check, found: Vec::new(), left_out: 0 }
    }

    pub(crate) fn violation(&mut self, detail: impl Into<String>) {
        self.push(Severity::Violation, detail.into());
    }

    pub(crate) fn inconclusive(&mut self, detail: impl Into<String>) {
        self.push(Severity::Inconclusive, detail.into());
    }

    fn push(&mut self, severity: Severity, detail: String) {
        if self.found.len() < FINDINGS_KEPT_MAX {
            self.found.push(Finding { check: self.check, severity, detail });
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn done(mut self) -> Vec<Finding> {
        if self.left_out > 0
            && let Some(last) = self.found.last_mut()
        {
            last.detail.push_str(&format!(" (and {} more findings of this checker)", self.left_out));
        }
        self.found
    }
}

/// Runs every checker.
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = same_command::check(&evidence.applied);
    findings.extend(digests::check(&evidence.applied, &evidence.audits));
    findings.extend(one_leader::check(&evidence.leaders));
    findings.extend(real_time::check(&evidence.operations));
    findings.extend(stale_read::check(&evidence.operations));
    findings.extend(receipts::check(&evidence.operations));
    findings.extend(keys::check(&evidence.operations));
    findings.extend(granted::check(&evidence.operations));
    findings.extend(frozen::check(&evidence.operations));
    findings.extend(totals::check(&evidence.operations, &evidence.usage));
    findings.extend(equation::check(&evidence.audits));
    findings.extend(error_codes::check(&evidence.operations));
    let (replayed, found) = replay::check(&evidence.operations, &evidence.applied);
    findings.extend(found);
    if let Some(replayed) = replayed {
        findings.extend(no_effect::check(&evidence.operations, &replayed));
    }
    let mut mishaps = Findings::of("mishaps");
    for mishap in &evidence.mishaps {
        mishaps.violation(mishap.clone());
    }
    findings.extend(mishaps.done());
    findings
}
