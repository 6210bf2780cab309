//! The hand-written way of log entries gives the same bytes and values as the generated code.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ledger::Command;
use holdfast_proto::log::{decode_entry, encode_entry};
use holdfast_proto::v1;
use prost::Message;
use support::Random;

fn generated(commands: &[Command]) -> v1::LogEntry {
    v1::LogEntry {
        stamp_ms: 7,
        epoch_bounds: Vec::new(),
        commands: commands.iter().map(v1::LogCommand::from).collect(),
    }
}

#[test]
fn the_bytes_are_those_of_the_generated_code() {
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let commands = random.list(4, Random::command);
        let bounds = random.list(2, Random::epoch_bounds);
        let mut entry = generated(&commands);
        entry.epoch_bounds = bounds.iter().map(v1::EpochBounds::from).collect();
        assert_eq!(encode_entry(7, &bounds, &commands), entry.encode_to_vec(), "seed {seed}");
    }
}

#[test]
fn other_forms_of_the_same_entry_are_read_alike() {
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let commands = vec![random.batched(), random.batched()];
        let entry = generated(&commands).encode_to_vec();
        // The stamp after the commands, and a field of a newer version within a command.
        let mut moved = entry[2..].to_vec();
        moved.extend_from_slice(&entry[..2]);
        let mut newer = v1::LogCommand::from(&commands[0]).encode_to_vec();
        newer.extend_from_slice(&[0x98, 0x06, 0x01]);
        let mut with_newer = vec![0x08, 0x07, 0x1a];
        prost::encoding::encode_varint(newer.len() as u64, &mut with_newer);
        with_newer.extend_from_slice(&newer);
        let (header, read) = decode_entry(moved.into(), 1, 1).unwrap();
        assert_eq!((header.stamp_ms, &read), (7, &commands), "seed {seed}");
        let (header, read) = decode_entry(with_newer.into(), 1, 1).unwrap();
        assert_eq!((header.stamp_ms, &read[..]), (7, &commands[..1]), "seed {seed}");
    }
}

#[test]
fn damage_is_never_read_as_something_else() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let commands = vec![random.batched()];
        let entry = encode_entry(7, &[], &commands);
        for cut in 0..entry.len() {
            let cut_entry = entry.slice(..cut);
            let expected = v1::LogEntry::decode(cut_entry.clone()).ok().and_then(|wire| {
                wire.commands.iter().map(Command::try_from).collect::<Result<Vec<_>, _>>().ok()
            });
            let read = decode_entry(cut_entry, 1, 1).ok().map(|(_, commands)| commands);
            assert_eq!(read, expected, "cut at {cut}");
        }
        for at in 0..entry.len() {
            let mut flipped = entry.to_vec();
            flipped[at] ^= 1 << (at % 8);
            let expected = v1::LogEntry::decode(flipped.as_slice()).ok().and_then(|wire| {
                wire.commands.iter().map(Command::try_from).collect::<Result<Vec<_>, _>>().ok()
            });
            let read = decode_entry(flipped.into(), 1, 1).ok().map(|(_, commands)| commands);
            assert_eq!(read, expected, "flipped at {at}");
        }
    }
}

#[test]
fn what_is_wrong_is_still_named() {
    let mut entry = generated(&[Command::Reserve(Random::new(3).reserve())]);
    let Some(v1::log_command::Command::Reserve(reserve)) = &mut entry.commands[0].command else { panic!() };
    reserve.request.as_mut().unwrap().tenant = "a b".into();
    let error = decode_entry(entry.encode_to_vec().into(), 1, 1).unwrap_err().to_string();
    assert!(error.starts_with("commands[0].request.tenant: has the character ' '"), "{error}");
}
