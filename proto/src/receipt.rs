//! Receipts, legs and rejections.

use std::sync::Arc;

use holdfast_ledger::answer::{Correction, Estimate, Extras, Hold, LegReceipt, Receipt, Rejection};
use holdfast_ledger::record::Subject;

use crate::amounts::{amounts_or_none, none_if_empty};
use crate::field::{FieldError, InField, fixed, name, optional_name};
use crate::shadow::shadow_or_none;
use crate::v1;
use crate::words::{Word, word};

fn text(name: impl AsRef<str>) -> String {
    name.as_ref().to_owned()
}

impl From<&Receipt> for v1::Receipt {
    fn from(receipt: &Receipt) -> Self {
        // Named one by one, so that a new field of the ledger does not get lost here.
        let Receipt {
            id,
            state,
            hold,
            request_digest,
            generation,
            tier,
            reserved,
            reserved_at_ms,
            reserved_revision,
            expires_at_ms,
            operation,
            started_at_ms,
            actual,
            ended_at_ms,
            ended_revision,
            debt,
            shadow,
            extras,
        } = receipt;
        let Hold { subject, legs, .. } = hold.as_ref();
        let Subject { tenant, user, route } = subject.as_ref();
        v1::Receipt {
            id: id.to_string(),
            state: state.number(),
            tenant: text(tenant.as_str()),
            user: user.as_ref().map(|user| text(user.as_str())),
            route: text(route.as_str()),
            request_digest: bytes::Bytes::copy_from_slice(request_digest),
            generation: *generation,
            tier: tier.number(),
            reserved: none_if_empty(*reserved),
            legs: legs.iter().map(v1::Leg::from).collect(),
            reserved_at_ms: *reserved_at_ms,
            reserved_revision: *reserved_revision,
            expires_at_ms: *expires_at_ms,
            operation: operation.as_ref().map(|operation| text(operation.as_str())),
            started_at_ms: *started_at_ms,
            // Here an empty list and an absent one differ: settled with nothing, and not settled.
            actual: actual.map(v1::Amounts::from),
            ended_at_ms: *ended_at_ms,
            ended_revision: *ended_revision,
            debt: none_if_empty(*debt),
            shadow: shadow.as_deref().map(v1::ShadowDecision::from),
            extras: extras.as_deref().map(v1::ReceiptExtras::from),
        }
    }
}

impl TryFrom<v1::Receipt> for Receipt {
    type Error = FieldError;

    fn try_from(wire: v1::Receipt) -> Result<Self, FieldError> {
        let legs =
            wire.legs.iter().enumerate().map(|(at, leg)| {
                LegReceipt::try_from(leg).map_err(|error| error.inside(&format!("legs[{at}]")))
            });
        let subject = Subject {
            tenant: name("tenant", &wire.tenant)?,
            user: optional_name("user", wire.user.as_deref())?,
            route: name("route", &wire.route)?,
        };
        Ok(Receipt {
            id: name("id", &wire.id)?,
            state: word("state", wire.state)?,
            hold: Arc::new(Hold::new(subject, legs.collect::<Result<_, _>>()?)),
            request_digest: fixed("request_digest", &wire.request_digest)?,
            generation: wire.generation,
            tier: word("tier", wire.tier)?,
            reserved: amounts_or_none(wire.reserved.as_ref()).in_field("reserved")?,
            reserved_at_ms: wire.reserved_at_ms,
            reserved_revision: wire.reserved_revision,
            expires_at_ms: wire.expires_at_ms,
            operation: optional_name("operation", wire.operation.as_deref())?,
            started_at_ms: wire.started_at_ms,
            actual: wire
                .actual
                .as_ref()
                .map(|actual| amounts_or_none(Some(actual)))
                .transpose()
                .in_field("actual")?,
            ended_at_ms: wire.ended_at_ms,
            ended_revision: wire.ended_revision,
            debt: amounts_or_none(wire.debt.as_ref()).in_field("debt")?,
            shadow: shadow_or_none(wire.shadow.as_ref())?,
            extras: optional_extras(wire.extras.as_ref())?,
        })
    }
}

