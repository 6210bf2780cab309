//! The index's own thread, what feeds it, and what reads it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::guard::{HistoryError, mark_panics, unmark_panics};
use super::index::{Index, Meta, Paths};
use super::keys;
use super::record::{HistoryId, HistoryRecord};
use crate::storage::limits::{
    HISTORY_BYTES_MAX, HISTORY_PAGE_RECORDS_MAX, HISTORY_QUEUE_RECORDS_MAX, HISTORY_RECORDS_PER_SECOND_MAX,
};

/// How the index is kept.
#[derive(Clone, Debug)]
pub struct HistoryConfig {
    /// Records older than this (by book time, ms) go.
    pub retention_ms: u64,
    /// The oldest records go when keys and values take more than this.
    pub bytes_max: u64,
    /// Records that may wait to be written; past it they are left out.
    pub queue_max: usize,
    /// Records written in a second at most: sled takes tens of µs of CPU for each, which a busy node needs for better.
    pub records_per_second_max: u32,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            retention_ms: 90 * 24 * 3_600_000,
            bytes_max: HISTORY_BYTES_MAX,
            queue_max: HISTORY_QUEUE_RECORDS_MAX,
            records_per_second_max: HISTORY_RECORDS_PER_SECOND_MAX,
        }
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

/// Makes a batch on the index's thread, so that whoever feeds it need not.
pub type MakeBatch = Box<dyn FnOnce() -> HistoryBatch + Send>;

enum Message {
    /// So many records.
    Batch(usize, MakeBatch),
    /// A reader met something that cannot be.
    Failed(HistoryError),
    Stop,
}

struct Shared {
    index: RwLock<Result<Index, HistoryError>>,
    queued: AtomicUsize,
    left_out: AtomicU64,
    rebuilt: AtomicBool,
    stopping: AtomicBool,
}

/// The apply stream's end: hands batches over without ever waiting. For one caller at a time.
pub struct HistoryFeed {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
    queue_max: usize,
    covered_index: AtomicU64,
}

impl HistoryFeed {
    /// Begins after `index`, to which what comes next is the continuation (0, or the snapshot that was restored).
    pub fn start_after(&self, index: u64) {
        self.covered_index.store(index, Ordering::Relaxed);
    }

    /// Hands over what the entry at `index` did: `records` of them, which `make` gives; `since_index` is filled in here.
    /// If the index is too far behind, the batch is left out, and the index will say that it is complete only after it.
    pub fn offer(&self, index: u64, records: usize, make: MakeBatch) {
        if records == 0 {
            return;
        }
        let since_index = self.covered_index.swap(index, Ordering::Relaxed);
        self.send(records, Box::new(move || HistoryBatch { since_index, index, ..make() }));
    }

    /// Hands over what a restored book still knows: everything from `first_revision` on, whatever was handed over before.
    pub fn offer_retained(&self, batch: HistoryBatch) {
        let batch = HistoryBatch { since_index: batch.index, ..batch };
        self.send(batch.records.len(), Box::new(move || batch));
    }

    fn send(&self, records: usize, make: MakeBatch) {
        let queued = self.shared.queued.fetch_add(records, Ordering::Relaxed);
        let fits = queued == 0 || queued.saturating_add(records) <= self.queue_max;
        if !fits || self.sender.try_send(Message::Batch(records, make)).is_err() {
            self.shared.queued.fetch_sub(records, Ordering::Relaxed);
            self.shared.left_out.fetch_add(records as u64, Ordering::Relaxed);
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
    /// Records that were left out because the index was behind or gone.
    pub fn left_out(&self) -> u64 {
        self.shared.left_out.load(Ordering::Relaxed)
    }

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
    shared: Arc<Shared>,
}

impl HistoryThread {
    /// Closes the index and waits for the end. What is still queued is left out: it comes again when the log is applied
    /// again.
    pub fn stop(self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
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
        queued: AtomicUsize::new(0),
        left_out: AtomicU64::new(0),
        rebuilt: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
    });
    let queue_max = config.queue_max;
    let writer = Writer { dir: dir.to_owned(), config, shared: Arc::clone(&shared) };
    let handle = thread::Builder::new().name("history".into()).spawn(move || writer.run(&receiver))?;
    let feed = HistoryFeed {
        sender: sender.clone(),
        shared: Arc::clone(&shared),
        queue_max,
        covered_index: AtomicU64::new(0),
    };
    let reader = HistoryReader { sender: sender.clone(), shared: Arc::clone(&shared) };
    Ok((feed, reader, HistoryThread { handle, sender, shared }))
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
        let mut pace = Pace::new(self.config.records_per_second_max);
        loop {
            match receiver.recv() {
                Ok(Message::Batch(records, _)) if self.shared.stopping.load(Ordering::Relaxed) => {
                    self.shared.left_out.fetch_add(records as u64, Ordering::Relaxed);
                }
                Ok(Message::Batch(records, make)) => {
                    let batch = make();
                    if let Err(error) = self.take(&batch) {
                        self.rebuild(&paths, &error);
                        // What made it fail may not be at fault: it is the first of the new one.
                        let _ = self.take(&batch);
                    }
                    pace.wait(records);
                    self.shared.queued.fetch_sub(records, Ordering::Relaxed);
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

/// Spreads work over time.
struct Pace {
    per_second_max: u32,
    /// When everything taken so far is paid for.
    paid: Instant,
}

impl Pace {
    fn new(per_second_max: u32) -> Self {
        Self { per_second_max: per_second_max.max(1), paid: Instant::now() }
    }

    /// Sleeps until this many more may be taken.
    fn wait(&mut self, records: usize) {
        let now = Instant::now();
        let cost = Duration::from_secs_f64(records as f64 / f64::from(self.per_second_max));
        // A pause is not saved up for longer than a second.
        let earliest = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        self.paid = self.paid.max(earliest) + cost;
        if let Some(ahead) = self.paid.checked_duration_since(now) {
            thread::sleep(ahead);
        }
    }
}
