//! The frame: what is written, checked and lost as a whole. Layout: docs/format.md.

use crate::storage::codec::Cursor;

pub(super) const MAGIC: [u8; 4] = *b"HLOG";
pub(super) const VERSION: u16 = 1;
pub(super) const HEADER_BYTES: usize = 40;
const CRC_AT: std::ops::Range<usize> = 12..16;

/// What a frame says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Dense over the whole log, from 1.
    pub(super) seq: u64,
    pub(super) group: u64,
    /// Every frame up to this one was known to be durable when this one was written.
    pub(super) synced_seq: u64,
    /// Bytes of payload.
    pub(super) length: usize,
}

/// Why there is no frame where one was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoFrame {
    /// Nothing follows.
    End,
    /// Fewer bytes than a frame needs.
    Short,
    /// Something else.
    Magic,
    /// Not what was written.
    Checksum,
    /// Whole, but of a version that this program does not know.
    Version(u16),
}

impl NoFrame {
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::End => "the file ends",
            Self::Short => "the file ends within a frame",
            Self::Magic => "no frame begins here",
            Self::Checksum => "the checksum does not match",
            Self::Version(_) => "unknown format version",
        }
    }
}

/// Appends room for a header; [`close`] fills it in.
pub(super) fn open(buffer: &mut Vec<u8>) -> usize {
    let start = buffer.len();
    buffer.resize(start + HEADER_BYTES, 0);
    start
}

/// Completes the frame that began at `start` and ends with the buffer.
pub(super) fn close(buffer: &mut [u8], start: usize, seq: u64, group: u64, synced_seq: u64) {
    let frame = &mut buffer[start..];
    let length = (frame.len() - HEADER_BYTES) as u32;
    frame[0..4].copy_from_slice(&MAGIC);
    frame[4..6].copy_from_slice(&VERSION.to_le_bytes());
    frame[6..8].copy_from_slice(&[0; 2]);
    frame[8..12].copy_from_slice(&length.to_le_bytes());
    frame[16..24].copy_from_slice(&seq.to_le_bytes());
    frame[24..32].copy_from_slice(&group.to_le_bytes());
    frame[32..40].copy_from_slice(&synced_seq.to_le_bytes());
    let crc = checksum(frame);
    frame[CRC_AT].copy_from_slice(&crc.to_le_bytes());
}

/// CRC32C of a frame without its checksum field.
fn checksum(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..CRC_AT.start]), &frame[CRC_AT.end..])
}

/// The frame at the front of `bytes`, checked: its header and its payload.
pub(super) fn read(bytes: &[u8]) -> Result<(Header, &[u8]), NoFrame> {
    if bytes.is_empty() {
        return Err(NoFrame::End);
    }
    let Some(header_bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return Err(NoFrame::Short) };
    let (version, crc, header) = parse(header_bytes).ok_or(NoFrame::Magic)?;
    let frame = bytes.get(..HEADER_BYTES + header.length).ok_or(NoFrame::Short)?;
    if checksum(frame) != crc {
        return Err(NoFrame::Checksum);
    }
    if version != VERSION {
        return Err(NoFrame::Version(version));
    }
    Ok((header, &frame[HEADER_BYTES..]))
}

/// The header at the front of `bytes`, of a frame that was checked before.
pub(super) fn peek(bytes: &[u8]) -> Result<(Header, u16), NoFrame> {
    let header_bytes = bytes.first_chunk::<HEADER_BYTES>().ok_or(NoFrame::Short)?;
    let (version, _, header) = parse(header_bytes).ok_or(NoFrame::Magic)?;
    Ok((header, version))
}

fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<(u16, u32, Header)> {
    let mut cursor = Cursor(bytes);
    if cursor.array::<4>()? != MAGIC {
        return None;
    }
    let version = cursor.u16()?;
    cursor.u16()?;
    let length = usize::try_from(cursor.u32()?).ok()?;
    let crc = cursor.u32()?;
    let header = Header { seq: cursor.u64()?, group: cursor.u64()?, synced_seq: cursor.u64()?, length };
    Some((version, crc, header))
}

/// The highest synced mark of any whole frame anywhere in `bytes`, of whatever version: evidence of what had been durable.
pub(super) fn highest_synced_seq(bytes: &[u8]) -> Option<u64> {
    let mut highest = None;
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(MAGIC.len()).position(|window| window == MAGIC) {
        at += found;
        let step = match read(&bytes[at..]) {
            Ok((header, _)) => {
                highest = highest.max(Some(header.synced_seq));
                HEADER_BYTES + header.length
            }
            // Magic, lengths, checksum and marks keep their places in every version.
            Err(NoFrame::Version(_)) => {
                highest = highest.max(peek(&bytes[at..]).ok().map(|(header, _)| header.synced_seq));
                MAGIC.len()
            }
            Err(_) => 1,
        };
        at += step;
    }
    highest
}
