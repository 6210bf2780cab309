//! What is read off the node when somebody asks for the metrics.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use holdfast_ledger::answer::State;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::raft::metrics::HistogramSnapshot;
use crate::raft::status::CounterSnapshot;

/// The node at one moment. Times in ms, as the node has them.
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
    /// The node's clock minus the members' median, ms, if it is known.
    pub clock_off_ms: Option<i64>,
    /// Bytes of the log's files.
    pub log_bytes: u64,
    /// The log's files.
    pub log_segments: u64,
    /// Bytes appended and not yet synced.
    pub log_unsynced_bytes: u64,
    /// Group syncs so far.
    pub log_syncs: u64,
    /// Records that the history index left out.
    pub history_left_out: u64,
    /// Times that the history index was dropped and begun anew.
    pub history_dropped: u64,
    /// Events that webhooks took.
    pub webhooks_delivered: u64,
    /// Attempts to deliver that failed.
    pub webhooks_failed: u64,
    /// Events that were forgotten before they could be sent to a webhook, at most.
    pub webhooks_missed: u64,
    /// How long the oldest event has waited for a webhook, ms.
    pub webhook_wait_ms_max: u64,
    /// What Raft, propose and apply have counted.
    pub counters: CounterSnapshot,
}

/// The sample that the next page is made of.
#[derive(Default)]
pub(super) struct Latest(Mutex<Sample>);

impl Latest {
    pub(super) fn put(&self, sample: Sample) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sample;
    }
}

impl fmt::Debug for Latest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Latest")
    }
}

impl Collector for Latest {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let sample = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut page = Page { encoder };
        page.gauges(&sample)?;
        page.counters(&sample)?;
        page.histograms(&sample.counters)
    }
}

struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    fn gauges(&mut self, s: &Sample) -> fmt::Result {
        self.gauge("has_leader", "Whether the node knows a leader", s.has_leader.into())?;
        self.gauge("is_leader", "Whether the node leads", s.is_leader.into())?;
        self.gauge("term", "Raft term", s.term)?;
        self.gauge("last_index", "Last index in the log", s.last_index)?;
        self.gauge("committed_index", "Last index known to be committed", s.committed_index)?;
        self.gauge("applied_index", "Last index applied", s.applied_index)?;
        self.gauge("snapshot_index", "Last index that a snapshot covers", s.snapshot_index)?;
        self.gauge("revision", "Commands applied", s.revision)?;
        self.gauge("generation", "Policy generation in force", s.generation)?;
        self.gauge("queue_depth", "Commands that wait to be proposed", s.queue_depth)?;
        self.gauge("entries_under_way", "Log entries under way", s.counters.entries_under_way)?;
        self.open(&s.open)?;
        let remembered = "Ended reservations and tombstones that are remembered";
        self.gauge("reservations_remembered", remembered, s.remembered)?;
        self.gauge("accounts", "Accounts of the book", s.accounts)?;
        self.gauge("lineages_in_debt", "Lineages in debt", s.in_debt)?;
        self.gauge("frozen", "Frozen subjects", s.frozen)?;
        self.seconds(
            "usage_unknown_age",
            "Age of the oldest unknown usage",
            Some(s.unknown_age_ms_max as i64),
        )?;
        let wait =
            "Age of the oldest event that waits for a webhook; 0 where none does or the node does not lead";
        self.seconds("webhook_wait", wait, i64::try_from(s.webhook_wait_ms_max).ok())?;
        self.seconds("clock_off", "The node's clock minus the members' median", s.clock_off_ms)?;
        self.gauge("log_segments", "Files of the log", s.log_segments)?;
        self.gauge("log_bytes", "Bytes of the log's files", s.log_bytes)?;
        self.gauge("log_unsynced_bytes", "Bytes appended and not yet synced", s.log_unsynced_bytes)?;
        self.gauge("snapshot_bytes", "Size of the last snapshot built", s.counters.snapshot_bytes)
    }

    fn counters(&mut self, s: &Sample) -> fmt::Result {
        let c = &s.counters;
        self.counter("leader_changes", "Leaders seen one after the other", c.leader_changes)?;
        self.counter("clock_faults", "Times that nothing was stamped because of the clock", c.clock_faults)?;
        let odd = "Members found to hold another book than a majority";
        self.counter("digest_mismatches", odd, c.digest_mismatches)?;
        self.counter("log_syncs", "Syncs of the log to disk", s.log_syncs)?;
        self.counter("history_left_out", "Records that the history index left out", s.history_left_out)?;
        self.counter("history_dropped", "Times that the history index was begun anew", s.history_dropped)?;
        self.counter(
            "webhook_missed_events",
            "Events forgotten before a webhook was sent them, at most",
            s.webhooks_missed,
        )?;
        self.counter("applied_commands", "Commands applied, replayed ones included", c.commands_applied)?;
        self.counter("applied_entries", "Log entries applied", c.entries_applied)?;
        self.counter("applied_bytes", "Payload bytes applied", c.bytes_applied)?;
        self.counter("snapshots_built", "Snapshots built", c.snapshots_built)?;
        self.counter("snapshots_installed", "Snapshots installed", c.snapshots_installed)?;
        let unlogged = "Reserves refused from applied state, without a log entry";
        self.counter("refused_unlogged", unlogged, c.refused_unlogged)?;
        let deliveries = "Deliveries to webhooks, by result";
        let mut family =
            self.encoder.encode_descriptor("webhook_deliveries", deliveries, None, MetricType::Counter)?;
        for (result, count) in [("delivered", s.webhooks_delivered), ("failed", s.webhooks_failed)] {
            ConstCounter::new(count).encode(family.encode_family(&[("result", result)])?)?;
        }
        let results = [
            ("ok", c.proposals_ok),
            ("refused", c.proposals_refused),
            ("unknown", c.proposals_unknown),
            ("late", c.proposals_late),
        ];
        let mut family =
            self.encoder.encode_descriptor("proposals", "Proposals, by result", None, MetricType::Counter)?;
        for (result, count) in results {
            ConstCounter::new(count).encode(family.encode_family(&[("result", result)])?)?;
        }
        Ok(())
    }

    fn histograms(&mut self, c: &CounterSnapshot) -> fmt::Result {
        self.micros("apply", "Applying one entry", &c.apply_us)?;
        self.micros("commit", "From handing an entry to Raft to its answers", &c.commit_us)?;
        self.micros("log_sync", "One sync of the log", &c.sync_us)?;
        self.micros("read_barrier", "One round of the quorum for reads", &c.read_us)?;
        self.micros("snapshot_build", "Building one snapshot", &c.snapshot_us)?;
        self.histogram("entry_commands", "Commands of one entry", None, &c.entry_commands, 1.0)?;
        self.histogram("entry_bytes", "Bytes of one entry", None, &c.entry_bytes, 1.0)
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        // Gauges are signed; an index past i64::MAX is not reached in the life of a disk.
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(self.encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }

    fn seconds(&mut self, name: &str, help: &str, ms: Option<i64>) -> fmt::Result {
        let Some(ms) = ms else { return Ok(()) };
        let gauge = ConstGauge::new(ms as f64 / 1_000.0);
        gauge.encode(self.encoder.encode_descriptor(name, help, Some(&Unit::Seconds), gauge.metric_type())?)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let counter = ConstCounter::new(value);
        counter.encode(self.encoder.encode_descriptor(name, help, None, counter.metric_type())?)
    }

    fn open(&mut self, open: &[(State, u64)]) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(
            "reservations_open",
            "Open reservations",
            None,
            MetricType::Gauge,
        )?;
        for (state, count) in open {
            let gauge = ConstGauge::new(i64::try_from(*count).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&[("state", state.as_str())])?)?;
        }
        Ok(())
    }

    fn micros(&mut self, name: &str, help: &str, seen: &HistogramSnapshot) -> fmt::Result {
        self.histogram(name, help, Some(&Unit::Seconds), seen, 1e-6)
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        seen: &HistogramSnapshot,
        scale: f64,
    ) -> fmt::Result {
        let last = seen.buckets.len() - 1;
        let bound = |i: usize| if i == last { f64::INFINITY } else { (1_u64 << i) as f64 * scale };
        let buckets: Vec<(f64, u64)> = seen.buckets.iter().enumerate().map(|(i, n)| (bound(i), *n)).collect();
        let mut encoder = self.encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        encoder.encode_histogram::<NoLabelSet>(seen.sum as f64 * scale, seen.count, &buckets, None)
    }
}
