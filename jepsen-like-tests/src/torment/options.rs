//! What a run is told.

use std::path::PathBuf;

/// A run's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the faults and of what the clients do. (The processes' timing is not seeded:
    /// the same seed gives the same plan of attack, not the same run.)
    pub seed: u64,
    /// How long load and faults last, seconds.
    pub seconds: u64,
    /// Node processes.
    pub nodes: u64,
    /// Clients at the same time.
    pub clients: u32,
    /// Where the nodes' data, logs and the history go.
    pub directory: PathBuf,
    /// Fewer acknowledged operations a second than this before the first fault make the run void.
    pub rate_min: u64,
}

/// Load without faults before the first one, seconds.
pub(super) const WARM_UP_SECONDS: u64 = 5;

/// Between the end of one fault and the next, seconds.
pub(super) const QUIET_SECONDS: std::ops::Range<f64> = 2.0..5.0;

/// How long a killed node stays down, seconds.
pub(super) const DOWN_SECONDS: std::ops::Range<f64> = 0.2..2.0;

/// How long the cluster has to become ready, to serve again or to converge, seconds.
pub(super) const PATIENCE_SECONDS: u64 = 60;

/// One call, with all its retries, gives up after this, seconds.
pub(super) const CALL_SECONDS: u64 = 20;
