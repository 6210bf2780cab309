//! The index's own thread, what feeds it, and what reads it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use super::guard::{HistoryError, mark_panics, unmark_panics};
use super::index::{Index, Meta, Paths};
use super::keys;
use super::record::{HistoryId, HistoryRecord};
use crate::storage::limits::{HISTORY_BYTES_MAX, HISTORY_PAGE_RECORDS_MAX};

/// How the index is kept.
#[derive(Clone, Debug)]
pub struct HistoryConfig {
    /// Records older than this (by book time, ms) go.
    pub retention_ms: u64,
    /// The oldest records go when keys and values take more than this.
    pub bytes_max: u64,
    /// Batches that may wait to be written; past it they are left out.
    pub queue_max: usize,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self { retention_ms: 90 * 24 * 3_600_000, bytes_max: HISTORY_BYTES_MAX, queue_max: 4_096 }
    }
}

/// What the entries after `since_index` up to `index` have ended or made happen.
///
/// [`HistoryFeed`] makes these from the apply stream. After a restart the owner also offers one with what the book it
/// restored still knows (`index` of the snapshot, `first_revision` from which on that is everything): an index that
/// lost something takes it, one that did not leaves it.
#[derive(Clone, Debug, Default)]
pub struct HistoryBatch {
    /// Nothing happened between this log index and the batch that is not in it.
    pub since_index: u64,
    /// The log index after which this is the state.
    pub index: u64,
    /// What is in the batch is everything from this revision on.
    pub first_revision: u64,
    /// The book's revision after `index`.
    pub last_revision: u64,
    /// Book time after `index`, ms.
    pub clock_ms: u64,
    /// In the order in which it happened.
    pub records: Vec<HistoryRecord>,
}

enum Message {
    Batch(HistoryBatch),
    /// A reader met something that cannot be.
    Failed(HistoryError),
    Stop,
}

struct Shared {
    index: RwLock<Result<Index, HistoryError>>,
    left_out: AtomicU64,
    rebuilt: AtomicBool,
}

/// The apply stream's end: hands batches over without ever waiting.
pub struct HistoryFeed {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
    covered_index: u64,
}

impl HistoryFeed {
    /// Begins after `index`, to which what comes next is the continuation (0, or the snapshot that was restored).
    pub fn start_after(&mut self, index: u64) {
        self.covered_index = index;
    }

    /// Hands over what the entry at `index` did; `since_index` is filled in here. If the index is too far behind, the
    /// batch is left out: the index will say that it is complete only after it.
    pub fn offer(&mut self, mut batch: HistoryBatch) {
        if batch.records.is_empty() {
            return;
        }
        batch.since_index = self.covered_index;
        self.covered_index = batch.index;
        self.send(batch);
    }

    /// Hands over what a restored book still knows: everything from `first_revision` on, whatever was handed over before.
    pub fn offer_retained(&self, mut batch: HistoryBatch) {
        batch.since_index = batch.index;
        self.send(batch);
    }

    fn send(&self, batch: HistoryBatch) {
        let records = batch.records.len() as u64;
        match self.sender.try_send(Message::Batch(batch)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.left_out.fetch_add(records, Ordering::Relaxed);
            }
        }
    }

    /// Records that were left out because the index was behind or gone.
    pub fn left_out(&self) -> u64 {
        self.shared.left_out.load(Ordering::Relaxed)
    }

    /// True once after the index had to be dropped and begun anew: the time to offer what the book still knows.
    pub fn take_rebuilt(&self) -> bool {
        self.shared.rebuilt.swap(false, Ordering::Relaxed)
    }
}

/// An answer of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// Oldest first.
    pub records: Vec<HistoryRecord>,
    /// There are more behind the last one.
    pub more: bool,
    /// Everything from this revision on is in the index; 0: nothing is known to be.
    pub complete_from_revision: u64,
    /// The last revision that is in the index.
    pub indexed_revision: u64,
}

/// Reads the index. Cheap to clone.
#[derive(Clone)]
pub struct HistoryReader {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
}

impl HistoryReader {
    /// One reservation, by its id.
    pub fn reservation(&self, id: [u8; 16]) -> Result<HistoryPage, HistoryError> {
        self.read(|index| {
            let found = index.by_identity(&keys::identity(&HistoryId::Reservation(id)))?;
            Ok((found.into_iter().collect(), 1))
        })
    }

    /// Everything of a tenant from a revision and an instant on, at most `records_max`. A page never ends within a
    /// revision (unless that revision alone exceeds it), so the next one goes on from the last revision + 1.
    pub fn tenant(
        &self,
        tenant: &str,
        from_revision: u64,
        since_ms: u64,
        records_max: usize,
    ) -> Result<HistoryPage, HistoryError> {
        let records_max = records_max.clamp(1, HISTORY_PAGE_RECORDS_MAX);
        self.read(|index| Ok((index.by_tenant(tenant, from_revision, since_ms, records_max)?, records_max)))
    }

