//! Taps a replica: every entry it applies, before anybody learns the answers.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_ledger::Effect;
use holdfast_node::replica::{AppliedRecord, EffectSink};
use holdfast_proto::log::decode_entry;

use crate::applied::AppliedEntry;

/// What one node applied over all of its lives.
pub(super) type Applied = Arc<Mutex<Vec<AppliedEntry>>>;

pub(super) struct Tap(pub(super) Applied);

impl EffectSink for Tap {
    fn entry_applied(&self, _index: u64, _effects: Vec<Effect>) {}

    fn restored(&self, _index: u64) {}

    fn recorded(&self, record: &AppliedRecord<'_>) {
        // The replica has just decoded the same bytes.
        let Ok((header, commands)) = decode_entry(record.payload.clone(), record.index, record.term) else {
            return;
        };
        let AppliedRecord { revision_before, digest, .. } = *record;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(AppliedEntry {
            header,
            revision_before,
            commands,
            digest,
        });
    }
}
