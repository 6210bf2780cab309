//! Records every applied entry in a file, beside whatever else takes the effects (`serve --applied-log`).

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use holdfast_ledger::Effect;

use crate::replica::{AppliedRecord, BookView, EffectSink};
use crate::storage::applied_log::{AppliedLine, AppliedLog};

/// An [`EffectSink`] that records and passes on.
pub struct Recording {
    log: Mutex<AppliedLog>,
    next: Box<dyn EffectSink>,
}

impl Recording {
    /// Records into the file at `path`; effects go to `next`.
    pub fn open(path: &Path, next: Box<dyn EffectSink>) -> std::io::Result<Recording> {
        Ok(Recording { log: Mutex::new(AppliedLog::open(path)?), next })
    }
}

impl EffectSink for Recording {
    fn attached(&self, book: BookView) {
        self.next.attached(book);
    }

    fn entry_applied(&self, index: u64, effects: Vec<Effect>) {
        self.next.entry_applied(index, effects);
    }

    fn restored(&self, index: u64) {
        self.next.restored(index);
    }

    fn recorded(&self, record: &AppliedRecord<'_>) {
        let AppliedRecord { index, term, revision_before, digest, payload } = *record;
        let line = AppliedLine { index, term, revision_before, digest, payload };
        let appended = self.log.lock().unwrap_or_else(PoisonError::into_inner).append(line);
        // A gap makes the checkers say "inconclusive"; the node itself does not need the file.
        if let Err(error) = appended {
            tracing::error!("entry {index} was not recorded in the applied log: {error}");
        }
        self.next.recorded(record);
    }
}
