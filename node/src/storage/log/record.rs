//! The records in a frame's payload. Layout: docs/format.md.

use super::types::{EntryKind, LogPosition, LogVote};
use crate::storage::codec::Cursor;

const ENTRY: u8 = 1;
const VOTE: u8 = 2;
const TRUNCATE: u8 = 3;
const PURGE: u8 = 4;
const COMMITTED: u8 = 5;
const SEGMENT_HEAD: u8 = 6;

/// One record. An entry's payload borrows the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Entry {
        position: LogPosition,
        kind: EntryKind,
        payload: &'a [u8],
    },
    Vote(LogVote),
    /// Entries after this position (all, if none) are void.
    Truncate(Option<LogPosition>),
    /// Entries up to this position are not needed any more.
    Purge(LogPosition),
    Committed(Option<LogPosition>),
    /// The first record of a segment: its number, and the last position before it.
    SegmentHead {
        number: u64,
        last: Option<LogPosition>,
    },
}

impl Record<'_> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Entry { position, kind, payload } => {
                out.extend_from_slice(&[ENTRY, *kind as u8]);
                encode_position(position, out);
                out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
                out.extend_from_slice(payload);
            }
            Self::Vote(vote) => {
                out.push(VOTE);
                out.extend_from_slice(&vote.term.to_le_bytes());
                out.extend_from_slice(&vote.node.to_le_bytes());
                out.push(u8::from(vote.committed));
            }
            Self::Truncate(keep) => {
                out.push(TRUNCATE);
                encode_optional(keep.as_ref(), out);
            }
            Self::Purge(upto) => {
                out.push(PURGE);
                encode_position(upto, out);
            }
            Self::Committed(committed) => {
                out.push(COMMITTED);
                encode_optional(committed.as_ref(), out);
            }
            Self::SegmentHead { number, last } => {
                out.push(SEGMENT_HEAD);
                out.extend_from_slice(&number.to_le_bytes());
                encode_optional(last.as_ref(), out);
            }
        }
    }
}

fn encode_position(position: &LogPosition, out: &mut Vec<u8>) {
    out.extend_from_slice(&position.index.to_le_bytes());
    out.extend_from_slice(&position.term.to_le_bytes());
    out.extend_from_slice(&position.leader_node.to_le_bytes());
}

fn encode_optional(position: Option<&LogPosition>, out: &mut Vec<u8>) {
    out.push(u8::from(position.is_some()));
    if let Some(position) = position {
        encode_position(position, out);
    }
}

fn decode_position(cursor: &mut Cursor<'_>) -> Option<LogPosition> {
    let (index, term, leader_node) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    Some(LogPosition { term, leader_node, index })
}

fn decode_optional(cursor: &mut Cursor<'_>) -> Option<Option<LogPosition>> {
    if cursor.flag()? { decode_position(cursor).map(Some) } else { Some(None) }
}

/// The records of a payload, in order; `None` in place of one that cannot be read, which ends them.
pub(super) fn decode_all(payload: &[u8]) -> impl Iterator<Item = Option<Record<'_>>> {
    let mut cursor = Cursor(payload);
    let mut broken = false;
    std::iter::from_fn(move || {
        if cursor.is_empty() || broken {
            return None;
        }
        let record = decode(&mut cursor);
        broken = record.is_none();
        Some(record)
    })
}

fn decode<'a>(cursor: &mut Cursor<'a>) -> Option<Record<'a>> {
    Some(match cursor.u8()? {
        ENTRY => {
            let kind = EntryKind::from_u8(cursor.u8()?)?;
            let position = decode_position(cursor)?;
            let length = usize::try_from(cursor.u32()?).ok()?;
            Record::Entry { position, kind, payload: cursor.bytes(length)? }
        }
        VOTE => Record::Vote(LogVote { term: cursor.u64()?, node: cursor.u64()?, committed: cursor.flag()? }),
        TRUNCATE => Record::Truncate(decode_optional(cursor)?),
        PURGE => Record::Purge(decode_position(cursor)?),
        COMMITTED => Record::Committed(decode_optional(cursor)?),
        SEGMENT_HEAD => Record::SegmentHead { number: cursor.u64()?, last: decode_optional(cursor)? },
        _ => return None,
    })
}

/// Bytes that an entry's record takes beside its payload.
pub(super) const ENTRY_OVERHEAD_BYTES: usize = 2 + 24 + 4;
