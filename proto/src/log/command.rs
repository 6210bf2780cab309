//! Stored commands. They have messages of their own, so that the public ones may grow
//! without touching what is on disk.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_ledger::command::{
    AdvanceWebhook, Correct, Freeze, PublishPlan, Release, Renew, ReportUnknown, Reserve, ResolveUnknown,
    RollBack, SetTenant, SetWebhook, Settle, Start, Unfreeze, UnreadablePlan,
};
use holdfast_ledger::plan::{Plan, PlanError};
use holdfast_ledger::webhook::Webhook;
use holdfast_ledger::{Command, ReservationId};

use crate::amounts::{amounts_or_none, none_if_empty};
use crate::field::{FieldError, InField, fixed, name, optional_name, required};
use crate::operators::decode_scope;
use crate::tenants::optional_record;
use crate::v1;
use crate::v1::log_command::Command as Wire;

pub(crate) fn encode_id(id: ReservationId) -> Bytes {
    Bytes::copy_from_slice(&id.0.to_be_bytes())
}

pub(crate) fn decode_id(field: &str, bytes: &[u8]) -> Result<ReservationId, FieldError> {
    Ok(ReservationId(u128::from_be_bytes(fixed(field, bytes)?)))
}

impl From<&Command> for v1::LogCommand {
    fn from(command: &Command) -> Self {
        v1::LogCommand { command: Some(encode(command)) }
    }
}

impl TryFrom<&v1::LogCommand> for Command {
    type Error = FieldError;

    fn try_from(wire: &v1::LogCommand) -> Result<Self, FieldError> {
        decode(required("command", wire.command.as_ref())?)
    }
}

fn encode(command: &Command) -> Wire {
    match command {
        Command::Reserve(Reserve { id, attempt, request, request_digest, key }) => {
            Wire::Reserve(v1::LogReserve {
                id: encode_id(*id),
                attempt: *attempt,
                request: Some(request.into()),
                request_digest: Bytes::copy_from_slice(request_digest),
                idempotency_key: key.as_ref().map(|key| key.as_str().to_owned()),
            })
        }
        Command::Start(Start { id, operation }) => {
            Wire::Start(v1::LogStart { id: encode_id(*id), operation: operation.as_str().to_owned() })
        }
        Command::Settle(Settle { id, operation, actual, estimated }) => Wire::Settle(v1::LogSettle {
            id: encode_id(*id),
            operation: operation.as_str().to_owned(),
            actual: none_if_empty(*actual),
            estimated: *estimated,
        }),
        Command::Correct(Correct { id, operation, actual }) => Wire::Correct(v1::LogCorrect {
            id: encode_id(*id),
            operation: operation.as_str().to_owned(),
            actual: none_if_empty(*actual),
        }),
        Command::Release(Release { id }) => Wire::Release(v1::LogRelease { id: encode_id(*id) }),
        Command::Renew(Renew { id, extend_ms }) => {
            Wire::Renew(v1::LogRenew { id: encode_id(*id), extend_ms: *extend_ms })
        }
        Command::ReportUnknown(ReportUnknown { id, operation }) => {
            Wire::ReportUnknown(v1::LogReportUnknown {
                id: encode_id(*id),
                operation: operation.as_str().to_owned(),
            })
        }
        // The plan itself is not stored: it follows from the document, and so does that there is none.
        Command::PublishPlan(PublishPlan { expected_generation, force, document, plan: _, actor })
        | Command::UnreadablePlan(UnreadablePlan {
            expected_generation,
            force,
            document,
            actor,
            problem: _,
        }) => Wire::PublishPlan(v1::LogPublishPlan {
            expected_generation: *expected_generation,
            document: document.as_ref().to_owned(),
            actor: actor.as_str().to_owned(),
            force: *force,
        }),
        Command::RollBack(RollBack { to, expected_generation, actor }) => Wire::RollBack(v1::LogRollBack {
            to: *to,
            expected_generation: *expected_generation,
            actor: actor.as_str().to_owned(),
        }),
        Command::SetTenant(SetTenant { tenant, record, expected_generation, actor }) => {
            Wire::SetTenant(v1::LogSetTenant {
                tenant: tenant.as_str().to_owned(),
                record: record.as_deref().map(v1::TenantRecord::from),
                expected_generation: *expected_generation,
                actor: actor.as_str().to_owned(),
            })
        }
        Command::ResolveUnknown(ResolveUnknown { id, actual, actor, reason }) => {
            Wire::ResolveUnknown(v1::LogResolveUnknown {
                id: encode_id(*id),
                actual: none_if_empty(*actual),
                actor: actor.as_str().to_owned(),
                reason: reason.clone(),
            })
        }
        Command::Freeze(Freeze { scope, actor, reason }) => Wire::Freeze(v1::LogFreeze {
            scope: Some(scope.into()),
            actor: actor.as_str().to_owned(),
            reason: reason.clone(),
        }),
        Command::Unfreeze(Unfreeze { scope, actor, reason }) => Wire::Unfreeze(v1::LogUnfreeze {
            scope: Some(scope.into()),
            actor: actor.as_str().to_owned(),
            reason: reason.clone(),
        }),
        Command::Adjust(adjust) => Wire::Adjust(adjust.as_ref().into()),
        Command::SetWebhook(SetWebhook { tenant, webhook, actor }) => Wire::SetWebhook(v1::LogSetWebhook {
            tenant: tenant.as_str().to_owned(),
            webhook: webhook.as_ref().map(v1::Webhook::from),
            actor: actor.as_str().to_owned(),
        }),
        Command::AdvanceWebhook(AdvanceWebhook { tenant, cursor }) => {
            Wire::AdvanceWebhook(v1::LogAdvanceWebhook {
                tenant: tenant.as_str().to_owned(),
                cursor: *cursor,
            })
        }
        Command::Tick => Wire::Tick(v1::LogTick {}),
        Command::RaiseRules { rules_version } => {
            Wire::RaiseRules(v1::LogRaiseRules { rules_version: *rules_version })
        }
    }
}

