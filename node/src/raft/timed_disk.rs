//! A disk whose syncs are timed: the one figure that says how a log's disk does.

use std::io;
use std::sync::Arc;

use super::metrics::Metrics;
use crate::storage::{Disk, DiskFile};

/// Times every file sync of the disk inside.
pub(super) struct TimedDisk {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) metrics: Arc<Metrics>,
}

struct TimedFile {
    file: Arc<dyn DiskFile>,
    metrics: Arc<Metrics>,
}

impl TimedDisk {
    fn timed(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TimedFile { file, metrics: self.metrics.clone() })
    }
}

impl Disk for TimedDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path).map(|file| self.timed(file))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path).map(|file| self.timed(file))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }
}

impl DiskFile for TimedFile {
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
        let began = self.metrics.begin();
        let result = self.file.sync();
        self.metrics.sync_us.record(self.metrics.since(began));
        result
    }
}
