//! Commands are encoded where they enter, on the caller's thread, and copied once into their entry.

use bytes::{Bytes, BytesMut};
use holdfast_ledger::Command;
use holdfast_ledger::command::EpochBounds;
use holdfast_proto::v1;
use prost::Message;

/// The commands as they stand in a `LogEntry`, each with its field's tag and length: an entry without a
/// stamp and bounds, whose default values take no bytes.
pub(super) fn encode_commands(commands: &[Command]) -> Bytes {
    holdfast_proto::log::encode_entry(0, &[], commands)
}

/// An entry's payload from the encoded commands of several proposals.
pub(super) fn encode_entry<'a>(
    stamp_ms: u64,
    epoch_bounds: &[EpochBounds],
    parts: impl Iterator<Item = &'a Bytes> + Clone,
) -> Bytes {
    let head = v1::LogEntry {
        stamp_ms,
        epoch_bounds: epoch_bounds.iter().map(v1::EpochBounds::from).collect(),
        commands: Vec::new(),
    };
    let bytes: usize = parts.clone().map(Bytes::len).sum();
    let mut payload = BytesMut::with_capacity(head.encoded_len() + bytes);
    payload.extend_from_slice(&head.encode_to_vec());
    for part in parts {
        payload.extend_from_slice(part);
    }
    payload.freeze()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use holdfast_ledger::ReservationId;
    use holdfast_ledger::command::Release;
    use holdfast_ledger::plan::{Calendar, Period};

    use super::*;

    #[test]
    fn joined_parts_are_the_bytes_of_the_generated_encoder() {
        let release = |n| Command::Release(Release { id: ReservationId(n) });
        let commands =
            [release(1), Command::Tick, release(u128::MAX), Command::RaiseRules { rules_version: 7 }];
        let calendar = Arc::new(Calendar { period: Period::Month(1), zone: "Asia/Tokyo".into() });
        let bounds = [EpochBounds { calendar, bounds_ms: vec![1, 2, 3] }];
        let parts = [encode_commands(&commands[..1]), encode_commands(&commands[1..])];
        let joined = encode_entry(1_234, &bounds, parts.iter());
        assert_eq!(joined, holdfast_proto::log::encode_entry(1_234, &bounds, &commands));
        let (header, read) = holdfast_proto::log::decode_entry(joined, 5, 6).unwrap();
        assert_eq!((header.stamp_ms, header.epoch_bounds, read), (1_234, bounds.to_vec(), commands.to_vec()));
    }
}
