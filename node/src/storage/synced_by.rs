//! A disk whose file syncs go through a function, and everything else to the disk inside.

use std::io;
use std::sync::Arc;

use super::disk::{Disk, DiskFile};

/// Syncs a file, whose path is given, or does not.
pub type SyncFile = dyn Fn(&str, &dyn DiskFile) -> io::Result<()> + Send + Sync;

/// A disk that syncs by a function of its maker's.
pub struct SyncedBy {
    disk: Arc<dyn Disk>,
    sync: Arc<SyncFile>,
}

struct File {
    path: String,
    file: Arc<dyn DiskFile>,
    sync: Arc<SyncFile>,
}

impl SyncedBy {
    /// Over `disk`.
    pub fn new(
        disk: Arc<dyn Disk>,
        sync: impl Fn(&str, &dyn DiskFile) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        SyncedBy { disk, sync: Arc::new(sync) }
    }

    fn file(&self, path: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(File { path: path.to_owned(), file, sync: Arc::clone(&self.sync) })
    }
}

impl Disk for SyncedBy {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.create_dir(dir)
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(path).map(|file| self.file(path, file))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(path).map(|file| self.file(path, file))
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

impl DiskFile for File {
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
        (self.sync)(&self.path, self.file.as_ref())
    }
}