impl From<&Extras> for v1::ReceiptExtras {
    fn from(Extras { asked, key, estimate, resolved_by }: &Extras) -> Self {
        v1::ReceiptExtras {
            asked: none_if_empty(*asked),
            idempotency_key: key.as_ref().map(|key| text(key.as_str())),
            resolved_by: resolved_by.as_ref().map(|actor| text(actor.as_str())),
            estimated: estimate.is_some(),
            correction: estimate.and_then(|estimate| estimate.correction).map(v1::Correction::from),
        }
    }
}

/// The extras of a receipt or of a stored reservation.
pub(crate) fn optional_extras(wire: Option<&v1::ReceiptExtras>) -> Result<Option<Arc<Extras>>, FieldError> {
    wire.map(|wire| Extras::try_from(wire).map(Arc::new)).transpose().in_field("extras")
}

impl TryFrom<&v1::ReceiptExtras> for Extras {
    type Error = FieldError;

    fn try_from(wire: &v1::ReceiptExtras) -> Result<Self, FieldError> {
        Ok(Extras {
            asked: amounts_or_none(wire.asked.as_ref()).in_field("asked")?,
            key: optional_name("idempotency_key", wire.idempotency_key.as_deref())?,
            estimate: read_estimate(wire)?,
            resolved_by: optional_name("resolved_by", wire.resolved_by.as_deref())?,
        })
    }
}

fn read_estimate(wire: &v1::ReceiptExtras) -> Result<Option<Estimate>, FieldError> {
    match (&wire.correction, wire.estimated) {
        (Some(_), false) => Err(FieldError::new("correction", "is of a settlement that was not estimated")),
        (None, false) => Ok(None),
        (correction, true) => {
            let correction = correction.as_ref().map(Correction::try_from).transpose();
            Ok(Some(Estimate { correction: correction.in_field("correction")? }))
        }
    }
}

impl From<Correction> for v1::Correction {
    fn from(Correction { at_ms, revision, actual, debt }: Correction) -> Self {
        v1::Correction { at_ms, revision, actual: none_if_empty(actual), debt: none_if_empty(debt) }
    }
}

impl TryFrom<&v1::Correction> for Correction {
    type Error = FieldError;

    fn try_from(wire: &v1::Correction) -> Result<Self, FieldError> {
        Ok(Correction {
            at_ms: wire.at_ms,
            revision: wire.revision,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
            debt: amounts_or_none(wire.debt.as_ref()).in_field("debt")?,
        })
    }
}

impl From<&LegReceipt> for v1::Leg {
    fn from(leg: &LegReceipt) -> Self {
        let LegReceipt { limit, level, unit, amount, generation, epoch_start_ms } = leg;
        v1::Leg {
            limit: text(limit.as_str()),
            level: level.number(),
            unit: unit.number(),
            amount: *amount,
            generation: *generation,
            epoch_start_ms: *epoch_start_ms,
        }
    }
}

impl TryFrom<&v1::Leg> for LegReceipt {
    type Error = FieldError;

    fn try_from(wire: &v1::Leg) -> Result<Self, FieldError> {
        Ok(LegReceipt {
            limit: name("limit", &wire.limit)?,
            level: word("level", wire.level)?,
            unit: word("unit", wire.unit)?,
            amount: wire.amount,
            generation: wire.generation,
            epoch_start_ms: wire.epoch_start_ms,
        })
    }
}

impl From<&Rejection> for v1::Rejection {
    fn from(rejection: &Rejection) -> Self {
        let Rejection { generation, limit, level, unit, reason, reset_at_ms, retry_after_ms } = rejection;
        v1::Rejection {
            generation: *generation,
            limit: text(limit.as_str()),
            level: level.number(),
            unit: unit.number(),
            reason: reason.number(),
            reset_at_ms: *reset_at_ms,
            retry_after_ms: *retry_after_ms,
        }
    }
}

impl TryFrom<&v1::Rejection> for Rejection {
    type Error = FieldError;

    fn try_from(wire: &v1::Rejection) -> Result<Self, FieldError> {
        Ok(Rejection {
            generation: wire.generation,
            limit: name("limit", &wire.limit)?,
            level: word("level", wire.level)?,
            unit: word("unit", wire.unit)?,
            reason: word("reason", wire.reason)?,
            reset_at_ms: wire.reset_at_ms,
            retry_after_ms: wire.retry_after_ms,
        })
    }
}
