//! The payload of a log entry: stamp, epoch bounds and commands, encoded once by the
//! proposer and shared by replication, log and cache.
//!
//! Unknown fields of a newer writer are skipped here as everywhere in protobuf. That is safe only
//! because new behaviour is switched on by `rules_version`, once all members announce support.

mod bounds;
mod command;
mod hot;

pub(crate) use command::{decode_id, encode_id, unreadable_plan};

use bytes::Bytes;
use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::{Command, EntryHeader};
use prost::Message;
use prost::encoding::{DecodeContext, decode_key, decode_varint, skip_field};

use crate::field::FieldError;
use crate::v1;

/// An entry's payload cannot be read. The replica must stop: to skip it would make books differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The bytes are no `LogEntry`.
    #[error("not an encoded log entry: {0}")]
    Encoding(#[from] prost::DecodeError),
    /// A field is missing or wrong, perhaps because it was written by a newer version.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// The payload of an entry. Index and term stand in the frame around it.
pub fn encode_entry<'a>(
    stamp_ms: u64,
    epoch_bounds: &[EpochBounds],
    commands: impl IntoIterator<Item = &'a Command>,
) -> Bytes {
    let head = v1::LogEntry {
        stamp_ms,
        epoch_bounds: epoch_bounds.iter().map(v1::EpochBounds::from).collect(),
        commands: Vec::new(),
    };
    let mut out = head.encode_to_vec();
    for command in commands {
        out.push(COMMAND_TAG);
        if !hot::encode(command, &mut out) {
            let wire = v1::LogCommand::from(command).encode_length_delimited_to_vec();
            out.extend_from_slice(&wire);
        }
    }
    out.into()
}

/// Field 3 of a `LogEntry`, length-delimited.
const COMMAND_TAG: u8 = 3 << 3 | 2;

/// The header and commands of a payload that stands at `index` and was written in `term`.
pub fn decode_entry(
    payload: Bytes,
    index: u64,
    term: u64,
) -> Result<(EntryHeader, Vec<Command>), EntryError> {
    match split(&payload, index, term) {
        Some(entry) => Ok(entry),
        // Not the form that this version writes, or wrong: the generated code knows which.
        None => decode_generated(payload, index, term),
    }
}

/// Reads an entry without a struct in between. `None` if anything is not as [`encode_entry`] writes it.
fn split(payload: &[u8], index: u64, term: u64) -> Option<(EntryHeader, Vec<Command>)> {
    // What stands before the first command is small and seldom more than a stamp.
    let mut rest = payload;
    while let Some(&tag) = rest.first()
        && tag != COMMAND_TAG
    {
        let (number, wire_type) = decode_key(&mut rest).ok()?;
        skip_field(wire_type, number, &mut rest, DecodeContext::default()).ok()?;
    }
    let head = v1::LogEntry::decode(&payload[..payload.len() - rest.len()]).ok()?;
    let epoch_bounds =
        head.epoch_bounds.into_iter().map(EpochBounds::try_from).collect::<Result<_, _>>().ok()?;
    let mut commands = Vec::new();
    while let Some((&tag, after)) = rest.split_first() {
        if tag != COMMAND_TAG {
            return None;
        }
        rest = after;
        let len = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
        let (bytes, after) = rest.split_at_checked(len)?;
        rest = after;
        commands.push(match hot::decode(bytes) {
            Some(command) => command,
            None => Command::try_from(&v1::LogCommand::decode(bytes).ok()?).ok()?,
        });
    }
    Some((EntryHeader { index, term, stamp_ms: head.stamp_ms, epoch_bounds }, commands))
}

fn decode_generated(
    payload: Bytes,
    index: u64,
    term: u64,
) -> Result<(EntryHeader, Vec<Command>), EntryError> {
    let entry = v1::LogEntry::decode(payload)?;
    let mut epoch_bounds = Vec::with_capacity(entry.epoch_bounds.len());
    for (at, bounds) in entry.epoch_bounds.into_iter().enumerate() {
        let within = |error: FieldError| error.inside(&format!("epoch_bounds[{at}]"));
        epoch_bounds.push(EpochBounds::try_from(bounds).map_err(within)?);
    }
    let mut commands = Vec::with_capacity(entry.commands.len());
    for (at, command) in entry.commands.iter().enumerate() {
        let within = |error: FieldError| error.inside(&format!("commands[{at}]"));
        commands.push(Command::try_from(command).map_err(within)?);
    }
    Ok((EntryHeader { index, term, stamp_ms: entry.stamp_ms, epoch_bounds }, commands))
}
