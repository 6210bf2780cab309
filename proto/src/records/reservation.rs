//! Reservations, open or remembered.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_ledger::record::{Ended, Leg, ReservationRow, Subject};

use super::text;
use crate::amounts::{amounts_or_none, none_if_empty};
use crate::field::{FieldError, InField, fixed, name, optional_name};
use crate::log::{decode_id, encode_id};
use crate::receipt::optional_extras;
use crate::shadow::shadow_or_none;
use crate::v1;
use crate::words::{Word, word};

pub(super) fn encode(slot: u32, row: &ReservationRow) -> v1::StoredReservation {
    let ReservationRow {
        id,
        request_digest,
        subject,
        generation,
        tier,
        state,
        reserved,
        legs,
        reserved_at_ms,
        reserved_revision,
        expires_at_ms,
        grace_ms,
        operation,
        started_at_ms,
        unknown_at_ms,
        shadow,
        ended,
        extras,
    } = row;
    let Subject { tenant, user, route } = subject.as_ref();
    v1::StoredReservation {
        slot,
        id: encode_id(*id),
        request_digest: Bytes::copy_from_slice(request_digest),
        tenant: text(tenant.as_str()),
        user: user.as_ref().map(|user| text(user.as_str())),
        route: text(route.as_str()),
        generation: *generation,
        tier: tier.number(),
        state: state.number(),
        reserved: none_if_empty(*reserved),
        legs: legs.iter().copied().map(v1::StoredLeg::from).collect(),
        reserved_at_ms: *reserved_at_ms,
        reserved_revision: *reserved_revision,
        expires_at_ms: *expires_at_ms,
        grace_ms: *grace_ms,
        operation: operation.as_ref().map(|operation| text(operation.as_str())),
        started_at_ms: *started_at_ms,
        unknown_at_ms: *unknown_at_ms,
        end: ended.as_deref().map(v1::StoredEnd::from),
        extras: extras.as_deref().map(v1::ReceiptExtras::from),
        shadow: shadow.as_deref().map(v1::ShadowDecision::from),
    }
}

pub(super) fn decode(wire: v1::StoredReservation) -> Result<ReservationRow, FieldError> {
    Ok(ReservationRow {
        id: decode_id("id", &wire.id)?,
        request_digest: fixed("request_digest", &wire.request_digest)?,
        subject: Arc::new(Subject {
            tenant: name("tenant", &wire.tenant)?,
            user: optional_name("user", wire.user.as_deref())?,
            route: name("route", &wire.route)?,
        }),
        generation: wire.generation,
        tier: word("tier", wire.tier)?,
        state: word("state", wire.state)?,
        reserved: amounts_or_none(wire.reserved.as_ref()).in_field("reserved")?,
        legs: wire.legs.into_iter().map(Leg::from).collect(),
        reserved_at_ms: wire.reserved_at_ms,
        reserved_revision: wire.reserved_revision,
        expires_at_ms: wire.expires_at_ms,
        grace_ms: wire.grace_ms,
        operation: optional_name("operation", wire.operation.as_deref())?,
        started_at_ms: wire.started_at_ms,
        unknown_at_ms: wire.unknown_at_ms,
        shadow: shadow_or_none(wire.shadow.as_ref())?,
        ended: wire.end.map(|end| Ended::try_from(end).map(Box::new)).transpose().in_field("end")?,
        extras: optional_extras(wire.extras.as_ref())?,
    })
}

impl From<Leg> for v1::StoredLeg {
    fn from(Leg { lineage, account, amount }: Leg) -> Self {
        v1::StoredLeg { lineage, account, amount }
    }
}

impl From<v1::StoredLeg> for Leg {
    fn from(v1::StoredLeg { lineage, account, amount }: v1::StoredLeg) -> Self {
        Leg { lineage, account, amount }
    }
}

impl From<&Ended> for v1::StoredEnd {
    fn from(Ended { at_ms, revision, forget_at_ms, actual, debt }: &Ended) -> Self {
        v1::StoredEnd {
            at_ms: *at_ms,
            revision: *revision,
            forget_at_ms: *forget_at_ms,
            actual: none_if_empty(*actual),
            debt: none_if_empty(*debt),
        }
    }
}

impl TryFrom<v1::StoredEnd> for Ended {
    type Error = FieldError;

    fn try_from(wire: v1::StoredEnd) -> Result<Self, FieldError> {
        Ok(Ended {
            at_ms: wire.at_ms,
            revision: wire.revision,
            forget_at_ms: wire.forget_at_ms,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
            debt: amounts_or_none(wire.debt.as_ref()).in_field("debt")?,
        })
    }
}
