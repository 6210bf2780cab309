//! The Raft log: one ordered stream of votes, entries, truncations and purge points in segment files.
//!
//! [`Log`] is the handle that everybody clones; [`SyncWorker`] is the one that writes. A call on the handle takes
//! effect in memory at once and is queued; the worker writes everything queued as one group, syncs once, and then
//! calls the completions in order. So an append is readable at once and durable when its completion says so, and a
//! vote can never overtake the entries before it.
//!
//! # Architecture invariants
//!
//! - A completion with `Ok` is called only after the `sync` that covers it returned `Ok`.
//! - The bytes in the files are a prefix of the stream of calls, whatever was lost.
//! - The worker is the only one that changes files; readers only read what it wrote.
//! - After the first error nothing is written any more: every call and every completion gets that error.

mod error;
mod frame;
mod read;
mod record;
mod recover;
mod replay;
mod segment;
mod spans;
mod state;
mod thread;
mod types;
mod worker;

use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub use error::LogOpenError;
use state::State;
pub use thread::{SyncThread, spawn_sync_thread};
pub use types::{Done, EntryKind, LogBounds, LogConfig, LogEntry, LogPosition, LogStats, LogVote};
pub use worker::SyncWorker;

use super::disk::Disk;

/// A handle to the log. Cheap to clone; every method may be called from any thread and none waits for the disk,
/// but for [`Log::read`] of entries that have left the cache.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    state: Mutex<State>,
    work: Condvar,
    wake: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        self.work.notify_one();
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(wake) = wake {
            wake();
        }
    }

    /// As [`Shared::fail`], for those who are not the worker: it has completions of its own to call.
    fn fail_and_wake(&self, error: &io::Error) -> io::Error {
        let error = self.fail(error);
        self.notify();
        error
    }

    /// Ends the log and tells everyone who waits.
    fn fail(&self, error: &io::Error) -> io::Error {
        let (poison, waiting) = self.lock().fail(error);
        for done in waiting {
            done(Err(poison.error()));
        }
        poison.error()
    }
}

impl Log {
    /// Opens the log in the directory `log` of a disk, or makes it. Cuts off a tail that was never synced and refuses
    /// anything else that is not whole.
    ///
    /// Nothing becomes durable until somebody drives the worker: [`spawn_sync_thread`], or a simulated task that calls
    /// [`SyncWorker::run_once`] whenever [`Log::set_wake`]'s function was called.
    pub fn open(disk: Arc<dyn Disk>, config: LogConfig) -> Result<(Self, SyncWorker), LogOpenError> {
        let (state, start) = recover::recover(disk.as_ref(), &config)?;
        let shared =
            Arc::new(Shared { state: Mutex::new(state), work: Condvar::new(), wake: Mutex::new(None) });
        let worker = SyncWorker::new(Arc::clone(&shared), disk, config, start);
        Ok((Self { shared }, worker))
    }

    /// Calls `wake` whenever there is work for the sync worker, from whatever thread made it.
    pub fn set_wake(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        *self.shared.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }

    fn change(&self, change: impl FnOnce(&mut State) -> io::Result<()>) -> io::Result<()> {
        change(&mut self.shared.lock())?;
        self.shared.notify();
        Ok(())
    }

    /// Appends entries that continue the log (any index may begin an empty one). They can be read when this returns;
    /// `done` is called when they are durable. Entries that do not continue the log are refused with `InvalidInput`
    /// and change nothing; `done` is dropped then.
    pub fn append(&self, entries: Vec<LogEntry>, done: Option<Done>) -> io::Result<()> {
        self.change(|state| state.append(entries, done))
    }

    /// Makes every entry after `keep` void (all of them, if `None`). `keep` at or beyond the end changes nothing;
    /// before the purge point it is refused with `InvalidInput`.
    pub fn truncate_after(&self, keep: Option<LogPosition>, done: Option<Done>) -> io::Result<()> {
        self.change(|state| state.truncate_after(keep, done))
    }

    /// Gives up every entry up to `upto`, inclusive. It may lie beyond the end (a snapshot was installed): the log is
    /// empty then and goes on after it. Segments are deleted by the worker, once the purge point is durable.
    pub fn purge(&self, upto: LogPosition, done: Option<Done>) -> io::Result<()> {
        self.change(|state| state.purge(upto, done))
    }

    /// Saves the vote. It counts only once `done` was called: do not answer before.
    pub fn save_vote(&self, vote: LogVote, done: Option<Done>) -> io::Result<()> {
        self.change(|state| state.save_vote(vote, done))
    }

    /// Remembers how far the log is committed. Written with the next group that is written anyway.
    pub fn save_committed(&self, committed: Option<LogPosition>) -> io::Result<()> {
        self.shared.lock().save_committed(committed)
    }

    /// The last vote saved.
    pub fn vote(&self) -> io::Result<Option<LogVote>> {
        let state = self.shared.lock();
        state.check()?;
        Ok(state.vote)
    }

    /// The committed position last remembered. After a restart it may lag, and it never lies beyond the last entry.
    pub fn committed(&self) -> io::Result<Option<LogPosition>> {
        let state = self.shared.lock();
        state.check()?;
        Ok(state.committed)
    }

    /// The purge point and the last position.
    pub fn bounds(&self) -> io::Result<LogBounds> {
        let state = self.shared.lock();
        state.check()?;
        Ok(state.bounds)
    }

    /// Every entry in `range` that the log holds: those purged and those not yet appended are left out at the ends.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<LogEntry>> {
        read::read(&self.shared, range, usize::MAX)
    }

    /// As [`Log::read`], but stops before the payloads exceed `bytes_max`; the first entry comes whatever its size.
    pub fn read_limited(&self, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
        read::read(&self.shared, range, bytes_max)
    }

    /// The error that ended the log, if one did.
    pub fn health(&self) -> io::Result<()> {
        match &self.shared.lock().poison {
            Some(poison) => Err(poison.error()),
            None => Ok(()),
        }
    }

    /// Counters for metrics.
    pub fn stats(&self) -> LogStats {
        self.shared.lock().stats()
    }

    /// Takes no more changes; the sync thread writes what is queued and ends.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.notify();
    }
}
