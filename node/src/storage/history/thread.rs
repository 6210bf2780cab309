//! What feeds the index and what reads it, and the start of its thread.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use super::guard::HistoryError;
use super::index::{Index, Meta};
use super::keys;
use super::record::{HistoryId, HistoryRecord};
use super::writer::Writer;
use crate::storage::limits::{
    HISTORY_BYTES_MAX, HISTORY_PAGE_RECORDS_MAX, HISTORY_QUEUE_RECORDS_MAX, HISTORY_RECORDS_PER_SECOND_MAX,
};

/// How the index is kept.
#[derive(Clone, Debug)]
pub struct HistoryConfig {
    /// The disk whose node's history it is: an index of another one is dropped.
    pub disk_id: [u8; 16],
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
            disk_id: [0; 16],
            retention_ms: 90 * 24 * 3_600_000,
            bytes_max: HISTORY_BYTES_MAX,
            queue_max: HISTORY_QUEUE_RECORDS_MAX,
            records_per_second_max: HISTORY_RECORDS_PER_SECOND_MAX,
        }
    }
}

/// What the entries after `since_index` up to `index` have ended or made happen. [`HistoryFeed`] makes these from the
/// apply stream.
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

/// A part of what the book still knows at the batch's `index`: everything but statements from its `first_revision` on,
/// whatever the index was told before.
#[derive(Clone, Debug)]
pub struct RetainedPart {
    /// Some of the records, and what holds once all parts are in.
    pub batch: HistoryBatch,
    /// The number of its first record among those of all parts, from [`RETAINED_NUMBER`].
    pub first_number: u32,
    /// No part follows.
    pub is_last: bool,
}

/// Numbers of records from here on are of what was retained: one entry's own never reach so far.
pub const RETAINED_NUMBER: u32 = 1 << 31;

/// Takes one part after the other.
pub type TakeRetained<'a> = &'a mut dyn FnMut(RetainedPart) -> Result<(), HistoryError>;

/// Asks the owner what its book still knows now, part by part; nothing if there is no book yet. Called on the index's
/// thread, whenever the index has lost something: it was dropped, it was behind, or the book was replaced.
pub type TellRetained = Box<dyn Fn(TakeRetained<'_>) -> Result<(), HistoryError> + Send>;

/// Makes a batch on the index's thread, so that whoever feeds it need not.
pub type MakeBatch = Box<dyn FnOnce() -> HistoryBatch + Send>;

pub(super) enum Message {
    /// So many records, of this log index.
    Batch {
        index: u64,
        records: usize,
        make: MakeBatch,
    },
    /// A reader met something that cannot be, in the index of this life.
    Failed {
        life: u64,
        error: HistoryError,
    },
    /// There is something to do besides.
    Look,
    Stop,
}

pub(super) struct Shared {
    pub(super) index: RwLock<Result<Index, HistoryError>>,
    /// Records handed over and not yet taken.
    pub(super) queued: AtomicUsize,
    pub(super) left_out: AtomicU64,
    /// How often an index was dropped: also, which one it is now.
    pub(super) dropped: AtomicU64,
    /// The log index that the book was restored at, until it was looked at; 0: none.
    pub(super) restored_index: AtomicU64,
    pub(super) stopping: AtomicBool,
}

/// The apply stream's end: hands batches over without ever waiting. For one caller at a time.
pub struct HistoryFeed {
    sender: SyncSender<Message>,
    shared: Arc<Shared>,
    queue_max: usize,
    covered_index: AtomicU64,
}

impl HistoryFeed {
    /// The book was restored from a snapshot at `index`: what comes next continues it, what lies before is asked for if
    /// the index does not have it.
    pub fn start_after(&self, index: u64) {
        self.covered_index.store(index, Ordering::Relaxed);
        self.shared.restored_index.fetch_max(index, Ordering::Relaxed);
        // If the queue is full the thread looks before what is in it.
        let _ = self.sender.try_send(Message::Look);
    }

    /// Hands over what the entry at `index` did: `records` of them, which `make` gives; `since_index` is filled in here.
    /// If the index is too far behind, the batch is left out, and the index will say that it is complete only after it.
    pub fn offer(&self, index: u64, records: usize, make: MakeBatch) {
        if records == 0 {
            return;
        }
        let since_index = self.covered_index.swap(index, Ordering::Relaxed);
        let make: MakeBatch = Box::new(move || HistoryBatch { since_index, index, ..make() });
        let queued = self.shared.queued.fetch_add(records, Ordering::Relaxed);
        let fits = queued == 0 || queued.saturating_add(records) <= self.queue_max;
        if !fits || self.sender.try_send(Message::Batch { index, records, make }).is_err() {
            self.shared.queued.fetch_sub(records, Ordering::Relaxed);
            self.shared.left_out.fetch_add(records as u64, Ordering::Relaxed);
        }
    }
}

/// An answer of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// Oldest first.
    pub records: Vec<HistoryRecord>,
    /// There are more behind the last one.
    pub more: bool,
    /// Everything but statements from this revision on is in the index; 0: nothing is known to be.
    pub complete_from_revision: u64,
    /// Every statement from this revision on is in the index; 0: nothing is known to be.
    pub statements_from_revision: u64,
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

    /// How often the index was dropped and begun anew since the start.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// One reservation as it ended, and as it was corrected if it was, by its id.
    pub fn reservation(&self, id: [u8; 16]) -> Result<HistoryPage, HistoryError> {
        self.read(|index| {
            let ended = index.by_identity(&keys::identity(&HistoryId::Reservation(id)))?;
            let corrected = index.by_identity(&keys::identity(&HistoryId::Correction(id)))?;
            Ok((ended.into_iter().chain(corrected).collect(), 2))
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
        let life = self.dropped();
        let (mut records, records_max) = read(index).inspect_err(|error| {
            // If the queue is full the next reader will say so again.
            let _ = self.sender.try_send(Message::Failed { life, error: error.clone() });
        })?;
        let more = records.len() > records_max;
        if more {
            end_at_a_revision(&mut records, records_max);
        }
        let Meta { complete_from_revision, statements_from_revision, indexed_revision, .. } = index.meta;
        Ok(HistoryPage { records, more, complete_from_revision, statements_from_revision, indexed_revision })
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
    /// Opens the index, unless something was handed over already, which opens it too. Before that nothing on the disk is
    /// touched: a node that cannot start changes nothing.
    pub fn begin(&self) {
        // If the queue is full the thread has begun.
        let _ = self.sender.try_send(Message::Look);
    }

    /// Closes the index and waits for the end. What is still queued is left out: it comes again when the log is applied
    /// again.
    pub fn stop(self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::Stop);
        let _ = self.handle.join();
    }
}

/// Starts the thread of the index in a directory of the machine. Opening and checking happen there, once
/// [`HistoryThread::begin`] was called: until then readers are told that it is not available, and nobody waits.
///
/// # Errors
/// No thread could be started.
pub fn spawn_history(
    dir: &Path,
    config: HistoryConfig,
    tell: TellRetained,
) -> std::io::Result<(HistoryFeed, HistoryReader, HistoryThread)> {
    let (sender, receiver) = sync_channel(config.queue_max.max(1));
    let opening = Err(HistoryError::Unavailable("it is being opened".into()));
    let shared = Arc::new(Shared {
        index: RwLock::new(opening),
        queued: AtomicUsize::new(0),
        left_out: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
        restored_index: AtomicU64::new(0),
        stopping: AtomicBool::new(false),
    });
    let queue_max = config.queue_max;
    let writer = Writer::new(dir, config, Arc::clone(&shared), tell);
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