fn decode(wire: &Wire) -> Result<Command, FieldError> {
    Ok(match wire {
        Wire::Reserve(wire) => Command::Reserve(Reserve {
            id: decode_id("id", &wire.id)?,
            attempt: wire.attempt,
            request: required("request", wire.request.as_ref())?.try_into().in_field("request")?,
            request_digest: fixed("request_digest", &wire.request_digest)?,
            key: optional_name("idempotency_key", wire.idempotency_key.as_deref())?,
        }),
        Wire::Start(wire) => Command::Start(Start {
            id: decode_id("id", &wire.id)?,
            operation: name("operation", &wire.operation)?,
        }),
        Wire::Settle(wire) => Command::Settle(Settle {
            id: decode_id("id", &wire.id)?,
            operation: name("operation", &wire.operation)?,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
            estimated: wire.estimated,
        }),
        Wire::Correct(wire) => Command::Correct(Correct {
            id: decode_id("id", &wire.id)?,
            operation: name("operation", &wire.operation)?,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
        }),
        Wire::Release(wire) => Command::Release(Release { id: decode_id("id", &wire.id)? }),
        Wire::Renew(wire) => {
            Command::Renew(Renew { id: decode_id("id", &wire.id)?, extend_ms: wire.extend_ms })
        }
        Wire::ReportUnknown(wire) => Command::ReportUnknown(ReportUnknown {
            id: decode_id("id", &wire.id)?,
            operation: name("operation", &wire.operation)?,
        }),
        Wire::PublishPlan(wire) => decode_publish(wire)?,
        Wire::RollBack(wire) => Command::RollBack(RollBack {
            to: wire.to,
            expected_generation: wire.expected_generation,
            actor: name("actor", &wire.actor)?,
        }),
        Wire::SetTenant(wire) => Command::SetTenant(SetTenant {
            tenant: name("tenant", &wire.tenant)?,
            record: optional_record(wire.record.as_ref())?,
            expected_generation: wire.expected_generation,
            actor: name("actor", &wire.actor)?,
        }),
        Wire::ResolveUnknown(wire) => Command::ResolveUnknown(ResolveUnknown {
            id: decode_id("id", &wire.id)?,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
            actor: name("actor", &wire.actor)?,
            reason: wire.reason.clone(),
        }),
        Wire::Freeze(wire) => Command::Freeze(Freeze {
            scope: decode_scope(wire.scope.as_ref())?,
            actor: name("actor", &wire.actor)?,
            reason: wire.reason.clone(),
        }),
        Wire::Unfreeze(wire) => Command::Unfreeze(Unfreeze {
            scope: decode_scope(wire.scope.as_ref())?,
            actor: name("actor", &wire.actor)?,
            reason: wire.reason.clone(),
        }),
        Wire::Adjust(wire) => Command::Adjust(Box::new(wire.try_into()?)),
        Wire::SetWebhook(wire) => Command::SetWebhook(SetWebhook {
            tenant: name("tenant", &wire.tenant)?,
            webhook: wire.webhook.as_ref().map(Webhook::try_from).transpose().in_field("webhook")?,
            actor: name("actor", &wire.actor)?,
        }),
        Wire::AdvanceWebhook(wire) => Command::AdvanceWebhook(AdvanceWebhook {
            tenant: name("tenant", &wire.tenant)?,
            cursor: wire.cursor,
        }),
        Wire::Tick(v1::LogTick {}) => Command::Tick,
        Wire::RaiseRules(wire) => Command::RaiseRules { rules_version: wire.rules_version },
    })
}

/// What can be read as a plan follows from the rules in force, and every node knows those or has stopped
/// (`RaiseRules`). So a document that cannot be read here cannot be read anywhere, and is refused by all alike.
fn decode_publish(wire: &v1::LogPublishPlan) -> Result<Command, FieldError> {
    let document: Arc<str> = wire.document.as_str().into();
    let actor = name("actor", &wire.actor)?;
    let (expected_generation, force) = (wire.expected_generation, wire.force);
    Ok(match Plan::parse(&document) {
        Ok(plan) => {
            let plan = Arc::new(plan);
            Command::PublishPlan(PublishPlan { expected_generation, force, document, plan, actor })
        }
        Err(errors) => {
            let problem = problems(&errors);
            Command::UnreadablePlan(UnreadablePlan { expected_generation, force, document, actor, problem })
        }
    })
}

/// A snapshot holds plans that were in force. One that cannot be read here was written by a member with other
/// rules; to go on without it would make books differ.
pub(crate) fn unreadable_plan(errors: Vec<PlanError>) -> FieldError {
    FieldError::new("document", problems(&errors))
}

fn problems(errors: &[PlanError]) -> String {
    errors.iter().map(PlanError::to_string).collect::<Vec<_>>().join("; ")
}