    fn read(
        &self,
        read: impl FnOnce(&Index) -> Result<(Vec<HistoryRecord>, usize), HistoryError>,
    ) -> Result<HistoryPage, HistoryError> {
        let guard = self.shared.index.read().unwrap_or_else(PoisonError::into_inner);
        let index = guard.as_ref().map_err(Clone::clone)?;
        let (mut records, records_max) = read(index).inspect_err(|error| {
            // If the queue is full the next reader will say so again.
            let _ = self.sender.try_send(Message::Failed(error.clone()));
        })?;
        let more = records.len() > records_max;
        if more {
            end_at_a_revision(&mut records, records_max);
        }
        let Meta { complete_from_revision, indexed_revision, .. } = index.meta;
        Ok(HistoryPage { records, more, complete_from_revision, indexed_revision })
    }
}

fn end_at_a_revision(records: &mut Vec<HistoryRecord>, records_max: usize) {
    let next = records.get(records_max).map(|record| record.revision);
    records.truncate(records_max);
    let whole = records.iter().take_while(|record| Some(record.revision) != next).count();
    if whole > 0 {
        records.truncate(whole);
    }
}

/// The running thread. Its owner stops it.
pub struct HistoryThread {
    handle: JoinHandle<()>,
    sender: SyncSender<Message>,
}

impl HistoryThread {
    /// Writes what is queued, closes the index and waits for the end.
    pub fn stop(self) {
        let _ = self.sender.send(Message::Stop);
        let _ = self.handle.join();
    }
}

/// Starts the index in a directory of the machine. Opening and checking it happen on its thread: until then readers are
/// told that it is not available, and nobody waits.
pub fn spawn_history(
    dir: &Path,
    config: HistoryConfig,
) -> std::io::Result<(HistoryFeed, HistoryReader, HistoryThread)> {
    std::fs::create_dir_all(dir)?;
    let (sender, receiver) = sync_channel(config.queue_max.max(1));
    let opening = Err(HistoryError::Unavailable("it is being opened".into()));
    let shared = Arc::new(Shared {
        index: RwLock::new(opening),
        left_out: AtomicU64::new(0),
        rebuilt: AtomicBool::new(false),
    });
    let writer = Writer { dir: dir.to_owned(), config, shared: Arc::clone(&shared) };
    let handle = thread::Builder::new().name("history".into()).spawn(move || writer.run(&receiver))?;
    let feed = HistoryFeed { sender: sender.clone(), shared: Arc::clone(&shared), covered_index: 0 };
    Ok((feed, HistoryReader { sender: sender.clone(), shared }, HistoryThread { handle, sender }))
}

struct Writer {
    dir: PathBuf,
    config: HistoryConfig,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(&self, receiver: &Receiver<Message>) {
        let paths = Paths::new(&self.dir);
        mark_panics(&paths.suspect);
        let opened = Index::open(&paths);
        match opened {
            Ok(index) => drop(self.set(Ok(index))),
            Err(error) => self.rebuild(&paths, &error),
        }
        loop {
            match receiver.recv() {
                Ok(Message::Batch(batch)) => {
                    if let Err(error) = self.take(&batch) {
                        self.rebuild(&paths, &error);
                        // What made it fail may not be at fault: it is the first of the new one.
                        let _ = self.take(&batch);
                    }
                }
                Ok(Message::Failed(error)) => self.rebuild(&paths, &error),
                Ok(Message::Stop) | Err(_) => break,
            }
        }
        let last = self.set(Err(HistoryError::Unavailable("the node is stopping".into())));
        if let Ok(index) = last {
            let _ = index.flush();
        }
        unmark_panics(&paths.suspect);
    }

    fn take(&self, batch: &HistoryBatch) -> Result<(), HistoryError> {
        match self.shared.index.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Ok(index) => index.take(batch, &self.config),
            Err(_) => {
                self.shared.left_out.fetch_add(batch.records.len() as u64, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    fn set(&self, index: Result<Index, HistoryError>) -> Result<Index, HistoryError> {
        std::mem::replace(&mut *self.shared.index.write().unwrap_or_else(PoisonError::into_inner), index)
    }

    /// Drops the index and begins a new one; if even that fails, there is none until the next start.
    fn rebuild(&self, paths: &Paths, error: &HistoryError) {
        tracing::warn!(%error, "the history index is dropped and begun anew; what it held is lost");
        drop(self.set(Err(HistoryError::Unavailable("it is being rebuilt".into()))));
        let fresh = paths.drop_index().and_then(|()| Index::open(paths));
        if let Err(error) = &fresh {
            tracing::error!(%error, "the history index cannot be begun anew; there is none until the next start");
        }
        drop(self.set(fresh));
        self.shared.rebuilt.store(true, Ordering::Relaxed);
    }
}
