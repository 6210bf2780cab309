//! Operators' adjustments: the call, the log, and the receipt.

use std::sync::Arc;

use holdfast_ledger::adjust::{Adjust, Adjustment, AdjustmentReceipt, AdjustmentRow, Standing};
use holdfast_ledger::answer::Answer;
use holdfast_ledger::record::{Lane, LineageKey};

use crate::answers::foreign_answer;
use crate::failure::Failure;
use crate::field::{FieldError, InField, fixed, name, optional_name, required};
use crate::operators::checked_reason;
use crate::v1;
use crate::v1::adjustment_kind::Kind as Wire;
use crate::words::{Word, word};
use bytes::Bytes;
use holdfast_ledger::AdjustmentId;

pub(crate) fn encode_adjustment_id(id: AdjustmentId) -> Bytes {
    Bytes::copy_from_slice(&id.0.to_be_bytes())
}

pub(crate) fn decode_adjustment_id(field: &str, bytes: &[u8]) -> Result<AdjustmentId, FieldError> {
    Ok(AdjustmentId(u128::from_be_bytes(fixed(field, bytes)?)))
}

/// The answer to an adjustment.
pub fn encode_adjusted(answer: &Answer, revision: u64) -> Result<v1::AdjustResponse, Failure> {
    match answer {
        Answer::Adjusted(receipt) => {
            Ok(v1::AdjustResponse { revision, adjustment: Some(receipt.as_ref().into()) })
        }
        Answer::Refused(refusal) => Err(Failure::from(refusal).at_revision(revision)),
        _ => Err(foreign_answer(answer, revision)),
    }
}

