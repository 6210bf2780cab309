//! Calls as ledger commands.

use holdfast_ledger::command::{
    Command, Correct, Freeze, Release, ReportUnknown, Request, Reserve, ResolveUnknown, Settle, Start,
    Unfreeze,
};
use holdfast_ledger::ids::{ActorName, IdError, IdempotencyKey, OperationId, RouteName, TenantId, UserId};
use holdfast_ledger::record::FreezeScope;

use crate::history::{Call, FrozenSubject, amounts_from_words};

/// Who says what operators say.
const OPERATOR: &str = "harness";
/// And why.
const REASON: &str = "the workload asked for it";

/// The command that a call asks for; `None` for a read and for a publish, which needs a parsed plan.
pub fn command_of(id: &str, call: &Call, attempt: u32) -> Result<Option<Command>, IdError> {
    Ok(Some(match call {
        Call::Reserve { tenant, user, route, amounts, minimum, key } => {
            let request = Request {
                tenant: TenantId::new(tenant)?,
                user: user.as_deref().map(UserId::new).transpose()?,
                route: RouteName::new(route)?,
                model: None,
                region: None,
                amounts: amounts_from_words(amounts),
                minimum: amounts_from_words(minimum),
                hold_ttl_ms: None,
            };
            let request_digest = request.digest();
            let key = key.as_deref().map(IdempotencyKey::new).transpose()?;
            Command::Reserve(Reserve { id: id.parse()?, attempt, request, request_digest, key })
        }
        Call::Start { operation } => {
            Command::Start(Start { id: id.parse()?, operation: OperationId::new(operation)? })
        }
        Call::Settle { operation, actual, estimated } => Command::Settle(Settle {
            id: id.parse()?,
            operation: OperationId::new(operation)?,
            actual: amounts_from_words(actual),
            estimated: *estimated,
        }),
        Call::Correct { operation, actual } => Command::Correct(Correct {
            id: id.parse()?,
            operation: OperationId::new(operation)?,
            actual: amounts_from_words(actual),
        }),
        Call::ReportUnknown { operation } => {
            Command::ReportUnknown(ReportUnknown { id: id.parse()?, operation: OperationId::new(operation)? })
        }
        Call::Resolve { actual } => Command::ResolveUnknown(ResolveUnknown {
            id: id.parse()?,
            actual: amounts_from_words(actual),
            actor: ActorName::new(OPERATOR)?,
            reason: REASON.to_owned(),
        }),
        Call::Freeze { subject } => {
            let Unfreeze { scope, actor, reason } = lifting(subject)?;
            Command::Freeze(Freeze { scope, actor, reason })
        }
        Call::Unfreeze { subject } => Command::Unfreeze(lifting(subject)?),
        Call::Release => Command::Release(Release { id: id.parse()? }),
        Call::Get | Call::Publish { .. } => return Ok(None),
    }))
}

fn lifting(FrozenSubject { tenant, user, route }: &FrozenSubject) -> Result<Unfreeze, IdError> {
    let user = user.as_deref().map(UserId::new).transpose()?;
    Ok(Unfreeze {
        scope: FreezeScope::of_route(TenantId::new(tenant)?, user, RouteName::new(route)?),
        actor: ActorName::new(OPERATOR)?,
        reason: REASON.to_owned(),
    })
}
