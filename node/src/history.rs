//! The history index as the node uses it: the book's effects go in, the entries of the `History` service come out.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use holdfast_ledger::event::{Event, Statement};
use holdfast_ledger::{BookSnapshot, Effect, Receipt};
use holdfast_proto::events::encode_event;
use holdfast_proto::v1;
use holdfast_proto::v1::history_entry::What;
use prost::Message;

use crate::replica::{AppliedRecord, BookView, EffectSink};
use crate::storage::history::{
    HistoryBatch, HistoryConfig, HistoryError, HistoryFeed, HistoryId, HistoryReader, HistoryRecord,
    HistoryThread, RETAINED_NUMBER, RetainedPart, TakeRetained, spawn_history,
};
use crate::storage::limits::{HISTORY_RETAINED_PART_RECORDS, HISTORY_RETAINED_RECORDS_MAX};

/// Starts the index in a directory of the machine: what feeds it, what reads it, and its thread.
///
/// # Errors
/// No thread could be started.
pub fn start(
    dir: &Path,
    config: HistoryConfig,
) -> std::io::Result<(HistorySink, HistoryReader, HistoryThread)> {
    let book: Arc<OnceLock<BookView>> = Arc::default();
    let asked = Arc::clone(&book);
    let tell = move |take: TakeRetained<'_>| match asked.get() {
        Some(book) => tell_retained(&book.freeze(), take),
        None => Ok(()),
    };
    let (feed, reader, thread) = spawn_history(dir, config, Box::new(tell))?;
    Ok((HistorySink { feed, book, revision_before: AtomicU64::new(0) }, reader, thread))
}

/// Feeds the index from the apply stream, without ever waiting for it.
pub struct HistorySink {
    feed: HistoryFeed,
    /// What the index asks when it has lost something.
    book: Arc<OnceLock<BookView>>,
    /// The book's revision before the entry being applied.
    revision_before: AtomicU64,
}

impl EffectSink for HistorySink {
    fn attached(&self, book: BookView) {
        // A sink has one replica.
        let _ = self.book.set(book);
    }

    fn entry_applied(&self, index: u64, effects: Vec<Effect>) {
        // Encoding takes longer than applying did: the index's thread does it.
        let first_revision = self.revision_before.load(Ordering::Relaxed) + 1;
        self.feed.offer(index, effects.len(), Box::new(move || batch(index, first_revision, &effects)));
    }

    fn recorded(&self, record: &AppliedRecord<'_>) {
        self.revision_before.store(record.revision_before, Ordering::Relaxed);
    }

    fn restored(&self, index: u64) {
        self.feed.start_after(index);
    }
}

/// What a frozen book still knows, in parts, the oldest first.
fn tell_retained(book: &BookSnapshot, take: TakeRetained<'_>) -> Result<(), HistoryError> {
    let header = book.header();
    let mut retained = book.retained(HISTORY_RETAINED_RECORDS_MAX);
    let first_revision = retained.complete_from_revision;
    let mut first_number = RETAINED_NUMBER;
    loop {
        let effects = retained.by_ref().take(HISTORY_RETAINED_PART_RECORDS);
        let records: Vec<_> = effects.map(|effect| record(&effect, header.revision)).collect();
        let told = records.len();
        let is_last = told < HISTORY_RETAINED_PART_RECORDS;
        let batch = HistoryBatch {
            since_index: header.index,
            index: header.index,
            first_revision,
            last_revision: header.revision,
            clock_ms: header.clock_ms,
            records,
        };
        take(RetainedPart { batch, first_number, is_last })?;
        if is_last {
            tracing::info!(
                first_revision,
                records = told as u32 + first_number - RETAINED_NUMBER,
                "the history index took what the book remembers"
            );
            return Ok(());
        }
        first_number += told as u32;
    }
}

/// The batch of one entry's effects, whose first command has `first_revision`.
fn batch(index: u64, first_revision: u64, effects: &[Effect]) -> HistoryBatch {
    let records: Vec<HistoryRecord> = effects.iter().map(|effect| record(effect, first_revision)).collect();
    HistoryBatch {
        since_index: 0,
        index,
        first_revision,
        last_revision: records.iter().map(|record| record.revision).max().unwrap_or(first_revision),
        clock_ms: records.iter().map(|record| record.at_ms).max().unwrap_or(0),
        records,
    }
}

fn record(effect: &Effect, first_revision: u64) -> HistoryRecord {
    match effect {
        Effect::Ended(receipt) => ended_record(receipt),
        Effect::Event(event) => {
            let body = history_event(event);
            HistoryRecord {
                id: HistoryId::Event(event.sequence),
                revision: event.revision,
                at_ms: event.at_ms,
                tenant: (!body.tenant.is_empty()).then(|| body.tenant.clone()),
                body: body.encode_to_vec(),
            }
        }
        // It does not say which of the entry's commands archived it.
        Effect::Statement(statement) => statement_record(statement, first_revision),
    }
}

/// A reservation as it ended, or once more as it was corrected.
fn ended_record(receipt: &Receipt) -> HistoryRecord {
    let id = receipt.id.0.to_be_bytes();
    let (id, revision, at_ms) = match receipt.correction() {
        Some(correction) => (HistoryId::Correction(id), correction.revision, correction.at_ms),
        None => (
            HistoryId::Reservation(id),
            receipt.ended_revision.unwrap_or(receipt.reserved_revision),
            receipt.ended_at_ms.unwrap_or(receipt.reserved_at_ms),
        ),
    };
    let tenant = Some(receipt.hold.subject.tenant.to_string());
    HistoryRecord { id, revision, at_ms, tenant, body: v1::Receipt::from(receipt).encode_to_vec() }
}

