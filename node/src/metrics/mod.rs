//! What the node counts and measures, as `/metrics` shows it.
//!
//! Names begin with `holdfast_`, amounts are in base units, counters end in `_total`. Every label has a
//! closed set of values, so that the number of series does not depend on tenants, users or limits.

mod sample;

use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use holdfast_ledger::Command;
use holdfast_ledger::answer::{Answer, Refusal, Rejection};
use holdfast_proto::ErrorReason;

use sample::Latest;
pub use sample::Sample;

/// Everything counted or measured by one node. Cheap to clone handles of; made once.
pub struct Metrics {
    registry: Registry,
    commands: [[Counter; OUTCOMES.len()]; COMMANDS.len()],
    failures: Family<ByReason, Counter>,
    rejections: Family<ByLimit, Counter>,
    sample: Arc<Latest>,
    /// Connections of clients that are served.
    pub connections: Gauge,
    /// Connections that were one too many.
    pub connections_refused: Counter,
    /// Batched streams open.
    pub streams: Gauge,
    /// Commands of batched streams that are not answered, or whose answers were not taken yet.
    pub stream_commands: Gauge,
    /// Seconds from taking a command in to its answer.
    pub answer_seconds: Histogram,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByCommand {
    command: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByLimit {
    level: &'static str,
    unit: &'static str,
    reason: &'static str,
}

const COMMANDS: [&str; 8] =
    ["reserve", "start", "settle", "release", "renew", "report_unknown", "correct", "other"];
const OUTCOMES: [&str; 3] = ["done", "refused", "failed"];

/// Which of `COMMANDS` a command is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u8);

impl Kind {
    /// The kind of a command.
    pub fn of(command: &Command) -> Kind {
        Kind(match command {
            Command::Reserve(_) => 0,
            Command::Start(_) => 1,
            Command::Settle(_) => 2,
            Command::Release(_) => 3,
            Command::Renew(_) => 4,
            Command::ReportUnknown(_) => 5,
            Command::Correct(_) => 6,
            _ => 7,
        })
    }
}

impl Metrics {
    /// A node's metrics, all at zero.
    pub fn new() -> Self {
        let by_command = Family::<ByCommand, Counter>::default();
        let commands = COMMANDS.map(|command| {
            OUTCOMES.map(|outcome| by_command.get_or_create_owned(&ByCommand { command, outcome }))
        });
        let mut metrics = Metrics {
            registry: Registry::with_prefix("holdfast"),
            commands,
            failures: Family::default(),
            rejections: Family::default(),
            sample: Arc::default(),
            connections: Gauge::default(),
            connections_refused: Counter::default(),
            streams: Gauge::default(),
            stream_commands: Gauge::default(),
            // 100 µs to 13 s, doubling: a fast disk and a dying one both fall inside.
            answer_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 18)),
        };
        metrics.register(by_command);
        metrics
    }

    fn register(&mut self, by_command: Family<ByCommand, Counter>) {
        let r = &mut self.registry;
        r.register("commands", "Commands of clients answered, by outcome", by_command);
        r.register("failures", "Calls and commands that failed, by reason", self.failures.clone());
        r.register("rejections", "Refusals by a limit", self.rejections.clone());
        r.register("connections", "Connections of clients that are served", self.connections.clone());
        let refused = "Connections of clients past the bound";
        r.register("connections_refused", refused, self.connections_refused.clone());
        let unanswered = "Commands of batched streams not answered yet, or answered and not taken";
        r.register("stream_commands", unanswered, self.stream_commands.clone());
        r.register("streams", "Batched streams open", self.streams.clone());
        let answer = "From taking a command in to its answer";
        r.register_with_unit("answer", answer, Unit::Seconds, self.answer_seconds.clone());
        r.register_collector(Box::new(Arc::clone(&self.sample)));
    }

