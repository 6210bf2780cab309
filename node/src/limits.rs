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

/// Slots of the book that an audit compares with the index under one lock: about 1 ms, as long as a full entry.
pub const AUDIT_SLOTS_PER_LOOK: u32 = 8_192;

/// Longest deadline that a call can have; longer ones count as this.
pub const DEADLINE_MAX: Duration = Duration::from_secs(600);

/// How much earlier than the caller's deadline we answer at most: a round trip on one machine and the
/// time that a loaded one takes to send it.
pub const DEADLINE_HEAD_START_MAX: Duration = Duration::from_millis(5);

/// Commands of one message whose deadlines lie within this fraction of each other are proposed together.
/// The earliest deadline counts for all of them, so none is begun too late and some are given up this much early.
pub const DEADLINE_GROUP_FRACTION: u32 = 8;

/// Most threads of the clients' runtime: the disk and Raft's one thread are the bottleneck long before.
pub const CLIENT_THREADS_MAX: usize = 8;

/// HTTP/2 window of one stream of a client: two full batches may be on their way.
pub const STREAM_WINDOW_BYTES: u32 = 2 << 20;

/// HTTP/2 window of one connection of a client.
pub const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;

/// Most calls of one connection at a time; more wait at the client.
pub const CLIENT_STREAMS_MAX: u32 = 1_024;

/// Most connections of clients that can be configured. Each may make the node buffer one connection window.
pub const CONNECTIONS_CEILING: u64 = 1 << 16;

/// Connections past the bound that are told so at the same time; more are closed without a word.
pub const TURNED_AWAY_MAX: usize = 64;

/// How long a connection past the bound lives: long enough to hear why it is not served.
pub const TURNED_AWAY_LIFE: Duration = Duration::from_secs(2);

/// Commands of all batched streams that may be unanswered or have answers that their clients do not read, for
/// each that may wait to be proposed. At up to 400 bytes each the default of 65 536 gives 100 MiB.
pub const STREAM_COMMANDS_PER_QUEUED: u64 = 4;

/// Silence after which a client's connection is tried.
pub const CLIENT_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(20);

/// How long a tried connection has to answer before it is closed.
pub const CLIENT_KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a stopping node answers what is under way before it cuts clients off.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a call that hands leadership over looks whether it was taken.
pub const HAND_OVER_POLL: Duration = Duration::from_millis(5);

/// How long a stopped runtime waits for its last blocking work.
pub const RUNTIME_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// How long one member waits for another's answer to how it is.
pub const MEMBER_STATUS_TIMEOUT: Duration = Duration::from_secs(1);

/// Callers that may follow events at a time: dashboards, tools, a gateway each.
pub const EVENT_STREAMS_MAX: usize = 256;

/// Events in one message of the stream: the largest is about 4 KiB, most are 200 bytes.
pub const EVENTS_PER_MESSAGE_MAX: usize = 256;

const _: () = assert!(EVENTS_PER_MESSAGE_MAX * (4 << 10) < holdfast_proto::limits::MESSAGE_BYTES_MAX);
const _: () = assert!(MESSAGE_BYTES_FLOOR < MESSAGE_BYTES_CEILING);

/// Most entries of one page of reservations with unknown usage: a receipt is some hundred bytes.
pub const UNKNOWN_PAGE_ENTRIES_MAX: usize = 1_000;

/// Deliveries to webhooks under way at a time: 64 receivers that hang for the whole deadline leave the others 6 a second.
pub const WEBHOOKS_UNDER_WAY_MAX: usize = 64;

/// The first pause after a delivery failed, ms; each further one is twice as long.
pub const WEBHOOK_PAUSE_MS_MIN: u64 = 1_000;

/// The longest pause: a receiver that is back after a night is served again within minutes.
pub const WEBHOOK_PAUSE_MS_MAX: u64 = 300_000;

/// Events that a webhook's cursor may be behind without anything to deliver: a quarter of those that are kept, so that
/// a new leader does not have to say that some may have been missed.
pub const WEBHOOK_CURSOR_LAG_MAX: u64 = holdfast_ledger::limits::EVENTS_KEPT_MAX as u64 / 4;

/// Shortest time between two entries that record cursors: a busy webhook costs the log four small entries a second.
pub const WEBHOOK_RECORD_PAUSE: Duration = Duration::from_millis(250);

/// How often the sender looks whether it leads, ms: a look at what is known here.
pub const WEBHOOK_POLL: Duration = Duration::from_millis(250);

/// Of an answer, what is read so that the connection can be used again.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Longest deadline of a delivery that can be configured, ms.
pub const WEBHOOK_DEADLINE_MS_CEILING: u64 = 60_000;
