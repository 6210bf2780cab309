//! The mutant that acknowledges before the sync: a disk whose `sync` of the log answers at once and is
//! carried out a few groups later.
//!
//! To the node this is exactly a log that reports its appends as durable too early, without a line of
//! the product being changed for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_node::storage::{Disk, SyncedBy};

/// Syncs of the log that are answered and not carried out, before one is.
const SYNCS_OWED_MAX: u64 = 8;

/// Where the log lies.
const LOG_DIRECTORY: &str = "log/";

/// Only the log is lazy: what else the node writes is not acknowledged to anybody.
pub(super) fn lazy_disk(disk: Arc<dyn Disk>) -> SyncedBy {
    let owed = AtomicU64::new(0);
    SyncedBy::new(disk, move |path, file| {
        if path.starts_with(LOG_DIRECTORY) {
            if owed.fetch_add(1, Ordering::Relaxed) < SYNCS_OWED_MAX {
                return Ok(());
            }
            owed.store(0, Ordering::Relaxed);
        }
        file.sync()
    })
}
