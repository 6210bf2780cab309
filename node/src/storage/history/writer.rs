//! The index's thread: takes what is handed over at a bounded pace, and makes a lost index whole again.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::guard::{HistoryError, mark_panics, unmark_panics};
use super::index::{Index, Paths};
use super::thread::{HistoryConfig, MakeBatch, Message, Shared, TellRetained};
use crate::storage::limits::HISTORY_RETAINED_INTERVAL;

pub(super) struct Writer {
    paths: Paths,
    config: HistoryConfig,
    shared: Arc<Shared>,
    tell: TellRetained,
    pace: Pace,
    /// Something is missing that the book may still know.
    lost: bool,
    /// When the book may be asked for it again.
    ask_again: Instant,
}

impl Writer {
    pub(super) fn new(dir: &Path, config: HistoryConfig, shared: Arc<Shared>, tell: TellRetained) -> Self {
        let pace = Pace::new(config.records_per_second_max);
        Self { paths: Paths::new(dir), config, shared, tell, pace, lost: false, ask_again: Instant::now() }
    }

    pub(super) fn run(mut self, receiver: &Receiver<Message>) {
        let Ok(mut message) = receiver.recv() else { return };
        if matches!(message, Message::Stop) {
            return;
        }
        mark_panics(&self.paths.suspect);
        match Index::open(&self.paths, self.config.disk_id) {
            Ok(index) => drop(self.set(Ok(index))),
            // What the log still has is on its way.
            Err(error) => self.begin_anew(&error),
        }
        loop {
            match message {
                Message::Batch { index, records, make } => {
                    self.take(index, records, make);
                    self.shared.queued.fetch_sub(records, Ordering::Relaxed);
                }
                Message::Failed { life, error } if life == self.shared.dropped.load(Ordering::Relaxed) => {
                    self.begin_anew(&error);
                    self.lost = true;
                }
                Message::Failed { .. } | Message::Look => {}
                Message::Stop => break,
            }
            match self.next(receiver) {
                Some(next) => message = next,
                None => break,
            }
        }
        let last = self.set(Err(HistoryError::Unavailable("the node is stopping".into())));
        if let Ok(index) = last {
            let _ = index.flush();
        }
        unmark_panics(&self.paths.suspect);
    }

    /// The next message. If something was lost and nothing is queued, the book is asked for it meanwhile, though not
    /// again and again: under a load that the index cannot follow, it loses something all the time.
    fn next(&mut self, receiver: &Receiver<Message>) -> Option<Message> {
        loop {
            self.lost |= self.is_behind_restore();
            if !self.lost {
                return receiver.recv().ok();
            }
            match receiver.recv_timeout(self.ask_again.saturating_duration_since(Instant::now())) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => self.ask_book(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn is_behind_restore(&self) -> bool {
        let restored = self.shared.restored_index.swap(0, Ordering::Relaxed);
        self.applied_index().is_some_and(|applied| applied < restored)
    }

    /// The last log index whose effects are in; `None`: there is no index.
    fn applied_index(&self) -> Option<u64> {
        let index = self.shared.index.read().unwrap_or_else(PoisonError::into_inner);
        index.as_ref().ok().map(|index| index.meta.applied_index)
    }

    /// Takes what the book still knows.
    fn ask_book(&mut self) {
        self.ask_again = Instant::now() + HISTORY_RETAINED_INTERVAL;
        self.lost = false;
        let taken = (self.tell)(&mut |part| self.write(|index| index.take_retained(&part, &self.config)));
        self.settle(taken.map(|()| true));
    }

    fn write<T>(&self, write: impl FnOnce(&mut Index) -> Result<T, HistoryError>) -> Result<T, HistoryError> {
        match self.shared.index.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Ok(index) => write(index),
            Err(error) => Err(error.clone()),
        }
    }

    /// What becomes of the index after a write that gave `whole`.
    fn settle(&mut self, whole: Result<bool, HistoryError>) {
        match whole {
            Ok(whole) => self.lost |= !whole,
            // There is none until the next start.
            Err(HistoryError::Unavailable(_)) => {}
            Err(error) => {
                self.begin_anew(&error);
                self.lost = true;
            }
        }
    }

    fn take(&mut self, index: u64, records: usize, make: MakeBatch) {
        match self.applied_index() {
            // The log is applied again from a snapshot on.
            Some(applied) if index <= applied => return,
            Some(_) if !self.shared.stopping.load(Ordering::Relaxed) => {}
            _ => {
                self.shared.left_out.fetch_add(records as u64, Ordering::Relaxed);
                return;
            }
        }
        let batch = make();
        let taken = self.write(|index| index.take(&batch, &self.config));
        self.settle(taken);
        self.pace.wait(records);
    }

    fn set(&self, index: Result<Index, HistoryError>) -> Result<Index, HistoryError> {
        std::mem::replace(&mut *self.shared.index.write().unwrap_or_else(PoisonError::into_inner), index)
    }

    /// Drops the index and begins a new one; if even that fails, there is none until the next start.
    fn begin_anew(&self, error: &HistoryError) {
        tracing::warn!(%error, "the history index is dropped and begun anew");
        drop(self.set(Err(HistoryError::Unavailable("it is being rebuilt".into()))));
        let fresh = self.paths.drop_index().and_then(|()| Index::open(&self.paths, self.config.disk_id));
        let fresh = fresh.map_err(|error| {
            tracing::error!(%error, "the history index cannot be begun anew; there is none until the next start");
            HistoryError::Unavailable(error.to_string())
        });
        // Before the new one can be read: whoever fails in it says so of this life.
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        drop(self.set(fresh));
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
