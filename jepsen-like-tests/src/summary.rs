//! The verdict of a run, and the JSON that programs read.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::check::{Finding, Severity};
use crate::history::{Operation, Outcome};

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing was found, and there was enough to find it in.
    Pass,
    /// Nothing was found, but the evidence does not suffice. Fails like a violation.
    Inconclusive,
    /// A promise was broken.
    Violation,
}

impl Verdict {
    /// The verdict that follows from the findings.
    pub fn of(findings: &[Finding]) -> Verdict {
        match findings.iter().map(|finding| finding.severity).max() {
            None => Verdict::Pass,
            Some(Severity::Inconclusive) => Verdict::Inconclusive,
            Some(Severity::Violation) => Verdict::Violation,
        }
    }

    /// The word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Violation => "violation",
        }
    }
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half are no longer.
    pub p50: u64,
    /// Ninety-nine of a hundred are no longer.
    pub p99: u64,
    /// None is longer.
    pub max: u64,
}

impl Percentiles {
    /// Of these values, by nearest rank; all 0 when there are none.
    pub fn of(mut values: Vec<u64>) -> Percentiles {
        values.sort_unstable();
        let rank = |percent: usize| {
            let at = (values.len() * percent).div_ceil(100).max(1) - 1;
            values.get(at).copied().unwrap_or(0)
        };
        Percentiles { p50: rank(50), p99: rank(99), max: values.last().copied().unwrap_or(0) }
    }
}

/// The line that `--json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The verdict.
    pub verdict: Verdict,
    /// Calls that returned.
    pub operations: u64,
    /// Calls by how they ended.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// From each fault that takes the service away to the next write acknowledged after it.
    pub unavailable_ms: Percentiles,
    /// The seed.
    pub seed: u64,
    /// What was found, in words.
    pub findings: Vec<String>,
}

/// Calls by how they ended.
pub fn outcome_counts(operations: &[Operation]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for operation in operations {
        let word = match operation.outcome {
            Outcome::Ok => "ok",
            Outcome::Rejected => "rejected",
            Outcome::Unavailable => "unavailable",
            Outcome::Unknown => "unknown",
        };
        *counts.entry(word).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_outweighs_an_inconclusive() {
        let finding = |severity| Finding { check: "test", severity, detail: String::new() };
        assert_eq!(Verdict::of(&[]), Verdict::Pass);
        assert_eq!(Verdict::of(&[finding(Severity::Inconclusive)]), Verdict::Inconclusive);
        let both = [finding(Severity::Violation), finding(Severity::Inconclusive)];
        assert_eq!(Verdict::of(&both), Verdict::Violation);
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        assert_eq!(Percentiles::of(vec![]), Percentiles::default());
        assert_eq!(Percentiles::of(vec![5]), Percentiles { p50: 5, p99: 5, max: 5 });
        assert_eq!(Percentiles::of((1..=200).collect()), Percentiles { p50: 100, p99: 198, max: 200 });
    }
}
