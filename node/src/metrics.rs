//! What the node counts and measures, as `/metrics` shows it.
//!
//! Names begin with `holdfast_`, amounts are in base units, counters end in `_total`. Every label has a
//! closed set of values, so that the number of series does not depend on tenants, users or limits.

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use holdfast_ledger::Command;
use holdfast_ledger::answer::{Answer, Refusal, Rejection, State};
use holdfast_proto::ErrorReason;

/// Everything counted or measured by one node. Cheap to clone handles of; made once.
pub struct Metrics {
    registry: Registry,
    commands: [[Counter; OUTCOMES.len()]; COMMANDS.len()],
    failures: Family<ByReason, Counter>,
    rejections: Family<ByLimit, Counter>,
    gauges: Gauges,
    /// Leaders that this node has seen one after the other.
    pub leader_changes: Counter,
    /// Times that a member's book differed from this one's at the same revision.
    pub digest_mismatches: Counter,
    /// Records that the history index had to leave out.
    pub history_left_out: Counter,
    /// Batched streams open.
    pub streams: Gauge,
    /// Seconds that a sync of the log to disk took.
    pub log_sync_seconds: Histogram,
    /// Seconds that applying one entry took.
    pub apply_seconds: Histogram,
    /// Commands of one entry.
    pub entry_commands: Histogram,
    /// Seconds from taking a command in to its answer.
    pub answer_seconds: Histogram,
    /// Seconds that building one snapshot took.
    pub snapshot_seconds: Histogram,
}

/// What is read off the node when somebody asks for the metrics. Times in ms, as the node has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Whether the node knows a leader.
    pub has_leader: bool,
    /// Whether it leads.
    pub is_leader: bool,
    /// Its term.
    pub term: u64,
    /// Last index in its log.
    pub last_index: u64,
    /// Last index known to be committed.
    pub committed_index: u64,
    /// Last index applied.
    pub applied_index: u64,
    /// Last index that a snapshot covers.
    pub snapshot_index: u64,
    /// Commands applied.
    pub revision: u64,
    /// The policy generation in force.
    pub generation: u64,
    /// Commands that wait to be proposed.
    pub queue_depth: u64,
    /// Open reservations by state.
    pub open: Vec<(State, u64)>,
    /// Ended reservations and tombstones that are remembered.
    pub remembered: u64,
    /// Accounts.
    pub accounts: u64,
    /// Lineages in debt.
    pub in_debt: u64,
    /// Frozen subjects.
    pub frozen: u64,
    /// How long the oldest unknown usage has been so, ms.
    pub unknown_age_ms_max: u64,
}

#[derive(Default)]
struct Gauges {
    has_leader: Gauge,
    is_leader: Gauge,
    term: Gauge,
    last_index: Gauge,
    committed_index: Gauge,
    applied_index: Gauge,
    snapshot_index: Gauge,
    revision: Gauge,
    generation: Gauge,
    queue_depth: Gauge,
    open: Family<ByState, Gauge>,
    remembered: Gauge,
    accounts: Gauge,
    in_debt: Gauge,
    frozen: Gauge,
    unknown_age: Gauge<f64, std::sync::atomic::AtomicU64>,
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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ByState {
    state: &'static str,
}

const COMMANDS: [&str; 7] = ["reserve", "start", "settle", "release", "renew", "report_unknown", "other"];
const OUTCOMES: [&str; 3] = ["done", "refused", "failed"];

/// Which of [`COMMANDS`] a command is counted as.
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
            _ => 6,
        })
    }
}

