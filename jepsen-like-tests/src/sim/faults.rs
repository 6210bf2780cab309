//! What can be done to a cluster, and the list of what was.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use holdfast_node::storage::sim_disk::Loss;

/// One fault, with its strength drawn.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The leader's machine loses power for a time.
    KillLeader {
        /// How long it is down.
        down: Duration,
        /// What becomes of what was not synced.
        loss: Loss,
    },
    /// Some machine loses power in the middle of a write.
    CrashInAWrite {
        /// Which.
        node: u64,
        /// How long it is down.
        down: Duration,
        /// What becomes of what was not synced.
        loss: Loss,
    },
    /// All machines lose power at once.
    CrashAll {
        /// How long they are down.
        down: Duration,
        /// What becomes of what was not synced.
        loss: Loss,
    },
    /// A node is stopped in order and started again.
    Restart {
        /// Which.
        node: u64,
    },
    /// A node is cut off from the others (and the clients' way to it stays).
    Isolate {
        /// Which; `None`: the leader.
        node: Option<u64>,
        /// For how long.
        lasts: Duration,
    },
    /// One direction between two nodes is cut.
    OneWay {
        /// From.
        from: u64,
        /// To.
        to: u64,
        /// For how long.
        lasts: Duration,
    },
    /// Messages are lost and delayed.
    Storm {
        /// Of a hundred.
        loss_percent: u32,
        /// Longest delay, ms.
        delay_ms_max: u64,
        /// For how long.
        lasts: Duration,
    },
    /// Leadership is handed over.
    Transfer,
    /// A node takes a snapshot.
    Snapshot {
        /// Which.
        node: u64,
    },
    /// A node's wall clock is wrong for a time.
    ClockStep {
        /// Which; `None`: the leader's.
        node: Option<u64>,
        /// By how much, ms.
        by_ms: i64,
        /// For how long.
        lasts: Duration,
    },
}

impl Fault {
    /// The kind's word.
    pub fn word(&self) -> &'static str {
        match self {
            Fault::KillLeader { .. } => "kill_leader",
            Fault::CrashInAWrite { .. } => "crash_in_a_write",
            Fault::CrashAll { .. } => "crash_all",
            Fault::Restart { .. } => "restart",
            Fault::Isolate { .. } => "isolate",
            Fault::OneWay { .. } => "one_way",
            Fault::Storm { .. } => "storm",
            Fault::Transfer => "transfer",
            Fault::Snapshot { .. } => "snapshot",
            Fault::ClockStep { .. } => "clock_step",
        }
    }

    /// Whether it takes the service away, so that the time to the next write counts as unavailable.
    pub fn takes_the_service_away(&self) -> bool {
        matches!(self, Fault::KillLeader { .. } | Fault::CrashAll { .. } | Fault::Isolate { node: None, .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What was done, and when.
#[derive(Clone, Debug, Default)]
pub struct FaultLog {
    /// Virtual µs and the fault.
    pub faults: Vec<(u64, Fault)>,
}

impl FaultLog {
    /// How many of each kind.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (_, fault) in &self.faults {
            *counts.entry(fault.word().to_owned()).or_default() += 1;
        }
        counts
    }

    /// When the service was taken away, µs.
    pub fn outages_us(&self) -> Vec<u64> {
        let outage = |(at, fault): &(u64, Fault)| fault.takes_the_service_away().then_some(*at);
        self.faults.iter().filter_map(outage).collect()
    }
}
