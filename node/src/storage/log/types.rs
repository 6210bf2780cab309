//! What the log is given and gives back.

use std::io;

use bytes::Bytes;

use crate::storage::limits;

/// What an entry is, for the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EntryKind {
    /// Carries a payload of commands.
    Normal = 1,
    /// Carries nothing (a new leader's first entry).
    Blank = 2,
    /// Carries a membership.
    Membership = 3,
}

impl EntryKind {
    pub(super) fn from_u8(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Normal),
            2 => Some(Self::Blank),
            3 => Some(Self::Membership),
            _ => None,
        }
    }
}

/// Where in the replicated log, and under whose leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The term it was proposed in.
    pub term: u64,
    /// The node that led the term (0 where the layer above does not tell).
    pub leader_node: u64,
    /// The index, dense.
    pub index: u64,
}

/// One entry of the replicated log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it stands.
    pub position: LogPosition,
    /// What it is.
    pub kind: EntryKind,
    /// Opaque to the log.
    pub payload: Bytes,
}

impl LogEntry {
    /// The index.
    pub fn index(&self) -> u64 {
        self.position.index
    }
}

/// A vote, or the leadership accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogVote {
    /// The term.
    pub term: u64,
    /// Whom the vote is for.
    pub node: u64,
    /// Whether that node is known to have won.
    pub committed: bool,
}

/// How far the log reaches. Entries exist after `purged` up to `last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogBounds {
    /// The last position that was purged.
    pub purged: Option<LogPosition>,
    /// The last position, which is `purged` if there is no entry.
    pub last: Option<LogPosition>,
}

/// The committed position after a truncation. Raft never voids a committed entry, but the position is written
/// without waiting for the entries it speaks of, so one that speaks of void entries must not outlive them.
pub(super) fn committed_within(
    committed: Option<LogPosition>,
    last: Option<LogPosition>,
) -> Option<LogPosition> {
    let last = last.map(|last| last.index);
    committed.filter(|committed| Some(committed.index) <= last)
}

/// Called once when what it belongs to is durable, or with the error that ended the log.
/// Runs on the sync worker: it must not block.
pub type Done = Box<dyn FnOnce(io::Result<()>) + Send>;

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The Raft group that this log belongs to.
    pub group: u64,
    /// A segment ends with the frame that reaches this many bytes.
    pub segment_bytes: u64,
    /// Payload bytes of written entries kept in memory for readers. Entries not yet written are always kept.
    pub cache_bytes: usize,
    /// Appended bytes that may wait for a sync before the log counts as failed.
    pub unsynced_bytes_max: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            group: 0,
            segment_bytes: limits::LOG_SEGMENT_BYTES,
            cache_bytes: limits::LOG_CACHE_BYTES,
            unsynced_bytes_max: limits::LOG_UNSYNCED_BYTES_MAX,
        }
    }
}

/// Counters for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Segment files.
    pub segments: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes appended and not yet synced.
    pub unsynced_bytes: u64,
    /// Payload bytes in the cache.
    pub cache_bytes: u64,
    /// Entries in the cache.
    pub cache_entries: u64,
    /// Group syncs so far.
    pub syncs: u64,
}
