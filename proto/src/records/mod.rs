//! The rows of a snapshot, both ways.

mod account;
mod event;
mod lineage;
mod reservation;
mod rule;
mod statement;
mod wide;

pub(crate) use account::named_columns;

use std::sync::Arc;

use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::plan::Plan;
use holdfast_ledger::query::{PublishedPlan, RolledBack, TenantVersion};
use holdfast_ledger::record::{CalendarRow, Freeze, FreezeCause, Header, Record, Tombstone};
use prost::Message;

use crate::adjust;
use crate::answers::{decode_digest, encode_digest};
use crate::field::{FieldError, InField, name, optional_name, required};
use crate::log::{EntryError, decode_id, encode_id, unreadable_plan};
use crate::operators::decode_scope;
use crate::tenants::optional_record;
use crate::v1;
use crate::v1::snapshot_record::Record as Wire;
use crate::words::{Word, word};

/// Appends a row's bytes to a buffer, without a frame.
pub fn encode_record(record: &Record, buffer: &mut Vec<u8>) {
    v1::SnapshotRecord::from(record).encode_raw(buffer);
}

/// The row in these bytes.
pub fn decode_record(bytes: &[u8]) -> Result<Record, EntryError> {
    Ok(v1::SnapshotRecord::decode(bytes)?.try_into()?)
}

pub(crate) fn text(name: impl AsRef<str>) -> String {
    name.as_ref().to_owned()
}

impl From<&Record> for v1::SnapshotRecord {
    fn from(record: &Record) -> Self {
        let record = match record {
            Record::Header(header) => Wire::Header(header.into()),
            Record::Plan(plan) => Wire::Plan(plan.into()),
            Record::Tenant(tenant) => Wire::Tenant(tenant.into()),
            Record::Calendar(CalendarRow { calendar, bounds_ms }) => Wire::Calendar(v1::EpochBounds {
                calendar: Some(calendar.as_ref().into()),
                bounds_ms: bounds_ms.clone(),
            }),
            Record::Lineage(slot, lineage) => Wire::Lineage(lineage::encode(*slot, lineage)),
            Record::ClosedAccount(slot, closed) => Wire::ClosedAccount(v1::StoredClosedAccount {
                slot: *slot,
                lineage: closed.lineage,
                account: Some((&closed.account).into()),
            }),
            Record::Reservation(slot, row) => Wire::Reservation(reservation::encode(*slot, row)),
            Record::Tombstone(slot, Tombstone { id, at_ms, forget_at_ms }) => {
                Wire::Tombstone(v1::StoredTombstone {
                    slot: *slot,
                    id: encode_id(*id),
                    at_ms: *at_ms,
                    forget_at_ms: *forget_at_ms,
                })
            }
            Record::Freeze(freeze) => Wire::Freeze(freeze.into()),
            Record::Shadow(counts) => Wire::Shadow(counts.into()),
            Record::Adjustment(row) => {
                Wire::Adjustment(adjust::encode_stored(&row.receipt, row.forget_at_ms))
            }
            Record::Webhook(row) => Wire::Webhook(row.into()),
            Record::Statement(statement) => Wire::Statement(statement.as_ref().into()),
            Record::Event(event) => Wire::Event(event.as_ref().into()),
        };
        v1::SnapshotRecord { record: Some(record) }
    }
}

impl TryFrom<v1::SnapshotRecord> for Record {
    type Error = FieldError;

    fn try_from(wire: v1::SnapshotRecord) -> Result<Self, FieldError> {
        Ok(match required("record", wire.record)? {
            Wire::Header(wire) => Record::Header(wire.try_into().in_field("header")?),
            Wire::Plan(wire) => Record::Plan(wire.try_into().in_field("plan")?),
            Wire::Tenant(wire) => Record::Tenant(wire.try_into().in_field("tenant")?),
            Wire::Calendar(wire) => {
                let EpochBounds { calendar, bounds_ms } = wire.try_into().in_field("calendar")?;
                Record::Calendar(CalendarRow { calendar, bounds_ms })
            }
            Wire::Lineage(wire) => {
                Record::Lineage(wire.slot, Box::new(lineage::decode(wire).in_field("lineage")?))
            }
            Wire::ClosedAccount(wire) => Record::ClosedAccount(
                wire.slot,
                Box::new(account::decode_closed(wire).in_field("closed_account")?),
            ),
            Wire::Reservation(wire) => {
                Record::Reservation(wire.slot, reservation::decode(wire).in_field("reservation")?)
            }
            Wire::Tombstone(v1::StoredTombstone { slot, id, at_ms, forget_at_ms }) => {
                let id = decode_id("tombstone.id", &id)?;
                Record::Tombstone(slot, Tombstone { id, at_ms, forget_at_ms })
            }
            Wire::Freeze(wire) => Record::Freeze(wire.try_into().in_field("freeze")?),
            Wire::Shadow(wire) => Record::Shadow(wire.try_into().in_field("shadow")?),
            Wire::Adjustment(wire) => Record::Adjustment(adjust::decode_stored(wire).in_field("adjustment")?),
            Wire::Webhook(wire) => Record::Webhook(wire.try_into().in_field("webhook")?),
            Wire::Statement(wire) => Record::Statement(statement::decode(wire).in_field("statement")?),
            Wire::Event(wire) => Record::Event(Arc::new(wire.try_into().in_field("event")?)),
        })
    }
}