impl From<&LineageKey> for v1::LimitSubject {
    /// The enforced lane's: operators book in no other.
    fn from(key: &LineageKey) -> Self {
        let LineageKey { limit, tenant, user, route, model, region, lane: _ } = key;
        v1::LimitSubject {
            limit: limit.to_string(),
            tenant: tenant.as_ref().map(ToString::to_string),
            user: user.as_ref().map(ToString::to_string),
            route: route.as_ref().map(ToString::to_string),
            model: model.as_ref().map(ToString::to_string),
            region: region.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<&v1::LimitSubject> for LineageKey {
    type Error = FieldError;

    fn try_from(wire: &v1::LimitSubject) -> Result<Self, FieldError> {
        Ok(LineageKey {
            limit: name("limit", &wire.limit)?,
            tenant: optional_name("tenant", wire.tenant.as_deref())?,
            user: optional_name("user", wire.user.as_deref())?,
            route: optional_name("route", wire.route.as_deref())?,
            model: optional_name("model", wire.model.as_deref())?,
            region: optional_name("region", wire.region.as_deref())?,
            lane: Lane::Enforced,
        })
    }
}

impl From<Adjustment> for v1::AdjustmentKind {
    fn from(what: Adjustment) -> Self {
        let kind = match what {
            Adjustment::Grant(amount) => Wire::Grant(amount),
            Adjustment::Take(amount) => Wire::Take(amount),
            Adjustment::Charge(amount) => Wire::Charge(amount),
            Adjustment::Correct(amount) => Wire::Correct(amount),
            Adjustment::SetUsed(used) => Wire::SetUsed(used),
            Adjustment::Boost { amount, until_ms } => Wire::Boost(v1::Boost { amount, until_ms }),
            Adjustment::EndBoost { boost } => Wire::EndBoost(boost.to_string()),
        };
        v1::AdjustmentKind { kind: Some(kind) }
    }
}

impl TryFrom<&v1::AdjustmentKind> for Adjustment {
    type Error = FieldError;

    fn try_from(wire: &v1::AdjustmentKind) -> Result<Self, FieldError> {
        Ok(match required("kind", wire.kind.as_ref())? {
            Wire::Grant(amount) => Adjustment::Grant(*amount),
            Wire::Take(amount) => Adjustment::Take(*amount),
            Wire::Charge(amount) => Adjustment::Charge(*amount),
            Wire::Correct(amount) => Adjustment::Correct(*amount),
            Wire::SetUsed(used) => Adjustment::SetUsed(*used),
            Wire::Boost(v1::Boost { amount, until_ms }) => {
                Adjustment::Boost { amount: *amount, until_ms: *until_ms }
            }
            Wire::EndBoost(boost) => Adjustment::EndBoost { boost: name("end_boost", boost)? },
        })
    }
}

impl From<&Adjust> for v1::AdjustRequest {
    fn from(Adjust { id, lineage, epoch_start_ms, what, actor, reason }: &Adjust) -> Self {
        v1::AdjustRequest {
            id: id.to_string(),
            subject: Some(lineage.as_ref().into()),
            epoch_start_ms: *epoch_start_ms,
            what: Some((*what).into()),
            actor: actor.as_str().to_owned(),
            reason: reason.clone(),
        }
    }
}

impl TryFrom<&v1::AdjustRequest> for Adjust {
    type Error = FieldError;

    fn try_from(wire: &v1::AdjustRequest) -> Result<Self, FieldError> {
        let subject = required("subject", wire.subject.as_ref())?;
        Ok(Adjust {
            id: name("id", &wire.id)?,
            lineage: Arc::new(subject.try_into().in_field("subject")?),
            epoch_start_ms: wire.epoch_start_ms,
            what: required("what", wire.what.as_ref())?.try_into().in_field("what")?,
            actor: name("actor", &wire.actor)?,
            reason: checked_reason(&wire.reason)?,
        })
    }
}

impl From<&Adjust> for v1::LogAdjust {
    fn from(Adjust { id, lineage, epoch_start_ms, what, actor, reason }: &Adjust) -> Self {
        v1::LogAdjust {
            id: encode_adjustment_id(*id),
            subject: Some(lineage.as_ref().into()),
            epoch_start_ms: *epoch_start_ms,
            what: Some((*what).into()),
            actor: actor.as_str().to_owned(),
            reason: reason.clone(),
        }
    }
}

impl TryFrom<&v1::LogAdjust> for Adjust {
    type Error = FieldError;

    fn try_from(wire: &v1::LogAdjust) -> Result<Self, FieldError> {
        let subject = required("subject", wire.subject.as_ref())?;
        Ok(Adjust {
            id: decode_adjustment_id("id", &wire.id)?,
            lineage: Arc::new(subject.try_into().in_field("subject")?),
            epoch_start_ms: wire.epoch_start_ms,
            what: required("what", wire.what.as_ref())?.try_into().in_field("what")?,
            actor: name("actor", &wire.actor)?,
            reason: wire.reason.clone(),
        })
    }
}

impl From<Standing> for v1::Standing {
    fn from(Standing { used, held, limit_amount, remaining, debt }: Standing) -> Self {
        v1::Standing { used, held, limit: limit_amount, remaining, debt }
    }
}

impl From<v1::Standing> for Standing {
    fn from(v1::Standing { used, held, limit, remaining, debt }: v1::Standing) -> Self {
        Standing { used, held, limit_amount: limit, remaining, debt }
    }
}

impl From<&AdjustmentReceipt> for v1::Adjustment {
    fn from(receipt: &AdjustmentReceipt) -> Self {
        let AdjustmentReceipt { command, unit, at_ms, revision, generation, epoch_start_ms, before, after } =
            receipt;
        v1::Adjustment {
            request: Some(command.into()),
            unit: unit.number(),
            at_ms: *at_ms,
            revision: *revision,
            generation: *generation,
            epoch_start_ms: *epoch_start_ms,
            before: Some((*before).into()),
            after: Some((*after).into()),
        }
    }
}

/// A receipt as it is stored, in a row of its own or (`forget_at_ms` 0) in an event.
pub(crate) fn encode_stored(receipt: &AdjustmentReceipt, forget_at_ms: u64) -> v1::StoredAdjustment {
    let AdjustmentReceipt { command, unit, at_ms, revision, generation, epoch_start_ms, before, after } =
        receipt;
    v1::StoredAdjustment {
        command: Some(command.into()),
        unit: unit.number(),
        at_ms: *at_ms,
        revision: *revision,
        generation: *generation,
        epoch_start_ms: *epoch_start_ms,
        before: Some((*before).into()),
        after: Some((*after).into()),
        forget_at_ms,
    }
}

pub(crate) fn decode_stored(wire: v1::StoredAdjustment) -> Result<AdjustmentRow, FieldError> {
    let receipt = AdjustmentReceipt {
        command: required("command", wire.command.as_ref())?.try_into().in_field("command")?,
        unit: word("unit", wire.unit)?,
        at_ms: wire.at_ms,
        revision: wire.revision,
        generation: wire.generation,
        epoch_start_ms: wire.epoch_start_ms,
        before: required("before", wire.before)?.into(),
        after: required("after", wire.after)?.into(),
    };
    Ok(AdjustmentRow { receipt: Arc::new(receipt), forget_at_ms: wire.forget_at_ms })
}
