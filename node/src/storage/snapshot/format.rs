//! Header, block and end of a snapshot file.

use bytes::Bytes;

use super::error::SnapshotError;
use crate::storage::codec::Cursor;
use crate::storage::limits::{
    SNAPSHOT_BLOCK_BYTES, SNAPSHOT_MEMBERSHIP_BYTES_MAX, SNAPSHOT_RECORD_BYTES_MAX,
};
use crate::storage::log::LogPosition;

pub(super) const MAGIC: [u8; 4] = *b"HSNP";
pub(super) const VERSION: u16 = 1;
const END_MAGIC: [u8; 4] = *b"HEND";

/// Magic, version, reserved, body length, checksum.
pub(super) const HEADER_PREFIX_BYTES: usize = 16;
pub(super) const BLOCK_PREFIX_BYTES: usize = 12;
pub(super) const END_BYTES: usize = 40;

/// Length of each record in a block.
pub(super) const RECORD_PREFIX_BYTES: usize = 4;

const HEADER_BODY_BYTES_MAX: usize = 64 + SNAPSHOT_MEMBERSHIP_BYTES_MAX;
pub(super) const BLOCK_PAYLOAD_BYTES_MAX: usize =
    SNAPSHOT_BLOCK_BYTES + RECORD_PREFIX_BYTES + SNAPSHOT_RECORD_BYTES_MAX;

/// What a snapshot is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMeta {
    /// The Raft group.
    pub group: u64,
    /// The last log position that is in it; `None` for one from before any entry.
    pub last: Option<LogPosition>,
    /// The book's revision.
    pub revision: u64,
    /// The membership as of `last`, opaque to storage.
    pub membership: Bytes,
}

/// The totals at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) blocks: u64,
    pub(super) records: u64,
    /// Bytes before the end.
    pub(super) bytes: u64,
    /// CRC32C of them.
    pub(super) crc: u32,
}

pub(super) fn encode_header(meta: &SnapshotMeta) -> Result<Vec<u8>, SnapshotError> {
    if meta.membership.len() > SNAPSHOT_MEMBERSHIP_BYTES_MAX {
        return Err(SnapshotError::invalid(format!("a membership of {} bytes", meta.membership.len())));
    }
    let mut body = Vec::new();
    body.extend_from_slice(&meta.group.to_le_bytes());
    body.extend_from_slice(&meta.revision.to_le_bytes());
    body.push(u8::from(meta.last.is_some()));
    if let Some(last) = meta.last {
        for number in [last.index, last.term, last.leader_node] {
            body.extend_from_slice(&number.to_le_bytes());
        }
    }
    body.extend_from_slice(&(meta.membership.len() as u32).to_le_bytes());
    body.extend_from_slice(&meta.membership);

    let mut header = Vec::with_capacity(HEADER_PREFIX_BYTES + body.len());
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 2]);
    header.extend_from_slice(&(body.len() as u32).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header), &body);
    header.extend_from_slice(&crc.to_le_bytes());
    header.extend_from_slice(&body);
    Ok(header)
}

/// Bytes of the body, from the prefix. Not yet checked, but bounded.
pub(super) fn header_body_length(prefix: &[u8]) -> Result<usize, &'static str> {
    let mut cursor = Cursor(prefix);
    let (Some(magic), Some(_), Some(length)) = (cursor.array::<4>(), cursor.u32(), cursor.u32()) else {
        return Err("the file is too short");
    };
    if magic != MAGIC {
        return Err("this is no snapshot");
    }
    match usize::try_from(length) {
        Ok(length) if length <= HEADER_BODY_BYTES_MAX => Ok(length),
        _ => Err("the header's length is impossible"),
    }
}

/// The header, or the version that made it unreadable, or `None` if it is damaged.
pub(super) fn decode_header(header: &[u8]) -> Option<Result<SnapshotMeta, u16>> {
    let mut cursor = Cursor(header);
    cursor.array::<4>()?;
    let version = cursor.u16()?;
    cursor.u16()?;
    cursor.u32()?;
    let crc = cursor.u32()?;
    if crc32c::crc32c_append(crc32c::crc32c(&header[..12]), cursor.0) != crc {
        return None;
    }
    if version != VERSION {
        return Some(Err(version));
    }
    let (group, revision) = (cursor.u64()?, cursor.u64()?);
    let last = if cursor.flag()? {
        let (index, term, leader_node) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        Some(LogPosition { term, leader_node, index })
    } else {
        None
    };
    let length = usize::try_from(cursor.u32()?).ok()?;
    let membership = Bytes::copy_from_slice(cursor.bytes(length)?);
    cursor.is_empty().then_some(Ok(SnapshotMeta { group, last, revision, membership }))
}

/// The prefix of a block; its number goes into the checksum, so that a block cannot stand in another's place.
pub(super) fn block_prefix(number: u64, records: u32, payload: &[u8]) -> [u8; BLOCK_PREFIX_BYTES] {
    let length = (payload.len() as u32).to_le_bytes();
    let records = records.to_le_bytes();
    let mut prefix = [0; BLOCK_PREFIX_BYTES];
    prefix[0..4].copy_from_slice(&length);
    prefix[4..8].copy_from_slice(&records);
    let crc = block_crc(number, &prefix[..8], payload);
    prefix[8..12].copy_from_slice(&crc.to_le_bytes());
    prefix
}

pub(super) fn block_crc(number: u64, lengths: &[u8], payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), lengths);
    crc32c::crc32c_append(crc, payload)
}

/// Zero in the place of a block's length, then the totals.
pub(super) fn encode_end(end: &End) -> [u8; END_BYTES] {
    let mut bytes = [0; END_BYTES];
    bytes[4..8].copy_from_slice(&END_MAGIC);
    bytes[8..16].copy_from_slice(&end.blocks.to_le_bytes());
    bytes[16..24].copy_from_slice(&end.records.to_le_bytes());
    bytes[24..32].copy_from_slice(&end.bytes.to_le_bytes());
    bytes[32..36].copy_from_slice(&end.crc.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..36]);
    bytes[36..40].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The totals, or `None` if these bytes are no end.
pub(super) fn decode_end(bytes: &[u8; END_BYTES]) -> Option<End> {
    let mut cursor = Cursor(bytes);
    let intact = cursor.u32()? == 0 && cursor.array::<4>()? == END_MAGIC;
    let (blocks, records, before, crc) = (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u32()?);
    let checked = cursor.u32()? == crc32c::crc32c(&bytes[..36]);
    (intact && checked).then_some(End { blocks, records, bytes: before, crc })
}
