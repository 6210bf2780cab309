//! How Raft is set. What is not a field here is not optional.

use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, ConfigError, ReadPolicy, SnapshotPolicy};

use super::limits::SNAPSHOT_IDLE;

/// Raft's timing and the policy of its snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaftSettings {
    /// How often a leader says that it is alive.
    pub heartbeat: Duration,
    /// Shortest silence after which a follower stands for election.
    pub election_min: Duration,
    /// Longest such silence.
    pub election_max: Duration,
    /// Silence of the other end after which a snapshot transfer is given up, by the sender and by the receiver.
    pub snapshot_idle: Duration,
    /// Most that a leader's stamp may lie off the median of the members' clocks, ms.
    pub clock_bound_ms: u64,
    /// A snapshot is taken after this many bytes of log.
    pub snapshot_log_bytes: u64,
    /// A snapshot is taken after this many commands.
    pub snapshot_commands: u64,
    /// Log entries kept behind a snapshot, so that a slow follower need not be sent the whole of it.
    pub snapshot_entries_kept: u64,
    /// Commands that may wait to be proposed.
    pub queue_commands_max: usize,
    /// Log entries under way at a time.
    pub entries_under_way_max: usize,
    /// Restores leadership after a restart without an election. Unsafe (a leader that lost an unsynced
    /// tail reuses an index that others have committed); only the test that shows it turns it on.
    #[doc(hidden)]
    pub unsafe_leader_restore: bool,
    /// Answers linearizable reads by the leader's lease. Unsafe (voters forget at a restart what they have
    /// promised, and elect another leader within the lease); only the test that shows it turns it on.
    #[doc(hidden)]
    pub unsafe_lease_reads: bool,
}

impl Default for RaftSettings {
    fn default() -> Self {
        RaftSettings {
            heartbeat: Duration::from_millis(100),
            election_min: Duration::from_millis(500),
            election_max: Duration::from_millis(1000),
            clock_bound_ms: 500,
            snapshot_log_bytes: 256 << 20,
            snapshot_commands: 2_000_000,
            snapshot_entries_kept: 1000,
            snapshot_idle: SNAPSHOT_IDLE,
            queue_commands_max: 65_536,
            entries_under_way_max: 4,
            unsafe_leader_restore: false,
            unsafe_lease_reads: false,
        }
    }
}

impl RaftSettings {
    /// Short times, for tests and the simulator.
    pub fn for_tests() -> Self {
        RaftSettings {
            heartbeat: Duration::from_millis(50),
            election_min: Duration::from_millis(200),
            election_max: Duration::from_millis(400),
            ..RaftSettings::default()
        }
    }

    pub(super) fn read_policy(&self) -> ReadPolicy {
        if self.unsafe_lease_reads { ReadPolicy::LeaseRead } else { ReadPolicy::ReadIndex }
    }

    pub(super) fn to_openraft(&self, cluster_id: &str) -> Result<Arc<Config>, ConfigError> {
        let ms = |d: Duration| d.as_millis() as u64;
        let config = Config {
            cluster_name: cluster_id.to_owned(),
            heartbeat_interval: ms(self.heartbeat),
            election_timeout_min: ms(self.election_min),
            election_timeout_max: ms(self.election_max),
            install_snapshot_timeout: ms(self.snapshot_idle),
            max_payload_entries: 1024,
            // Ours goes by bytes and commands; openraft counts entries, which hold 1 to 1024 commands.
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: self.snapshot_entries_kept,
            replication_lag_threshold: self.snapshot_entries_kept.saturating_mul(4).max(5000),
            // openraft purges once this much is due; a purge costs a record in the log.
            purge_batch_size: self.snapshot_entries_kept.clamp(1, 1024),
            // A leader that restarts must stand for election: its log may have lost a tail that the
            // others have committed.
            enable_leader_restore: Some(self.unsafe_leader_restore),
            // An isolated follower must not raise the term.
            enable_pre_vote: Some(true),
            ..Config::default()
        };
        Ok(Arc::new(config.validate()?))
    }
}
