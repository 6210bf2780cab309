//! What the demo traffic shows: a line for each thing that happens for the first time, and the counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::output::{Rows, grouped};

/// How one request of the demo ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// Admitted, under this tier.
    Admitted(&'static str),
    /// A limit said no: the limit with level and unit, and why.
    Refused {
        /// For example `user-qps (user, requests)`.
        limit: String,
        /// For example `spent`.
        reason: &'static str,
    },
    /// It never came to a decision, for example while a leader is elected.
    Failed(String),
}

/// One request of the demo.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Who pays.
    pub tenant: String,
    /// The user within the tenant.
    pub user: String,
    /// How it ended.
    pub ended: Ended,
    /// A fact to show beside the first of its kind, for example when to try again.
    pub note: String,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    normal: u64,
    light: u64,
    heavy: u64,
    refused: u64,
    failed: u64,
}

/// Everything seen so far.
#[derive(Debug, Default)]
pub struct DemoLog {
    told: BTreeSet<(String, Ended)>,
    counts: BTreeMap<String, Counts>,
    hits: BTreeMap<(String, String, &'static str), u64>,
}

impl DemoLog {
    /// Counts it; gives a line if nothing like it was seen of that tenant before.
    pub fn note(&mut self, since_start: Duration, seen: &Seen) -> Option<String> {
        let counts = self.counts.entry(seen.tenant.clone()).or_default();
        match &seen.ended {
            Ended::Admitted("DEGRADED_LIGHT") => counts.light += 1,
            Ended::Admitted("DEGRADED_HEAVY") => counts.heavy += 1,
            Ended::Admitted(_) => counts.normal += 1,
            Ended::Failed(_) => counts.failed += 1,
            Ended::Refused { limit, reason } => {
                counts.refused += 1;
                *self.hits.entry((seen.tenant.clone(), limit.clone(), reason)).or_default() += 1;
            }
        }
        if !self.told.insert((seen.tenant.clone(), seen.ended.clone())) {
            return None;
        }
        let (word, what) = match &seen.ended {
            Ended::Admitted(tier) => ("admitted", (*tier).to_owned()),
            Ended::Refused { limit, reason } => ("refused", format!("{limit}: {reason}")),
            Ended::Failed(problem) => ("failed", problem.clone()),
        };
        let who = format!("{}/{}", seen.tenant, seen.user);
        let note = if seen.note.is_empty() { String::new() } else { format!("  ({})", seen.note) };
        Some(format!("{:>6.1} s  {who:<12}  {word:<8}  {what}{note}\n", since_start.as_secs_f64()))
    }

    /// Counts by tenant and tier, then by limit.
    pub fn summary(&self) -> String {
        let mut rows = Rows::new(["tenant", "normal", "light", "heavy", "refused", "failed"]);
        for (tenant, counts) in &self.counts {
            rows.add([
                tenant.clone(),
                grouped(counts.normal),
                grouped(counts.light),
                grouped(counts.heavy),
                grouped(counts.refused),
                grouped(counts.failed),
            ]);
        }
        let mut text = format!("\n{}", rows.text());
        if !self.hits.is_empty() {
            let mut rows = Rows::new(["refused by", "of tenant", "why", "times"]);
            for ((tenant, limit, reason), times) in &self.hits {
                rows.add([limit.clone(), tenant.clone(), (*reason).to_owned(), grouped(*times)]);
            }
            text.push_str(&format!("\n{}", rows.text()));
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ended: Ended) -> Seen {
        Seen { tenant: "demo".into(), user: "max".into(), ended, note: String::new() }
    }

    #[test]
    fn only_what_is_new_gives_a_line() {
        let mut log = DemoLog::default();
        let at = Duration::from_millis(1_250);
        let refused = Ended::Refused { limit: "user-qps (user, requests)".into(), reason: "spent" };
        assert!(log.note(at, &seen(Ended::Admitted("NORMAL"))).is_some());
        assert!(log.note(at, &seen(Ended::Admitted("NORMAL"))).is_none());
        assert!(log.note(at, &seen(Ended::Admitted("DEGRADED_LIGHT"))).is_some());
        let line = log.note(at, &seen(refused.clone()));
        assert_eq!(
            line.as_deref(),
            Some("   1.2 s  demo/max      refused   user-qps (user, requests): spent\n")
        );
        assert!(log.note(at, &seen(refused)).is_none());
        let summary = log.summary();
        assert!(summary.contains("TENANT  NORMAL  LIGHT  HEAVY  REFUSED  FAILED"), "{summary}");
        assert!(summary.contains("demo         2      1      0        2       0"), "{summary}");
        assert!(summary.contains("user-qps (user, requests)  demo       spent      2"), "{summary}");
    }
}