impl From<&Header> for v1::StoredHeader {
    fn from(header: &Header) -> Self {
        let Header {
            index,
            term,
            revision,
            clock_ms,
            id_floor_ms,
            generation,
            rules_version,
            event_sequence,
            digest,
            records,
        } = header;
        v1::StoredHeader {
            index: *index,
            term: *term,
            revision: *revision,
            clock_ms: *clock_ms,
            id_floor_ms: *id_floor_ms,
            generation: *generation,
            rules_version: *rules_version,
            event_sequence: *event_sequence,
            digest: encode_digest(*digest),
            records: *records,
        }
    }
}

impl TryFrom<v1::StoredHeader> for Header {
    type Error = FieldError;

    fn try_from(wire: v1::StoredHeader) -> Result<Self, FieldError> {
        Ok(Header {
            index: wire.index,
            term: wire.term,
            revision: wire.revision,
            clock_ms: wire.clock_ms,
            id_floor_ms: wire.id_floor_ms,
            generation: wire.generation,
            rules_version: wire.rules_version,
            event_sequence: wire.event_sequence,
            digest: decode_digest("digest", &wire.digest)?,
            records: wire.records,
        })
    }
}

impl From<&PublishedPlan> for v1::StoredPlan {
    fn from(published: &PublishedPlan) -> Self {
        // The plan itself is not stored: it follows from the document.
        let PublishedPlan { generation, document, plan: _, published_at_ms, actor, roll_back } = published;
        v1::StoredPlan {
            generation: *generation,
            document: text(document),
            published_at_ms: *published_at_ms,
            actor: text(actor.as_str()),
            restored: roll_back.map_or(0, |roll_back| roll_back.restored),
            rolled_back_first: roll_back.map_or(0, |roll_back| roll_back.first),
        }
    }
}

impl TryFrom<v1::StoredPlan> for PublishedPlan {
    type Error = FieldError;

    fn try_from(wire: v1::StoredPlan) -> Result<Self, FieldError> {
        Ok(PublishedPlan {
            generation: wire.generation,
            plan: Arc::new(Plan::parse(&wire.document).map_err(unreadable_plan)?),
            document: wire.document.into(),
            published_at_ms: wire.published_at_ms,
            actor: name("actor", &wire.actor)?,
            roll_back: (wire.rolled_back_first != 0)
                .then_some(RolledBack { restored: wire.restored, first: wire.rolled_back_first }),
        })
    }
}

impl From<&TenantVersion> for v1::StoredTenant {
    fn from(version: &TenantVersion) -> Self {
        let TenantVersion { tenant, generation, record, set_at_ms, actor } = version;
        v1::StoredTenant {
            tenant: text(tenant.as_str()),
            generation: *generation,
            record: record.as_deref().map(v1::TenantRecord::from),
            set_at_ms: *set_at_ms,
            actor: text(actor.as_str()),
        }
    }
}

impl TryFrom<v1::StoredTenant> for TenantVersion {
    type Error = FieldError;

    fn try_from(wire: v1::StoredTenant) -> Result<Self, FieldError> {
        Ok(TenantVersion {
            tenant: name("tenant", &wire.tenant)?,
            generation: wire.generation,
            record: optional_record(wire.record.as_ref())?,
            set_at_ms: wire.set_at_ms,
            actor: name("actor", &wire.actor)?,
        })
    }
}

impl From<&Freeze> for v1::StoredFreeze {
    fn from(freeze: &Freeze) -> Self {
        let Freeze { scope, at_ms, cause } = freeze;
        let head = v1::StoredFreeze { scope: Some(scope.into()), at_ms: *at_ms, ..Default::default() };
        match cause {
            FreezeCause::Breach { reservation, limit, level, unit } => v1::StoredFreeze {
                limit: text(limit.as_str()),
                level: level.number(),
                unit: unit.number(),
                reservation: encode_id(*reservation),
                ..head
            },
            FreezeCause::Operator { actor, reason } => {
                v1::StoredFreeze { actor: Some(text(actor.as_str())), reason: reason.clone(), ..head }
            }
        }
    }
}

impl TryFrom<v1::StoredFreeze> for Freeze {
    type Error = FieldError;

    fn try_from(wire: v1::StoredFreeze) -> Result<Self, FieldError> {
        let cause = match optional_name("actor", wire.actor.as_deref())? {
            Some(actor) => FreezeCause::Operator { actor, reason: wire.reason },
            None => FreezeCause::Breach {
                reservation: decode_id("reservation", &wire.reservation)?,
                limit: name("limit", &wire.limit)?,
                level: word("level", wire.level)?,
                unit: word("unit", wire.unit)?,
            },
        };
        Ok(Freeze { scope: decode_scope(wire.scope.as_ref())?, at_ms: wire.at_ms, cause })
    }
}
