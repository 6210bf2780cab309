//! Every limit of the node has its name here, with the arithmetic behind it.

use std::time::Duration;

use holdfast_ledger::limits::PLAN_BYTES_MAX;

/// Longest cluster id: it stands in every peer call and every data directory.
pub const CLUSTER_ID_BYTES_MAX: usize = 64;

/// Most founding members. Quorums of more than nine are slow and rarely meant.
pub const MEMBERS_MAX: usize = 9;

/// Shortest heartbeat: below it a busy core misses its own.
pub const HEARTBEAT_MS_FLOOR: u64 = 10;

/// Longest silence before an election: past it a dead leader is an outage.
pub const ELECTION_MS_CEILING: u64 = 60_000;

/// Least ratio of election to heartbeat, so that one lost heartbeat brings no election.
pub const ELECTION_PER_HEARTBEAT_MIN: u64 = 3;

/// Smallest segment of the log: it must hold its own head and the largest entry.
pub const SEGMENT_BYTES_FLOOR: u64 = 1 << 20;

/// Largest segment of the log: dropping it must free space in reasonable steps.
pub const SEGMENT_BYTES_CEILING: u64 = 1 << 32;

/// Most commands that can be configured to wait: at up to 2 KiB each this is 2 GiB.
pub const QUEUE_COMMANDS_CEILING: u64 = 1 << 20;

/// Most entries under way that can be configured: more only lengthens the queue in Raft.
pub const ENTRIES_UNDER_WAY_CEILING: u64 = 64;

/// Smallest message bound: the largest plan with its envelope must pass.
pub const MESSAGE_BYTES_FLOOR: u64 = PLAN_BYTES_MAX as u64 + (64 << 10);

/// Largest message bound: one message must not be able to take the machine's memory.
pub const MESSAGE_BYTES_CEILING: u64 = 64 << 20;

/// Most HTTP connections at a time: probes, Prometheus and some browsers. More wait to be accepted.
pub const HTTP_CONNECTIONS_MAX: usize = 64;

/// Longest time for the head of an HTTP request, and for the last answers when the node stops.
pub const HTTP_HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause after a connection could not be accepted (no file descriptor left), so as not to spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const _: () = assert!(MESSAGE_BYTES_FLOOR < MESSAGE_BYTES_CEILING);
