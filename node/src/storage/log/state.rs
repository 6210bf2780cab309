//! What is known in memory: the tail of the log, where the rest is, and what waits to be written.

use std::collections::VecDeque;
use std::io;

use super::spans::Span;
use super::types::{Done, LogBounds, LogConfig, LogEntry, LogPosition, LogStats, LogVote, committed_within};

/// Something to be written, in the order of the calls.
pub(super) enum Op {
    Entries(Vec<LogEntry>),
    Vote(LogVote),
    Truncate(Option<LogPosition>),
    Purge(LogPosition),
}

pub(super) struct Queued {
    pub(super) op: Op,
    pub(super) done: Option<Done>,
    pub(super) bytes: usize,
}

/// What the worker took to write as one group.
pub(super) struct Group {
    pub(super) ops: Vec<Queued>,
    /// The committed position, if it changed since it was last written.
    pub(super) committed: Option<Option<LogPosition>>,
    /// Everything appended under a ticket up to this one is in the group or was in one before.
    pub(super) ticket: u64,
}

/// The error that ended the log, kept to be given to everyone who asks.
#[derive(Clone, Debug)]
pub(super) struct Poison {
    kind: io::ErrorKind,
    message: String,
}

impl Poison {
    pub(super) fn new(error: &io::Error) -> Self {
        Self { kind: error.kind(), message: format!("the log has failed and takes nothing more: {error}") }
    }

    pub(super) fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.message.clone())
    }
}

struct Cached {
    entry: LogEntry,
    /// Once this ticket is written, the entry can be read from its segment.
    ticket: u64,
}

