//! The payload of a log entry: stamp, epoch bounds and commands, encoded once by the
//! proposer and shared by replication, log and cache.
//!
//! Unknown fields of a newer writer are skipped here as everywhere in protobuf. That is safe only
//! because new behaviour is switched on by `rules_version`, once all members announce support.

mod bounds;
mod command;

pub(crate) use command::{decode_id, encode_id, unreadable_plan};

use bytes::Bytes;
use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::{Command, EntryHeader};
use prost::Message;

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
    let entry = v1::LogEntry {
        stamp_ms,
        epoch_bounds: epoch_bounds.iter().map(v1::EpochBounds::from).collect(),
        commands: commands.into_iter().map(v1::LogCommand::from).collect(),
    };
    entry.encode_to_vec().into()
}

/// The header and commands of a payload that stands at `index` and was written in `term`.
pub fn decode_entry(
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
