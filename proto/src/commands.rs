//! The commands of the public `Ledger` service.

use holdfast_ledger::Command;
use holdfast_ledger::command::{Correct, Release, Renew, ReportUnknown, Request, Reserve, Settle, Start};

use crate::amounts::{amounts_or_none, check_nonzero, none_if_empty};
use crate::field::{FieldError, InField, name, optional_name, required};
use crate::v1;
use crate::v1::batch_command::Command as Wire;

impl TryFrom<&v1::ReserveRequest> for Reserve {
    type Error = FieldError;

    /// Computes the digest of the canonical request: this is where a request enters the cluster.
    fn try_from(wire: &v1::ReserveRequest) -> Result<Self, FieldError> {
        let id = name("id", &wire.id)?;
        if wire.attempt == 0 {
            return Err(FieldError::new("attempt", "is missing; the first attempt is 1"));
        }
        let request: Request = required("request", wire.request.as_ref())?.try_into().in_field("request")?;
        check_nonzero(&request.amounts).in_field("amounts").in_field("request")?;
        check_nonzero(&request.minimum).in_field("minimum").in_field("request")?;
        if request.hold_ttl_ms == Some(0) {
            return Err(FieldError::new("request.hold_ttl_ms", "must not be 0; leave it out"));
        }
        let request_digest = request.digest();
        let key = optional_name("idempotency_key", wire.idempotency_key.as_deref())?;
        Ok(Reserve { id, attempt: wire.attempt, request, request_digest, key })
    }
}

impl From<&Reserve> for v1::ReserveRequest {
    fn from(command: &Reserve) -> Self {
        // The digest is not sent: the member that takes the call computes it.
        let Reserve { id, attempt, request, request_digest: _, key } = command;
        v1::ReserveRequest {
            id: id.to_string(),
            attempt: *attempt,
            request: Some(request.into()),
            idempotency_key: key.as_ref().map(|key| key.as_str().to_owned()),
        }
    }
}

impl TryFrom<&v1::StartRequest> for Start {
    type Error = FieldError;

    fn try_from(wire: &v1::StartRequest) -> Result<Self, FieldError> {
        Ok(Start { id: name("id", &wire.id)?, operation: name("operation", &wire.operation)? })
    }
}

impl From<&Start> for v1::StartRequest {
    fn from(Start { id, operation }: &Start) -> Self {
        v1::StartRequest { id: id.to_string(), operation: operation.as_str().to_owned() }
    }
}

impl TryFrom<&v1::SettleRequest> for Settle {
    type Error = FieldError;

    fn try_from(wire: &v1::SettleRequest) -> Result<Self, FieldError> {
        Ok(Settle {
            id: name("id", &wire.id)?,
            operation: name("operation", &wire.operation)?,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
            estimated: wire.estimated,
        })
    }
}

impl From<&Settle> for v1::SettleRequest {
    fn from(Settle { id, operation, actual, estimated }: &Settle) -> Self {
        v1::SettleRequest {
            id: id.to_string(),
            operation: operation.as_str().to_owned(),
            actual: none_if_empty(*actual),
            estimated: *estimated,
        }
    }
}

impl TryFrom<&v1::CorrectRequest> for Correct {
    type Error = FieldError;

    fn try_from(wire: &v1::CorrectRequest) -> Result<Self, FieldError> {
        Ok(Correct {
            id: name("id", &wire.id)?,
            operation: name("operation", &wire.operation)?,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
        })
    }
}

impl From<&Correct> for v1::CorrectRequest {
    fn from(Correct { id, operation, actual }: &Correct) -> Self {
        v1::CorrectRequest {
            id: id.to_string(),
            operation: operation.as_str().to_owned(),
            actual: none_if_empty(*actual),
        }
    }
}

impl TryFrom<&v1::ReleaseRequest> for Release {
    type Error = FieldError;

    fn try_from(wire: &v1::ReleaseRequest) -> Result<Self, FieldError> {
        Ok(Release { id: name("id", &wire.id)? })
    }
}

impl From<&Release> for v1::ReleaseRequest {
    fn from(Release { id }: &Release) -> Self {
        v1::ReleaseRequest { id: id.to_string() }
    }
}

impl TryFrom<&v1::RenewRequest> for Renew {
    type Error = FieldError;

    fn try_from(wire: &v1::RenewRequest) -> Result<Self, FieldError> {
        let id = name("id", &wire.id)?;
        match wire.extend_ms {
            0 => Err(FieldError::missing("extend_ms")),
            extend_ms => Ok(Renew { id, extend_ms }),
        }
    }
}

impl From<&Renew> for v1::RenewRequest {
    fn from(Renew { id, extend_ms }: &Renew) -> Self {
        v1::RenewRequest { id: id.to_string(), extend_ms: *extend_ms }
    }
}

impl TryFrom<&v1::ReportUnknownRequest> for ReportUnknown {
    type Error = FieldError;

    fn try_from(wire: &v1::ReportUnknownRequest) -> Result<Self, FieldError> {
        Ok(ReportUnknown { id: name("id", &wire.id)?, operation: name("operation", &wire.operation)? })
    }
}

impl From<&ReportUnknown> for v1::ReportUnknownRequest {
    fn from(ReportUnknown { id, operation }: &ReportUnknown) -> Self {
        v1::ReportUnknownRequest { id: id.to_string(), operation: operation.as_str().to_owned() }
    }
}

impl TryFrom<&Wire> for Command {
    type Error = FieldError;

    fn try_from(wire: &Wire) -> Result<Self, FieldError> {
        Ok(match wire {
            Wire::Reserve(wire) => Command::Reserve(wire.try_into().in_field("reserve")?),
            Wire::Start(wire) => Command::Start(wire.try_into().in_field("start")?),
            Wire::Settle(wire) => Command::Settle(wire.try_into().in_field("settle")?),
            Wire::Correct(wire) => Command::Correct(wire.try_into().in_field("correct")?),
            Wire::Renew(wire) => Command::Renew(wire.try_into().in_field("renew")?),
            Wire::Release(wire) => Command::Release(wire.try_into().in_field("release")?),
            Wire::ReportUnknown(wire) => Command::ReportUnknown(wire.try_into().in_field("report_unknown")?),
        })
    }
}

/// The command as it goes into a batch; `None` for those that callers send one by one or never.
pub fn encode_batched(command: &Command) -> Option<Wire> {
    Some(match command {
        Command::Reserve(command) => Wire::Reserve(command.into()),
        Command::Start(command) => Wire::Start(command.into()),
        Command::Settle(command) => Wire::Settle(command.into()),
        Command::Correct(command) => Wire::Correct(command.into()),
        Command::Renew(command) => Wire::Renew(command.into()),
        Command::Release(command) => Wire::Release(command.into()),
        Command::ReportUnknown(command) => Wire::ReportUnknown(command.into()),
        Command::PublishPlan(_)
        | Command::UnreadablePlan(_)
        | Command::RollBack(_)
        | Command::SetTenant(_)
        | Command::ResolveUnknown(_)
        | Command::Freeze(_)
        | Command::Unfreeze(_)
        | Command::Adjust(_)
        | Command::SetWebhook(_)
        | Command::AdvanceWebhook(_)
        | Command::Tick
        | Command::RaiseRules { .. } => return None,
    })
}

/// The command of a batch's slot.
pub fn decode_batched(wire: &v1::BatchCommand) -> Result<Command, FieldError> {
    required("command", wire.command.as_ref())?.try_into()
}