impl Metrics {
    /// A node's metrics, all at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("holdfast");
        let by_command = Family::<ByCommand, Counter>::default();
        let commands = COMMANDS.map(|command| {
            OUTCOMES.map(|outcome| by_command.get_or_create_owned(&ByCommand { command, outcome }))
        });
        let metrics_of = |registry: &mut Registry| -> Gauges {
            let gauges = Gauges::default();
            register_gauges(registry, &gauges);
            gauges
        };
        let gauges = metrics_of(&mut registry);
        // 100 µs to 13 s, doubling: a fast disk and a dying one both fall inside.
        let seconds = || Histogram::new(exponential_buckets(0.000_1, 2.0, 18));
        let metrics = Metrics {
            commands,
            failures: Family::default(),
            rejections: Family::default(),
            gauges,
            leader_changes: Counter::default(),
            digest_mismatches: Counter::default(),
            history_left_out: Counter::default(),
            streams: Gauge::default(),
            log_sync_seconds: seconds(),
            // 4 µs to 0.5 s: one command to a whole entry on a loaded machine.
            apply_seconds: Histogram::new(exponential_buckets(0.000_004, 2.0, 18)),
            entry_commands: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            answer_seconds: seconds(),
            snapshot_seconds: seconds(),
            registry: Registry::default(),
        };
        metrics.register(registry, by_command)
    }

    fn register(mut self, mut registry: Registry, by_command: Family<ByCommand, Counter>) -> Self {
        let r = &mut registry;
        r.register("commands", "Commands answered, by outcome", by_command);
        r.register("failures", "Calls and commands that failed, by reason", self.failures.clone());
        r.register("rejections", "Refusals by a limit", self.rejections.clone());
        r.register("leader_changes", "Leaders seen one after the other", self.leader_changes.clone());
        let mismatches = "Members whose book differed at the same revision";
        r.register("digest_mismatches", mismatches, self.digest_mismatches.clone());
        r.register(
            "history_left_out",
            "Records that the history index left out",
            self.history_left_out.clone(),
        );
        r.register("streams", "Batched streams open", self.streams.clone());
        r.register_with_unit(
            "log_sync",
            "Sync of the log to disk",
            Unit::Seconds,
            self.log_sync_seconds.clone(),
        );
        r.register_with_unit("apply", "Applying one entry", Unit::Seconds, self.apply_seconds.clone());
        r.register("entry_commands", "Commands of one entry", self.entry_commands.clone());
        r.register_with_unit(
            "answer",
            "From a command to its answer",
            Unit::Seconds,
            self.answer_seconds.clone(),
        );
        r.register_with_unit(
            "snapshot_build",
            "Building a snapshot",
            Unit::Seconds,
            self.snapshot_seconds.clone(),
        );
        self.registry = registry;
        self
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

    fn count_rejection(&self, rejection: &Rejection) {
        let labels = ByLimit {
            level: rejection.level.as_str(),
            unit: rejection.unit.as_str(),
            reason: rejection.reason.as_str(),
        };
        self.rejections.get_or_create(&labels).inc();
    }

    /// The page for Prometheus, with what was just read off the node.
    pub fn encode(&self, sample: &Sample) -> String {
        self.gauges.set(sample);
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

fn register_gauges(r: &mut Registry, g: &Gauges) {
    r.register("has_leader", "Whether the node knows a leader", g.has_leader.clone());
    r.register("is_leader", "Whether the node leads", g.is_leader.clone());
    r.register("term", "Raft term", g.term.clone());
    r.register("last_index", "Last index in the log", g.last_index.clone());
    r.register("committed_index", "Last index known to be committed", g.committed_index.clone());
    r.register("applied_index", "Last index applied", g.applied_index.clone());
    r.register("snapshot_index", "Last index that a snapshot covers", g.snapshot_index.clone());
    r.register("revision", "Commands applied", g.revision.clone());
    r.register("generation", "Policy generation in force", g.generation.clone());
    r.register("queue_depth", "Commands that wait to be proposed", g.queue_depth.clone());
    r.register("reservations_open", "Open reservations", g.open.clone());
    r.register("reservations_remembered", "Ended reservations and tombstones kept", g.remembered.clone());
    r.register("accounts", "Accounts of the book", g.accounts.clone());
    r.register("lineages_in_debt", "Lineages in debt", g.in_debt.clone());
    r.register("frozen", "Frozen subjects", g.frozen.clone());
    let age = "How long the oldest unknown usage has been so";
    r.register_with_unit("usage_unknown_age", age, Unit::Seconds, g.unknown_age.clone());
}

impl Gauges {
    fn set(&self, sample: &Sample) {
        // Gauges are signed; an index past i64::MAX is not reached in the life of a disk.
        let put = |gauge: &Gauge, value: u64| {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        put(&self.has_leader, sample.has_leader.into());
        put(&self.is_leader, sample.is_leader.into());
        put(&self.term, sample.term);
        put(&self.last_index, sample.last_index);
        put(&self.committed_index, sample.committed_index);
        put(&self.applied_index, sample.applied_index);
        put(&self.snapshot_index, sample.snapshot_index);
        put(&self.revision, sample.revision);
        put(&self.generation, sample.generation);
        put(&self.queue_depth, sample.queue_depth);
        for (state, count) in &sample.open {
            put(&self.open.get_or_create(&ByState { state: state.as_str() }), *count);
        }
        put(&self.remembered, sample.remembered);
        put(&self.accounts, sample.accounts);
        put(&self.in_debt, sample.in_debt);
        put(&self.frozen, sample.frozen);
        self.unknown_age.set(sample.unknown_age_ms_max as f64 / 1_000.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_ledger::answer::Reason;
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
        metrics.apply_seconds.observe(0.001);
        let sample = Sample {
            is_leader: true,
            unknown_age_ms_max: 1_500,
            open: vec![(State::Started, 3)],
            ..Sample::default()
        };
        let page = metrics.encode(&sample);
        for line in [
            "holdfast_is_leader 1",
            "holdfast_has_leader 0",
            "holdfast_usage_unknown_age_seconds 1.5",
            "holdfast_reservations_open{state=\"STARTED\"} 3",
            "holdfast_commands_total{command=\"reserve\",outcome=\"done\"} 1",
            "holdfast_commands_total{command=\"settle\",outcome=\"failed\"} 1",
            "holdfast_failures_total{reason=\"NOT_LEADER\"} 1",
            "holdfast_apply_seconds_count 1",
            "# TYPE holdfast_apply_seconds histogram",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }

    #[test]
    fn the_number_of_series_does_not_depend_on_what_is_limited() {
        let metrics = Metrics::new();
        metrics.count_answer(Kind(0), &rejection("limit-0"));
        let before = metrics.encode(&Sample::default()).lines().count();
        for i in 1..1_000 {
            metrics.count_answer(Kind(0), &rejection(&format!("limit-{i}")));
        }
        let page = metrics.encode(&Sample::default());
        assert_eq!(page.lines().count(), before);
        assert!(page.contains("{level=\"tenant\",unit=\"tokens\",reason=\"spent\"} 1000"), "{page}");
        assert!(before < 500, "{before} lines");
    }
}
