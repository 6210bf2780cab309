//! The limits of propose, Raft and snapshots, each with the arithmetic behind it.

use std::time::Duration;

/// Most commands of one log entry. At 1 µs each an entry holds the book for about 1 ms.
pub const ENTRY_COMMANDS_MAX: usize = 1024;

/// Most bytes of one log entry, its header apart: what a disk and a network take in a few ms.
/// One command larger than this (a plan) gets an entry of its own.
pub const ENTRY_BYTES_MAX: usize = 256 << 10;

/// Epochs, the running one included, whose end the book must know at any stamp.
pub const EPOCHS_AHEAD: usize = 2;

/// Most bounds of one calendar in one entry: half a year of hours, 32 KiB.
/// After a longer silence the entries that follow bring the rest.
pub const EPOCH_BOUNDS_PER_ENTRY_MAX: usize = 4096;

/// How long the proposer waits for the first round of heartbeats of a new term before it refuses.
pub const CLOCK_WAIT: Duration = Duration::from_millis(500);

/// How often it looks meanwhile.
pub const CLOCK_POLL: Duration = Duration::from_millis(5);

/// Clock samples older than this many heartbeats are not counted: one lost heartbeat must not
/// silence a leader, and an election's worth of silence must.
pub const CLOCK_SAMPLE_HEARTBEATS: u32 = 4;

/// A leader that was silent for this many of the longest election timeouts no longer counts as known: one is the
/// others' cue to elect, and within another a new one is heard of if there is a quorum.
pub const LEADER_SILENCE_ELECTIONS: u32 = 2;

/// Least time between two tries to hand leadership over because of the clock.
pub const HAND_OVER_INTERVAL: Duration = Duration::from_secs(1);

/// Longest the leader sleeps between looks at the book's timers.
pub const TIMER_POLL: Duration = Duration::from_millis(100);

/// Shortest sleep between looks: timers are ms, and what is overdue must not keep the task spinning.
pub const TIMER_PAUSE_MIN: Duration = Duration::from_millis(5);

/// Ticks proposed in a row while the book says that more is due, before other work gets a turn.
pub const TICKS_IN_A_ROW_MAX: u32 = 64;

/// Readers that may wait for one barrier. Each is a small channel end.
pub const READS_WAITING_MAX: usize = 65_536;

/// Bytes of one chunk of a snapshot on the wire.
pub const SNAPSHOT_CHUNK_BYTES: usize = 256 << 10;

/// Silence after which a snapshot transfer is given up.
pub const SNAPSHOT_IDLE: Duration = Duration::from_secs(10);

/// Records written between two pauses of a snapshot build, so that other tasks get a turn.
pub const SNAPSHOT_RECORDS_PER_STEP: usize = 1024;

/// The digest is kept at every index that is a multiple of this.
pub const DIGEST_INTERVAL: u64 = 256;

/// How many digests are kept: enough to compare members that are some thousand entries apart.
pub const DIGESTS_KEPT: usize = 64;

/// Most bytes of entries in one append request; at least one entry always goes.
pub const APPEND_BYTES_MAX: usize = 1 << 20;

/// Largest peer message: an append request or one entry with a whole plan, and its frame.
pub const PEER_MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Deadline of a call that is not replication: vote, identify, transfer.
pub const PEER_CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The newest version of the book's rules that this program knows.
pub const RULES_VERSION: u32 = 1;

const _: () = assert!(APPEND_BYTES_MAX + holdfast_ledger::limits::PLAN_BYTES_MAX < PEER_MESSAGE_BYTES_MAX);
const _: () = assert!(EPOCHS_AHEAD >= 2);

/// Longest a receiver may take from the last block of a snapshot to its answer: verifying and
/// restoring some tens of millions of records.
pub const SNAPSHOT_INSTALL_MAX: Duration = Duration::from_secs(120);

/// Deadline of what the leader proposes by itself: the next try comes with the next look.
pub const TICK_DEADLINE: Duration = Duration::from_secs(2);

/// How often a node without a log asks its founders or seeds.
pub const FOUND_POLL: Duration = Duration::from_millis(200);

/// How often the applied bytes and commands are compared with the snapshot policy.
pub const SNAPSHOT_POLL: Duration = Duration::from_millis(500);

/// How long a stopping leader waits for another to take over: an election and more on a loaded machine. It
/// waits for nobody who does not answer.
pub const HAND_OVER_WAIT: Duration = Duration::from_secs(2);

/// How often it looks meanwhile.
pub const HAND_OVER_POLL: Duration = Duration::from_millis(10);

/// Time to connect to a peer.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A peer's connection is probed after this much silence…
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// …and given up after this much more: a dead connection must not hide behind TCP's retries.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// HTTP/2 window of peer connections: several appends under way.
pub const STREAM_WINDOW_BYTES: u32 = 4 << 20;

/// Scopes that are remembered as refusing: a hash and a byte each. Past it they are learned anew.
pub const REFUSING_SCOPES_MAX: usize = 65_536;

/// How many requests that it would admit a scope meets before it counts as refusing no more: enough that small
/// requests do not hide that large ones are refused.
pub const RELENT_AFTER: u8 = 16;
