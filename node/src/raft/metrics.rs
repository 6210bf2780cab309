//! Counters of one node, cheap enough to be always on. They never decide anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Powers of two of microseconds: up to 2^24 µs ≈ 17 s, the last bucket takes the rest.
pub const HISTOGRAM_BUCKETS: usize = 25;

/// How often something took at most 1, 2, 4, … µs (or had at most that many parts).
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; HISTOGRAM_BUCKETS],
    count: AtomicU64,
    sum: AtomicU64,
}

/// A histogram's state at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// Values ≤ 2^i, for i from 0; the last takes all that are larger.
    pub buckets: [u64; HISTOGRAM_BUCKETS],
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

impl Histogram {
    /// Counts one value.
    pub fn record(&self, value: u64) {
        let bucket = (64 - value.saturating_sub(1).leading_zeros() as usize).min(HISTOGRAM_BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Its state now.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HistogramSnapshot {
            buckets: std::array::from_fn(|i| load(&self.buckets[i])),
            count: load(&self.count),
            sum: load(&self.sum),
        }
    }
}

/// Reads a monotonic clock in microseconds; the simulator's is virtual.
pub type Ticker = Box<dyn Fn() -> u64 + Send + Sync>;

/// Everything that is counted.
pub struct Metrics {
    ticker: Ticker,
    pub(crate) apply_us: Histogram,
    pub(crate) commit_us: Histogram,
    pub(crate) entry_commands: Histogram,
    pub(crate) entry_bytes: Histogram,
    pub(crate) sync_us: Histogram,
    pub(crate) read_us: Histogram,
    pub(crate) snapshot_us: Histogram,
    pub(crate) commands_applied: AtomicU64,
    pub(crate) bytes_applied: AtomicU64,
    pub(crate) entries_applied: AtomicU64,
    pub(crate) proposals_ok: AtomicU64,
    pub(crate) proposals_refused: AtomicU64,
    pub(crate) proposals_unknown: AtomicU64,
    pub(crate) proposals_late: AtomicU64,
    pub(crate) refused_unlogged: AtomicU64,
    pub(crate) clock_faults: AtomicU64,
    pub(crate) digest_mismatches: AtomicU64,
    pub(crate) leader_changes: AtomicU64,
    pub(crate) snapshots_built: AtomicU64,
    pub(crate) snapshots_installed: AtomicU64,
    pub(crate) snapshot_bytes: AtomicU64,
    pub(crate) entries_under_way: AtomicU64,
}

impl Metrics {
    /// All at zero.
    pub fn new(ticker: Ticker) -> Self {
        Metrics {
            ticker,
            apply_us: Histogram::default(),
            commit_us: Histogram::default(),
            entry_commands: Histogram::default(),
            entry_bytes: Histogram::default(),
            sync_us: Histogram::default(),
            read_us: Histogram::default(),
            snapshot_us: Histogram::default(),
            commands_applied: AtomicU64::new(0),
            bytes_applied: AtomicU64::new(0),
            entries_applied: AtomicU64::new(0),
            proposals_ok: AtomicU64::new(0),
            proposals_refused: AtomicU64::new(0),
            proposals_unknown: AtomicU64::new(0),
            proposals_late: AtomicU64::new(0),
            refused_unlogged: AtomicU64::new(0),
            clock_faults: AtomicU64::new(0),
            digest_mismatches: AtomicU64::new(0),
            leader_changes: AtomicU64::new(0),
            snapshots_built: AtomicU64::new(0),
            snapshots_installed: AtomicU64::new(0),
            snapshot_bytes: AtomicU64::new(0),
            entries_under_way: AtomicU64::new(0),
        }
    }

    /// The start of something that is timed.
    pub fn begin(&self) -> u64 {
        (self.ticker)()
    }

    pub(crate) fn since(&self, began: u64) -> u64 {
        (self.ticker)().saturating_sub(began)
    }

    pub(crate) fn applied(&self, began: u64, commands: usize, bytes: usize) {
        self.apply_us.record(self.since(began));
        self.commands_applied.fetch_add(commands as u64, Ordering::Relaxed);
        self.bytes_applied.fetch_add(bytes as u64, Ordering::Relaxed);
        self.entries_applied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot_built(&self, began: u64, bytes: u64) {
        self.snapshot_us.record(self.since(began));
        self.snapshots_built.fetch_add(1, Ordering::Relaxed);
        self.snapshot_bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn snapshot_installed(&self) {
        self.snapshots_installed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A duration as a count of microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_the_bucket_that_bounds_them() {
        let histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, 5, u64::MAX] {
            histogram.record(value);
        }
        let seen = histogram.snapshot();
        assert_eq!(seen.buckets[..4], [2, 1, 2, 1]);
        assert_eq!((seen.buckets[HISTOGRAM_BUCKETS - 1], seen.count), (1, 7));
    }
}
