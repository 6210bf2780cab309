//! Every limit of the client has its name here, with the arithmetic behind it.

use std::time::Duration;

use holdfast_proto::limits::BATCH_COMMANDS_MAX;

/// How long a call may take in all, its retries included: an election of a second,
/// the detection of the dead leader, and room for both to go wrong once.
pub const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// How long a member may decide nothing while a call waits for it, before the same id is tried elsewhere.
/// A partitioned leader keeps accepting until its lease ends and answers nothing.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long a member may take to accept a connection and open the stream.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Pings on an idle or silent connection, so that a dead peer is noticed.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(2);

/// How long a ping may go unanswered.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Headers and trailers that a member may send: a status with every problem of a document.
pub const HEADER_BYTES_MAX: u32 = 64 << 10;

/// Calls queued for one member, before the client itself answers OVERLOADED.
pub const QUEUE_COMMANDS_MAX: usize = 8_192;

/// Commands taken from the queue of one member, waiting for the window or under way.
pub const IN_FLIGHT_COMMANDS_MAX: usize = 8_192;

/// Messages sent since the last answer came before the next one waits for an answer. With it the
/// stream clocks itself: what arrives meanwhile goes into one message. As many as a node has
/// entries under way.
pub const MESSAGES_UNANSWERED_MAX: usize = 4;

/// So many waiting commands are sent at once, window or not: a fat message loses nothing by going.
pub const BATCH_FULL_COMMANDS: usize = 256;

/// Messages handed to the transport that it has not taken yet.
pub const STREAM_MESSAGES_MAX: usize = 8;

/// First pause of the back-off, ms: about a commit on a slow disk.
pub const BACKOFF_FIRST_MS: u64 = 10;

/// Longest pause of the back-off, ms: half an election, so that a new leader is not left idle.
pub const BACKOFF_MAX_MS: u64 = 400;

/// Redirections to a named leader that a call follows at once; later ones pause first, since
/// members that name each other must not be hammered.
pub const REDIRECTS_AT_ONCE_MAX: u32 = 3;

/// Reservations that were dropped and wait for their release.
pub const ABANDONED_MAX: usize = 4_096;

/// Releases of abandoned reservations that run at the same time.
pub const ABANDONED_AT_ONCE_MAX: usize = 64;

/// Members that a client remembers; more than any cluster has.
pub const MEMBERS_MAX: usize = 64;

const _: () = assert!(BATCH_FULL_COMMANDS <= BATCH_COMMANDS_MAX);
const _: () = assert!(BATCH_FULL_COMMANDS <= IN_FLIGHT_COMMANDS_MAX);
const _: () = assert!(BACKOFF_FIRST_MS <= BACKOFF_MAX_MS);
const _: () = assert!(CONNECT_TIMEOUT.as_millis() <= ATTEMPT_TIMEOUT.as_millis());
const _: () = assert!(ATTEMPT_TIMEOUT.as_millis() < CALL_DEADLINE.as_millis());