    /// Counts the answer to a command of a client.
    pub fn count_answer(&self, kind: Kind, answer: &Answer) {
        match answer {
            Answer::Refused(refusal) => {
                self.commands[usize::from(kind.0)][1].inc();
                if let Refusal::Rejected(rejection) = refusal {
                    self.count_rejection(rejection);
                }
            }
            _ => {
                self.commands[usize::from(kind.0)][0].inc();
            }
        }
    }

    /// Counts a command that got no answer of the book.
    pub fn count_failed(&self, kind: Kind, reason: ErrorReason) {
        self.commands[usize::from(kind.0)][2].inc();
        self.count_failure(reason);
    }

    /// Counts a call that failed.
    pub fn count_failure(&self, reason: ErrorReason) {
        self.failures.get_or_create(&ByReason { reason: reason.as_str() }).inc();
    }

    /// Counts a refusal by a limit.
    pub fn count_rejection(&self, rejection: &Rejection) {
        let labels = ByLimit {
            level: rejection.level.as_str(),
            unit: rejection.unit.as_str(),
            reason: rejection.reason.as_str(),
        };
        self.rejections.get_or_create(&labels).inc();
    }

    /// The page for Prometheus, with what was just read off the node.
    pub fn encode(&self, sample: Sample) -> String {
        self.sample.put(sample);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics::new()
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::status::CounterSnapshot;
    use holdfast_ledger::answer::{Reason, State};
    use holdfast_ledger::plan::Level;
    use holdfast_ledger::unit::Unit as LedgerUnit;

    fn rejection(limit: &str) -> Answer {
        let Ok(limit) = limit.parse() else { panic!("{limit} is a name") };
        Answer::Refused(Refusal::Rejected(Rejection {
            generation: 1,
            limit,
            level: Level::Tenant,
            unit: LedgerUnit::Tokens,
            reason: Reason::Spent,
            reset_at_ms: None,
            retry_after_ms: None,
        }))
    }

    #[test]
    fn the_page_has_names_in_base_units_and_the_values_just_read() {
        let metrics = Metrics::new();
        metrics.count_answer(Kind(0), &Answer::Rules { rules_version: 1 });
        metrics.count_failed(Kind(2), ErrorReason::NotLeader);
        let mut counters = CounterSnapshot::default();
        counters.apply_us.buckets[10] = 3;
        counters.apply_us.count = 3;
        counters.apply_us.sum = 3_000;
        let sample = Sample {
            counters,
            is_leader: true,
            unknown_age_ms_max: 1_500,
            open: vec![(State::Started, 3)],
            ..Sample::default()
        };
        let page = metrics.encode(sample);
        for line in [
            "holdfast_is_leader 1",
            "holdfast_has_leader 0",
            "holdfast_usage_unknown_age_seconds 1.5",
            "holdfast_reservations_open{state=\"STARTED\"} 3",
            "holdfast_commands_total{command=\"reserve\",outcome=\"done\"} 1",
            "holdfast_commands_total{command=\"settle\",outcome=\"failed\"} 1",
            "holdfast_failures_total{reason=\"NOT_LEADER\"} 1",
            "holdfast_apply_seconds_count 3",
            "holdfast_apply_seconds_sum 0.003",
            "holdfast_apply_seconds_bucket{le=\"0.001024\"} 3",
            "holdfast_apply_seconds_bucket{le=\"+Inf\"} 3",
            "# TYPE holdfast_apply_seconds histogram",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }

    #[test]
    fn the_number_of_series_does_not_depend_on_what_is_limited() {
        let metrics = Metrics::new();
        metrics.count_answer(Kind(0), &rejection("limit-0"));
        let before = metrics.encode(Sample::default()).lines().count();
        for i in 1..1_000 {
            metrics.count_answer(Kind(0), &rejection(&format!("limit-{i}")));
        }
        let page = metrics.encode(Sample::default());
        assert_eq!(page.lines().count(), before);
        assert!(page.contains("{level=\"tenant\",unit=\"tokens\",reason=\"spent\"} 1000"), "{page}");
        assert!(before < 500, "{before} lines");
    }
}
