//! A record of the history index and its stored form. Layout: docs/format.md.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::{Decode, Encode};

use crate::storage::limits::HISTORY_RECORD_BYTES_MAX;

const VERSION: u8 = 1;

/// What a record is of: it is indexed once, however often it is told.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum HistoryId {
    /// An ended reservation, by its id.
    Reservation([u8; 16]),
    /// An event, by its number.
    Event(u64),
    /// An archived account, by whatever names it.
    Statement(Vec<u8>),
    /// A correction of an ended reservation, by its id.
    Correction([u8; 16]),
}

/// One thing that ended or happened.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HistoryRecord {
    /// What it is of.
    pub id: HistoryId,
    /// The revision that ended it or made it happen.
    pub revision: u64,
    /// Book time then, ms.
    pub at_ms: u64,
    /// Whom it is about, as far as it is about one.
    pub tenant: Option<String>,
    /// Opaque here.
    pub body: Vec<u8>,
}

/// Fixed-width integers: the bytes can be read from the document without knowing bincode's variable lengths. The limit
/// is not optional: without it a length in damaged bytes is trusted, and the allocation aborts the process.
fn config() -> Configuration<LittleEndian, Fixint, Limit<HISTORY_RECORD_BYTES_MAX>> {
    bincode::config::standard().with_fixed_int_encoding().with_limit()
}

impl HistoryRecord {
    /// Version, CRC32C of the rest, bincode. `None` if the record is too large.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let body = bincode::encode_to_vec(self, config()).ok()?;
        if body.len() > HISTORY_RECORD_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::with_capacity(5 + body.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        Some(bytes)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let (&version, rest) = bytes.split_first().ok_or("a record is empty")?;
        if version != VERSION {
            return Err("a record has an unknown version");
        }
        let (crc, body) = rest.split_first_chunk::<4>().ok_or("a record is too short")?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err("a record's checksum does not match");
        }
        match bincode::decode_from_slice(body, config()) {
            Ok((record, read)) if read == body.len() => Ok(record),
            _ => Err("a record cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn golden_bytes() {
        let record = HistoryRecord {
            id: HistoryId::Reservation([9; 16]),
            revision: 0x0102,
            at_ms: 0x0304,
            tenant: Some("acme".into()),
            body: vec![5, 6],
        };
        let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 0];
        expected.extend_from_slice(&[9; 16]);
        expected.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(&[1, 4, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend_from_slice(b"acme");
        expected.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0, 5, 6]);
        let crc = crc32c::crc32c(&expected[5..]);
        expected[1..5].copy_from_slice(&crc.to_le_bytes());
        let bytes = record.encode().unwrap();
        assert_eq!(bytes, expected);
        assert_eq!(HistoryRecord::decode(&bytes), Ok(record));
    }

    #[test]
    fn damage_and_absurd_lengths_are_errors() {
        let record = HistoryRecord {
            id: HistoryId::Statement(vec![1; 40]),
            revision: 1,
            at_ms: 2,
            tenant: None,
            body: vec![3; 100],
        };
        let bytes = record.encode().unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert!(HistoryRecord::decode(&changed).is_err(), "byte {at}");
            assert!(HistoryRecord::decode(&bytes[..at]).is_err(), "cut to {at}");
        }
        // A length of 2^62 with a checksum that fits: the limit answers, not the allocator.
        let mut absurd = vec![1, 0, 0, 0, 0, 2, 0, 0, 0];
        absurd.extend_from_slice(&(1u64 << 62).to_le_bytes());
        let crc = crc32c::crc32c(&absurd[5..]);
        absurd[1..5].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(HistoryRecord::decode(&absurd), Err("a record cannot be read"));
        let large = HistoryRecord { body: vec![0; HISTORY_RECORD_BYTES_MAX], ..record };
        assert_eq!(large.encode(), None);
    }
}
