//! Reading a snapshot: every block is checked before its records are given out, the whole at the end.

use std::sync::Arc;

use bytes::Bytes;

use super::error::SnapshotError;
use super::format::{
    self, BLOCK_PAYLOAD_BYTES_MAX, BLOCK_PREFIX_BYTES, END_BYTES, End, HEADER_PREFIX_BYTES, SnapshotMeta,
};
use crate::storage::codec::Cursor;
use crate::storage::disk::{DiskFile, read_up_to};

/// Yields a snapshot's records in order. What was made of them counts only if the iterator ends without an error:
/// the last step checks the totals and the checksum of the whole.
pub struct SnapshotReader {
    file: Arc<dyn DiskFile>,
    path: String,
    meta: SnapshotMeta,
    block: Bytes,
    /// Records left in the block.
    left: u32,
    seen: End,
    ended: bool,
}

impl SnapshotReader {
    /// Opens a snapshot's file; errors call it `path`.
    pub fn open(file: Arc<dyn DiskFile>, path: String) -> Result<Self, SnapshotError> {
        let mut reader = Self {
            file,
            path,
            meta: SnapshotMeta::default(),
            block: Bytes::new(),
            left: 0,
            seen: End { blocks: 0, records: 0, bytes: 0, crc: 0 },
            ended: false,
        };
        let prefix = reader.peek(HEADER_PREFIX_BYTES)?;
        let body = format::header_body_length(&prefix).map_err(|what| reader.damaged(what))?;
        let header = reader.consume(HEADER_PREFIX_BYTES + body)?;
        reader.meta = match format::decode_header(&header) {
            Some(Ok(meta)) => meta,
            Some(Err(found)) => {
                let supported = format::VERSION;
                return Err(SnapshotError::NewerFormat { file: reader.path, found, supported });
            }
            None => {
                reader.seen.bytes = 0;
                return Err(reader.damaged("the header's checksum does not match"));
            }
        };
        Ok(reader)
    }

    /// What the snapshot is of.
    pub fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    /// The file, for sending it as it is.
    pub fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    /// Reads to the end. Returns the length and the CRC32C of the whole file.
    pub fn verify(mut self) -> Result<(u64, u32), SnapshotError> {
        for record in &mut self {
            record?;
        }
        Ok((self.seen.bytes, self.seen.crc))
    }

    fn damaged(&self, what: impl Into<String>) -> SnapshotError {
        SnapshotError::Damaged { file: self.path.clone(), offset: self.seen.bytes, what: what.into() }
    }

    fn peek(&self, length: usize) -> Result<Vec<u8>, SnapshotError> {
        let bytes = read_up_to(self.file.as_ref(), self.seen.bytes, length)?;
        if bytes.len() < length {
            return Err(self.damaged("the file ends too early"));
        }
        Ok(bytes)
    }

    fn consume(&mut self, length: usize) -> Result<Vec<u8>, SnapshotError> {
        let bytes = self.peek(length)?;
        self.seen.crc = crc32c::crc32c_append(self.seen.crc, &bytes);
        self.seen.bytes += length as u64;
        Ok(bytes)
    }

    /// Loads the next block; false at the end.
    fn next_block(&mut self) -> Result<bool, SnapshotError> {
        let prefix = self.peek(BLOCK_PREFIX_BYTES)?;
        let mut cursor = Cursor(&prefix);
        let (Some(length), Some(records), Some(crc)) = (cursor.u32(), cursor.u32(), cursor.u32()) else {
            return Err(self.damaged("the file ends too early"));
        };
        if length == 0 {
            return self.check_end().map(|()| false);
        }
        let payload_bytes = usize::try_from(length).ok().filter(|length| *length <= BLOCK_PAYLOAD_BYTES_MAX);
        let Some(payload_bytes) = payload_bytes else {
            return Err(self.damaged("a block's length is impossible"));
        };
        let block = Bytes::from(self.peek(BLOCK_PREFIX_BYTES + payload_bytes)?);
        let payload = block.slice(BLOCK_PREFIX_BYTES..);
        if format::block_crc(self.seen.blocks, &block[..8], &payload) != crc {
            return Err(self.damaged("a block's checksum does not match"));
        }
        self.seen.crc = crc32c::crc32c_append(self.seen.crc, &block);
        self.seen.bytes += block.len() as u64;
        self.seen.blocks += 1;
        self.seen.records += u64::from(records);
        self.block = payload;
        self.left = records;
        Ok(true)
    }

    fn check_end(&mut self) -> Result<(), SnapshotError> {
        let bytes = self.peek(END_BYTES)?;
        let end = bytes.first_chunk().and_then(format::decode_end);
        if end != Some(self.seen) {
            return Err(self.damaged("the totals at the end do not match"));
        }
        self.consume(END_BYTES)?;
        if self.file.size()? != self.seen.bytes {
            return Err(self.damaged("something follows the end"));
        }
        Ok(())
    }

    fn next_record(&mut self) -> Result<Option<Bytes>, SnapshotError> {
        while self.left == 0 {
            if !self.block.is_empty() {
                return Err(self.damaged("a block holds more than its records"));
            }
            if !self.next_block()? {
                return Ok(None);
            }
        }
        let mut cursor = Cursor(&self.block);
        let length = cursor.u32().and_then(|length| usize::try_from(length).ok());
        let Some(record) = length.and_then(|length| cursor.bytes(length)) else {
            return Err(self.damaged("a record reaches beyond its block"));
        };
        let record = self.block.slice_ref(record);
        self.block = self.block.slice(format::RECORD_PREFIX_BYTES + record.len()..);
        self.left -= 1;
        Ok(Some(record))
    }
}

impl Iterator for SnapshotReader {
    type Item = Result<Bytes, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_record().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