fn statement_record(statement: &Statement, revision: u64) -> HistoryRecord {
    let Statement { lineage, generation, epoch_start_ms, at_ms, .. } = statement;
    let epoch = epoch_start_ms.map_or_else(|| "continuous".to_owned(), |start| start.to_string());
    HistoryRecord {
        id: HistoryId::Statement(format!("{lineage} {generation} {epoch}").into_bytes()),
        revision,
        at_ms: *at_ms,
        tenant: lineage.tenant.as_ref().map(ToString::to_string),
        body: v1::HistoryStatement::from(statement).encode_to_vec(),
    }
}

fn history_event(event: &Event) -> v1::HistoryEvent {
    let v1::Event { sequence, kind, tenant, user, limit, text, .. } = encode_event(event);
    v1::HistoryEvent {
        sequence,
        kind,
        tenant: tenant.unwrap_or_default(),
        user: user.unwrap_or_default(),
        limit: limit.unwrap_or_default(),
        text,
    }
}

/// A record as the `History` service gives it out.
///
/// # Errors
/// The body is not what was put in.
pub fn entry(record: &HistoryRecord) -> Result<v1::HistoryEntry, HistoryError> {
    let body = record.body.as_slice();
    let what = match record.id {
        HistoryId::Reservation(_) | HistoryId::Correction(_) => v1::Receipt::decode(body).map(What::Ended),
        HistoryId::Event(_) => v1::HistoryEvent::decode(body).map(What::Event),
        HistoryId::Statement(_) => v1::HistoryStatement::decode(body).map(What::Statement),
    };
    let what = what.map_err(|error| HistoryError::Failed(error.to_string()))?;
    Ok(v1::HistoryEntry { revision: record.revision, at_ms: record.at_ms, what: Some(what) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use holdfast_ledger::Unit;
    use holdfast_ledger::event::EventKind;
    use holdfast_ledger::record::{Columns, Lane, LineageKey};

    use super::*;

    fn event(sequence: u64, kind: EventKind) -> Effect {
        Effect::Event(Arc::new(Event { sequence, at_ms: 5_000, revision: 7, kind }))
    }

    fn history_event(effect: &Effect) -> (HistoryRecord, v1::HistoryEvent) {
        let record = record(effect, 6);
        match entry(&record).unwrap() {
            v1::HistoryEntry { revision, at_ms: 5_000, what: Some(What::Event(event)) } => {
                assert_eq!(revision, record.revision);
                (record, event)
            }
            other => panic!("not an event: {other:?}"),
        }
    }

    #[test]
    fn events_come_out_with_whom_they_are_about() {
        let set = EventKind::TenantSet {
            generation: 3,
            tenant: "acme".parse().unwrap(),
            actor: "ops".parse().unwrap(),
        };
        let (record, wire) = history_event(&event(9, set));
        assert_eq!((record.id, record.tenant.as_deref()), (HistoryId::Event(9), Some("acme")));
        assert_eq!((wire.sequence, wire.kind.as_str(), wire.tenant.as_str()), (9, "TENANT_SET", "acme"));
        assert_eq!(wire.text, "generation 3, by ops");

        let published =
            EventKind::PlanPublished { generation: 4, forced: false, actor: "ops".parse().unwrap() };
        let (record, wire) = history_event(&event(10, published));
        assert_eq!((record.tenant, wire.kind.as_str()), (None, "PLAN_PUBLISHED"));
    }

    #[test]
    fn a_statement_comes_out_with_its_columns() {
        let lineage = LineageKey {
            limit: "month-tokens".parse().unwrap(),
            tenant: Some("acme".parse().unwrap()),
            user: None,
            route: None,
            model: None,
            region: None,
            lane: Lane::Shadow,
        };
        let columns = Columns { granted: 100, spent: 70, forfeited: 30, ..Columns::default() };
        let statement = Statement {
            lineage: Arc::new(lineage),
            unit: Unit::Tokens,
            generation: 3,
            epoch_start_ms: Some(4_000),
            columns,
            at_ms: 5_000,
        };
        let record = record(&Effect::Statement(Arc::new(statement)), 6);
        assert_eq!((record.revision, record.at_ms, record.tenant.as_deref()), (6, 5_000, Some("acme")));
        let Some(What::Statement(wire)) = entry(&record).unwrap().what else { panic!("no statement") };
        assert_eq!(wire.subject.as_ref().unwrap().limit, "month-tokens");
        assert_eq!((wire.shadow, wire.generation, wire.epoch_start_ms), (true, 3, Some(4_000)));
        assert_eq!(wire.unit(), v1::Unit::Tokens);
        let columns: BTreeMap<&str, &str> =
            wire.columns.iter().map(|(name, sum)| (&**name, &**sum)).collect();
        assert_eq!(columns, [("forfeited", "30"), ("granted", "100"), ("spent", "70")].into());
    }

    #[test]
    fn a_batch_is_everything_from_its_entrys_first_revision_on() {
        let published = |sequence| {
            event(
                sequence,
                EventKind::PlanPublished { generation: 4, forced: false, actor: "ops".parse().unwrap() },
            )
        };
        let batch = batch(20, 6, &[published(1), published(2)]);
        assert_eq!(
            (batch.index, batch.first_revision, batch.last_revision, batch.clock_ms),
            (20, 6, 7, 5_000)
        );
        assert_eq!(batch.records.len(), 2);
    }

    #[test]
    fn a_body_that_is_no_message_is_an_error() {
        let mut damaged = record(
            &event(
                1,
                EventKind::PlanPublished { generation: 4, forced: false, actor: "ops".parse().unwrap() },
            ),
            6,
        );
        damaged.body = vec![0xff; 3];
        assert!(entry(&damaged).is_err());
    }
}
