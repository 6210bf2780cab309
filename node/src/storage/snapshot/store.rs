//! The directory of snapshots: names, the newest, and how old ones go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::error::SnapshotError;
use super::format::SnapshotMeta;
use super::reader::SnapshotReader;
use super::receiver::SnapshotReceiver;
use super::writer::{SnapshotWriter, Temporary};
use crate::storage::disk::Disk;
use crate::storage::limits::SNAPSHOTS_KEPT;
use crate::storage::log::LogPosition;

const DIR: &str = "snapshots";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// A snapshot that is durable under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// What it is of.
    pub meta: SnapshotMeta,
    /// Length of the file.
    pub bytes: u64,
    /// CRC32C of the whole file.
    pub crc32c: u32,
}

impl SnapshotFile {
    /// Its name in the store.
    pub fn name(&self) -> String {
        name_of(self.meta.last)
    }
}

/// The snapshots of a node. Clones share them.
#[derive(Clone)]
pub struct SnapshotStore {
    disk: Arc<dyn Disk>,
    temporaries: Arc<AtomicU64>,
}

impl SnapshotStore {
    /// Opens the directory `snapshots` of a disk, or makes it, and removes what was left unfinished there.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Self, SnapshotError> {
        disk.create_dir(DIR)?;
        disk.sync_dir("")?;
        for name in disk.list(DIR)?.iter().filter(|name| name.ends_with(TEMPORARY_SUFFIX)) {
            disk.remove(&format!("{DIR}/{name}"))?;
        }
        disk.sync_dir(DIR)?;
        Ok(Self { disk, temporaries: Arc::default() })
    }

    /// File names in the directory, newest first.
    pub fn names(&self) -> Result<Vec<String>, SnapshotError> {
        let mut names: Vec<String> = self.disk.list(DIR)?.into_iter().filter(|name| is_name(name)).collect();
        names.reverse();
        Ok(names)
    }

    /// Opens the newest snapshot; `None` if there is none. If it is damaged that is an error: an older one does not
    /// replace it.
    pub fn newest(&self) -> Result<Option<SnapshotReader>, SnapshotError> {
        self.names()?.first().map(|name| self.read(name)).transpose()
    }

    /// Opens a snapshot by its file name.
    pub fn read(&self, name: &str) -> Result<SnapshotReader, SnapshotError> {
        let path = format!("{DIR}/{name}");
        let reader = SnapshotReader::open(self.disk.open(&path)?, path.clone())?;
        let found = name_of(reader.meta().last);
        if found != name {
            let what = format!("its header belongs to {found}");
            return Err(SnapshotError::Damaged { file: path, offset: 0, what });
        }
        Ok(reader)
    }

    /// Reads the newest snapshot through and returns its facts; `None` if there is none.
    pub fn verify_newest(&self) -> Result<Option<SnapshotFile>, SnapshotError> {
        let Some(reader) = self.newest()? else { return Ok(None) };
        let meta = reader.meta().clone();
        let (bytes, crc32c) = reader.verify()?;
        Ok(Some(SnapshotFile { meta, bytes, crc32c }))
    }

    /// Begins a snapshot.
    pub fn create(&self, meta: SnapshotMeta) -> Result<SnapshotWriter, SnapshotError> {
        SnapshotWriter::new(self.temporary()?, meta)
    }

    /// Writes a snapshot of these records, durably, and lets older ones go.
    pub fn write(
        &self,
        meta: SnapshotMeta,
        records: impl IntoIterator<Item = Bytes>,
    ) -> Result<SnapshotFile, SnapshotError> {
        let mut writer = self.create(meta)?;
        for record in records {
            writer.push(&record)?;
        }
        writer.finish()
    }

    /// Begins to receive the file of another member's snapshot, of so many bytes with this CRC32C.
    pub fn receive(&self, bytes: u64, crc32c: u32) -> Result<SnapshotReceiver, SnapshotError> {
        Ok(SnapshotReceiver::new(self.temporary()?, bytes, crc32c))
    }

    fn temporary(&self) -> Result<Temporary, SnapshotError> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let path = format!("{DIR}/{number}{TEMPORARY_SUFFIX}");
        let file = self.disk.create(&path)?;
        Ok(Temporary { disk: Arc::clone(&self.disk), file, path, renamed: false })
    }
}

/// Gives a file that is durable its name, durably, and removes all but the newest ones.
pub(super) fn install(
    mut temporary: Temporary,
    snapshot: SnapshotFile,
) -> Result<SnapshotFile, SnapshotError> {
    let disk = Arc::clone(&temporary.disk);
    disk.rename(&temporary.path, &format!("{DIR}/{}", name_of(snapshot.meta.last)))?;
    temporary.renamed = true;
    disk.sync_dir(DIR)?;
    let names: Vec<String> = disk.list(DIR)?.into_iter().filter(|name| is_name(name)).collect();
    let old = &names[..names.len().saturating_sub(SNAPSHOTS_KEPT)];
    for name in old {
        disk.remove(&format!("{DIR}/{name}"))?;
    }
    if !old.is_empty() {
        disk.sync_dir(DIR)?;
    }
    Ok(snapshot)
}

/// A name that sorts by how many entries are in it, then by term.
fn name_of(last: Option<LogPosition>) -> String {
    let (entries, term) = last.map_or((0, 0), |last| (last.index.saturating_add(1), last.term));
    format!("{entries:020}-{term:020}.snap")
}

fn is_name(name: &str) -> bool {
    name.strip_suffix(".snap").is_some_and(|stem| {
        stem.len() == 41
            && stem.bytes().enumerate().all(|(at, b)| if at == 20 { b == b'-' } else { b.is_ascii_digit() })
    })
}
