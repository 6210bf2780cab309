//! A snapshot that comes from another member, block by block of its file.

use super::error::SnapshotError;
use super::reader::SnapshotReader;
use super::store::{SnapshotFile, install};
use super::writer::Temporary;

/// A file being received under a temporary name. Dropping it unfinished takes the file away.
pub struct SnapshotReceiver {
    temporary: Temporary,
    announced_bytes: u64,
    announced_crc32c: u32,
    received_bytes: u64,
    crc32c: u32,
}

impl SnapshotReceiver {
    pub(super) fn new(temporary: Temporary, announced_bytes: u64, announced_crc32c: u32) -> Self {
        Self { temporary, announced_bytes, announced_crc32c, received_bytes: 0, crc32c: 0 }
    }

    /// Bytes received so far: the offset that must come next.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Takes the next bytes of the file. They must continue it and stay within what was announced.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), SnapshotError> {
        if offset != self.received_bytes {
            return Err(SnapshotError::invalid(format!(
                "a block at {offset} where one at {} was expected",
                self.received_bytes
            )));
        }
        let after = offset.saturating_add(bytes.len() as u64);
        if after > self.announced_bytes {
            return Err(SnapshotError::invalid(format!(
                "more than the {} bytes announced",
                self.announced_bytes
            )));
        }
        self.temporary.file.write_at(offset, bytes)?;
        self.received_bytes = after;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        Ok(())
    }

    /// Checks the file as a whole and block by block, makes it durable and gives it its name.
    pub fn finish(self) -> Result<SnapshotFile, SnapshotError> {
        if self.received_bytes != self.announced_bytes || self.crc32c != self.announced_crc32c {
            return Err(SnapshotError::invalid(format!(
                "received {} bytes with checksum {:08x}, announced were {} with {:08x}",
                self.received_bytes, self.crc32c, self.announced_bytes, self.announced_crc32c
            )));
        }
        self.temporary.file.sync()?;
        let reader = SnapshotReader::open(self.temporary.file.clone(), self.temporary.path.clone())?;
        let meta = reader.meta().clone();
        let (bytes, crc32c) = reader.verify()?;
        install(self.temporary, SnapshotFile { meta, bytes, crc32c })
    }
}
