//! Writing a snapshot, record by record.

use std::sync::Arc;

use super::error::SnapshotError;
use super::format::{self, End, RECORD_PREFIX_BYTES, SnapshotMeta};
use super::store::{SnapshotFile, install};
use crate::storage::disk::{Disk, DiskFile};
use crate::storage::limits::{SNAPSHOT_BLOCK_BYTES, SNAPSHOT_RECORD_BYTES_MAX};

/// A snapshot being written under a temporary name. Dropping it unfinished takes the file away.
pub struct SnapshotWriter {
    temporary: Temporary,
    meta: SnapshotMeta,
    block: Vec<u8>,
    block_records: u32,
    end: End,
}

impl SnapshotWriter {
    pub(super) fn new(temporary: Temporary, meta: SnapshotMeta) -> Result<Self, SnapshotError> {
        let mut writer = Self {
            temporary,
            meta,
            block: Vec::new(),
            block_records: 0,
            end: End { blocks: 0, records: 0, bytes: 0, crc: 0 },
        };
        let header = format::encode_header(&writer.meta)?;
        writer.write(&header)?;
        Ok(writer)
    }

    /// Adds a record. Writes a block to the file whenever one is full; nothing is durable before the end.
    pub fn push(&mut self, record: &[u8]) -> Result<(), SnapshotError> {
        if record.len() > SNAPSHOT_RECORD_BYTES_MAX {
            return Err(SnapshotError::invalid(format!("a record of {} bytes", record.len())));
        }
        self.block.extend_from_slice(&(record.len() as u32).to_le_bytes());
        self.block.extend_from_slice(record);
        self.block_records += 1;
        if self.block.len() >= SNAPSHOT_BLOCK_BYTES { self.write_block() } else { Ok(()) }
    }

    /// Completes the file, makes it durable and gives it its name. Returns what was written.
    pub fn finish(mut self) -> Result<SnapshotFile, SnapshotError> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let end = format::encode_end(&self.end);
        self.write(&end)?;
        self.temporary.file.sync()?;
        let (bytes, crc32c) = (self.end.bytes, self.end.crc);
        install(self.temporary, SnapshotFile { meta: self.meta, bytes, crc32c })
    }

    fn write_block(&mut self) -> Result<(), SnapshotError> {
        let block = std::mem::take(&mut self.block);
        let records = std::mem::take(&mut self.block_records);
        let prefix = format::block_prefix(self.end.blocks, records, &block);
        self.write(&prefix)?;
        self.write(&block)?;
        self.end.blocks += 1;
        self.end.records += u64::from(records);
        self.block = block;
        self.block.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.temporary.file.write_at(self.end.bytes, bytes)?;
        self.end.bytes += bytes.len() as u64;
        self.end.crc = crc32c::crc32c_append(self.end.crc, bytes);
        Ok(())
    }
}

/// A file under a temporary name, which goes away with this value unless it was renamed.
pub(super) struct Temporary {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) path: String,
    pub(super) renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Only space is at stake: what cannot be removed now is removed at the next start.
            let _ = self.disk.remove(&self.path);
        }
    }
}

const _: () =
    assert!(SNAPSHOT_RECORD_BYTES_MAX + SNAPSHOT_BLOCK_BYTES + RECORD_PREFIX_BYTES < u32::MAX as usize);