/// The part of a log that its users and its worker share.
pub(super) struct State {
    pub(super) vote: Option<LogVote>,
    pub(super) committed: Option<LogPosition>,
    pub(super) bounds: LogBounds,
    /// The tail of the log, contiguous up to `bounds.last`. What is not in it is in `spans`.
    cache: VecDeque<Cached>,
    cache_bytes: usize,
    /// Where written entries are. Changed by the worker only, in the order of the stream, so it may still hold entries
    /// that are void or purged: the bounds decide.
    pub(super) spans: VecDeque<Span>,
    queue: Vec<Queued>,
    committed_unwritten: bool,
    ticket: u64,
    written_ticket: u64,
    unsynced_bytes: usize,
    pub(super) stats: LogStats,
    pub(super) poison: Option<Poison>,
    pub(super) closed: bool,
    config: LogConfig,
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl State {
    pub(super) fn new(
        config: LogConfig,
        vote: Option<LogVote>,
        committed: Option<LogPosition>,
        bounds: LogBounds,
        spans: VecDeque<Span>,
        stats: LogStats,
    ) -> Self {
        Self {
            vote,
            committed,
            bounds,
            cache: VecDeque::new(),
            cache_bytes: 0,
            spans,
            queue: Vec::new(),
            committed_unwritten: false,
            ticket: 0,
            written_ticket: 0,
            unsynced_bytes: 0,
            stats,
            poison: None,
            closed: false,
            config,
        }
    }

    pub(super) fn check(&self) -> io::Result<()> {
        match &self.poison {
            Some(poison) => Err(poison.error()),
            None => Ok(()),
        }
    }

    fn check_open(&self) -> io::Result<()> {
        self.check()?;
        if self.closed { Err(io::Error::other("the log is closed")) } else { Ok(()) }
    }

    fn push(&mut self, op: Op, bytes: usize, done: Option<Done>) {
        self.ticket += 1;
        self.unsynced_bytes += bytes;
        self.queue.push(Queued { op, done, bytes });
    }

    /// Takes entries that continue the log.
    pub(super) fn append(&mut self, entries: Vec<LogEntry>, done: Option<Done>) -> io::Result<()> {
        self.check_open()?;
        let mut expected = self.bounds.last.map(|last| last.index + 1);
        for entry in &entries {
            if expected.is_some_and(|expected| expected != entry.index()) {
                return Err(invalid(format!(
                    "entry {} does not continue the log, which ends at {:?}",
                    entry.index(),
                    self.bounds.last
                )));
            }
            if entry.payload.len() > crate::storage::limits::LOG_ENTRY_PAYLOAD_BYTES_MAX {
                return Err(invalid(format!("entry {} has {} bytes", entry.index(), entry.payload.len())));
            }
            expected = Some(entry.index() + 1);
        }
        let bytes: usize =
            entries.iter().map(|entry| entry.payload.len() + super::record::ENTRY_OVERHEAD_BYTES).sum();
        if self.unsynced_bytes.saturating_add(bytes) > self.config.unsynced_bytes_max {
            return Err(io::Error::other(format!(
                "the disk does not keep up: {} bytes wait to be synced, the bound is {}",
                self.unsynced_bytes, self.config.unsynced_bytes_max
            )));
        }
        let ticket = self.ticket + 1;
        for entry in &entries {
            self.cache_bytes += entry.payload.len();
            self.cache.push_back(Cached { entry: entry.clone(), ticket });
        }
        if let Some(last) = entries.last() {
            self.bounds.last = Some(last.position);
        }
        self.push(Op::Entries(entries), bytes, done);
        Ok(())
    }

    /// Makes everything after `keep` void.
    pub(super) fn truncate_after(&mut self, keep: Option<LogPosition>, done: Option<Done>) -> io::Result<()> {
        self.check_open()?;
        let purged = self.bounds.purged.map(|purged| purged.index);
        let kept = keep.map(|keep| keep.index);
        if kept < purged {
            return Err(invalid(format!("cannot truncate after {kept:?}: purged up to {purged:?}")));
        }
        if kept >= self.bounds.last.map(|last| last.index) {
            // Nothing to make void, but the caller may wait for what came before.
            self.push(Op::Entries(Vec::new()), 0, done);
            return Ok(());
        }
        while self.cache.back().is_some_and(|cached| Some(cached.entry.index()) > kept) {
            if let Some(cached) = self.cache.pop_back() {
                self.cache_bytes -= cached.entry.payload.len();
            }
        }
        self.bounds.last = keep;
        self.committed = committed_within(self.committed, keep);
        self.push(Op::Truncate(keep), 0, done);
        Ok(())
    }

    /// Gives up everything up to `upto`, which may lie beyond the end.
    pub(super) fn purge(&mut self, upto: LogPosition, done: Option<Done>) -> io::Result<()> {
        self.check_open()?;
        if self.bounds.purged.is_some_and(|purged| upto.index <= purged.index) {
            self.push(Op::Entries(Vec::new()), 0, done);
            return Ok(());
        }
        while self.cache.front().is_some_and(|cached| cached.entry.index() <= upto.index) {
            self.pop_cached();
        }
        self.bounds.purged = Some(upto);
        if self.bounds.last.is_none_or(|last| last.index <= upto.index) {
            self.bounds.last = Some(upto);
        }
        self.push(Op::Purge(upto), 0, done);
        Ok(())
    }

    pub(super) fn save_vote(&mut self, vote: LogVote, done: Option<Done>) -> io::Result<()> {
        self.check_open()?;
        self.vote = Some(vote);
        self.push(Op::Vote(vote), 0, done);
        Ok(())
    }

    /// Remembered at once, written with the next group: nothing waits for it.
    pub(super) fn save_committed(&mut self, committed: Option<LogPosition>) -> io::Result<()> {
        self.check_open()?;
        self.committed_unwritten |= self.committed != committed;
        self.committed = committed;
        Ok(())
    }

    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Everything queued, for one group. With `closing`, a committed position alone is worth one too.
    pub(super) fn take_group(&mut self, closing: bool) -> Option<Group> {
        if self.queue.is_empty() && !(closing && self.committed_unwritten) {
            return None;
        }
        let committed = std::mem::take(&mut self.committed_unwritten).then_some(self.committed);
        Some(Group { ops: std::mem::take(&mut self.queue), committed, ticket: self.ticket })
    }

    /// The group of this ticket can be read from its segments now.
    pub(super) fn written(&mut self, ticket: u64) {
        self.written_ticket = ticket;
        while self.cache_bytes > self.config.cache_bytes
            && self.cache.front().is_some_and(|cached| cached.ticket <= self.written_ticket)
        {
            self.pop_cached();
        }
    }

    fn pop_cached(&mut self) {
        if let Some(cached) = self.cache.pop_front() {
            self.cache_bytes -= cached.entry.payload.len();
        }
    }

    pub(super) fn synced(&mut self, bytes: usize) {
        self.unsynced_bytes = self.unsynced_bytes.saturating_sub(bytes);
        self.stats.syncs += 1;
    }

    /// Ends the log. Returns what waited, to be told.
    pub(super) fn fail(&mut self, error: &io::Error) -> (Poison, Vec<Done>) {
        let poison = self.poison.get_or_insert_with(|| Poison::new(error)).clone();
        let waiting = std::mem::take(&mut self.queue).into_iter().filter_map(|queued| queued.done).collect();
        (poison, waiting)
    }

    /// The first index held in memory; entries before it are in segments.
    pub(super) fn cache_start(&self) -> u64 {
        match self.cache.front() {
            Some(cached) => cached.entry.index(),
            None => self.bounds.last.map_or(0, |last| last.index + 1),
        }
    }

    /// Cached entries from `start` (which must not lie before the cache) to before `end`, within `bytes_max` of payload;
    /// at least one if there is one.
    pub(super) fn cached(&self, start: u64, end: u64, bytes_max: usize) -> Vec<LogEntry> {
        let skip = usize::try_from(start.saturating_sub(self.cache_start())).unwrap_or(usize::MAX);
        let mut bytes = 0usize;
        let mut first = true;
        self.cache
            .range(skip.min(self.cache.len())..)
            .map(|cached| &cached.entry)
            .take_while(|entry| {
                bytes = bytes.saturating_add(entry.payload.len());
                entry.index() < end && (std::mem::take(&mut first) || bytes <= bytes_max)
            })
            .cloned()
            .collect()
    }

    pub(super) fn stats(&self) -> LogStats {
        LogStats {
            unsynced_bytes: self.unsynced_bytes as u64,
            cache_bytes: self.cache_bytes as u64,
            cache_entries: self.cache.len() as u64,
            ..self.stats
        }
    }
}
