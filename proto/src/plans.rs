//! Publishing: plans and tenant records.

use std::sync::Arc;

use holdfast_ledger::command::{PublishPlan, RollBack, SetTenant};
use holdfast_ledger::limits::PLAN_BYTES_MAX;
use holdfast_ledger::loss::{LimitLoss, LossyChange};
use holdfast_ledger::plan::{Plan, PlanError};

use crate::field::{FieldError, name};
use crate::tenants::optional_record;
use crate::v1;
use crate::words::Word;

impl TryFrom<v1::PublishRequest> for PublishPlan {
    type Error = Vec<FieldError>;

    /// Parses the document; every problem of it is an error of its own, named by line.
    fn try_from(wire: v1::PublishRequest) -> Result<Self, Vec<FieldError>> {
        let actor = name("actor", &wire.actor).map_err(|error| vec![error])?;
        let plan = decode_document("document", &wire.document)?;
        Ok(PublishPlan {
            expected_generation: wire.expected_generation,
            force: wire.force,
            document: wire.document.into(),
            plan: Arc::new(plan),
            actor,
        })
    }
}

impl From<&PublishPlan> for v1::PublishRequest {
    fn from(command: &PublishPlan) -> Self {
        let PublishPlan { expected_generation, force, document, plan: _, actor } = command;
        v1::PublishRequest {
            expected_generation: *expected_generation,
            document: document.as_ref().to_owned(),
            actor: actor.as_str().to_owned(),
            force: *force,
        }
    }
}

impl From<&LimitLoss> for v1::LimitLoss {
    fn from(loss: &LimitLoss) -> Self {
        let LimitLoss { limit, unit, change, reservations, held, debt } = loss;
        use v1::LossyChange as Wire;
        let (change, unit_after) = match change {
            LossyChange::Removed => (Wire::Removed, None),
            LossyChange::Rescoped => (Wire::Rescoped, None),
            LossyChange::KindChanged => (Wire::KindChanged, None),
            LossyChange::UnitChanged { to } => (Wire::UnitChanged, Some(*to)),
            LossyChange::CurrencyChanged => (Wire::CurrencyChanged, None),
        };
        v1::LimitLoss {
            limit: limit.as_str().to_owned(),
            unit: unit.number(),
            change: change.into(),
            unit_after: unit_after.map_or(0, Word::number),
            reservations: *reservations,
            held: held.to_string(),
            debt: debt.to_string(),
            text: loss.to_string(),
        }
    }
}

/// The plan in a document, or every problem of it as an error of its own.
pub fn decode_document(field: &str, document: &str) -> Result<Plan, Vec<FieldError>> {
    if document.len() > PLAN_BYTES_MAX {
        let problem = format!("has {} bytes; at most {PLAN_BYTES_MAX} are allowed", document.len());
        return Err(vec![FieldError::new(field, problem)]);
    }
    let problem =
        |error: PlanError| FieldError::new(format!("{field}:{}:{}", error.line, error.path), error.problem);
    Plan::parse(document).map_err(|errors| errors.into_iter().map(problem).collect())
}

impl TryFrom<&v1::RollbackRequest> for RollBack {
    type Error = FieldError;

    fn try_from(wire: &v1::RollbackRequest) -> Result<Self, FieldError> {
        if wire.generation == 0 {
            return Err(FieldError::missing("generation"));
        }
        Ok(RollBack {
            to: wire.generation,
            expected_generation: wire.expected_generation,
            actor: name("actor", &wire.actor)?,
        })
    }
}

impl From<&RollBack> for v1::RollbackRequest {
    fn from(RollBack { to, expected_generation, actor }: &RollBack) -> Self {
        v1::RollbackRequest {
            generation: *to,
            expected_generation: *expected_generation,
            actor: actor.as_str().to_owned(),
        }
    }
}

impl TryFrom<&v1::SetTenantRequest> for SetTenant {
    type Error = FieldError;

    fn try_from(wire: &v1::SetTenantRequest) -> Result<Self, FieldError> {
        Ok(SetTenant {
            tenant: name("tenant", &wire.tenant)?,
            record: optional_record(wire.record.as_ref())?,
            expected_generation: wire.expected_generation,
            actor: name("actor", &wire.actor)?,
        })
    }
}

impl From<&SetTenant> for v1::SetTenantRequest {
    fn from(SetTenant { tenant, record, expected_generation, actor }: &SetTenant) -> Self {
        v1::SetTenantRequest {
            tenant: tenant.as_str().to_owned(),
            record: record.as_deref().map(v1::TenantRecord::from),
            expected_generation: *expected_generation,
            actor: actor.as_str().to_owned(),
        }
    }
}
