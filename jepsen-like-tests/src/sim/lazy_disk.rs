//! The mutant that acknowledges before the sync: a disk whose `sync` of the log answers at once and is
//! carried out a few groups later.
//!
//! To the node this is exactly a log that reports its appends as durable too early, without a line of
//! the product being changed for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_node::storage::{Disk, DiskFile};

/// Syncs of a file that are answered and not carried out, before one is.
const SYNCS_OWED_MAX: u64 = 8;

/// Where the log lies.
const LOG_DIRECTORY: &str = "log/";

pub(super) struct LazyDisk(pub(super) Arc<dyn Disk>);

struct LazyFile {
    file: Arc<dyn DiskFile>,
    owed: AtomicU64,
}

/// Only the log is lazy: what else the node writes is not acknowledged to anybody.
fn lazy(path: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
    match path.starts_with(LOG_DIRECTORY) {
        true => Arc::new(LazyFile { file, owed: AtomicU64::new(0) }),
        false => file,
    }
}

impl Disk for LazyDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.0.create_dir(dir)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.create(path).map(|file| lazy(path, file))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.0.open(path).map(|file| lazy(path, file))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.0.sync_dir(dir)
    }
}

impl DiskFile for LazyFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.truncate(size)
    }

    fn sync(&self) -> io::Result<()> {
        if self.owed.fetch_add(1, Ordering::Relaxed) < SYNCS_OWED_MAX {
            return Ok(());
        }
        self.owed.store(0, Ordering::Relaxed);
        self.file.sync()
    }
}
