//! Calls as ledger commands.

use holdfast_ledger::Amounts;
use holdfast_ledger::command::{Command, Release, Request, Reserve, Settle, Start};
use holdfast_ledger::ids::{IdError, OperationId, RouteName, TenantId, UserId};

use crate::history::{Call, amounts_from_words};

/// The command that a call asks for; `None` for a read and for a publish, which needs a parsed plan.
pub fn command_of(id: &str, call: &Call, attempt: u32) -> Result<Option<Command>, IdError> {
    Ok(Some(match call {
        Call::Reserve { tenant, user, route, amounts } => {
            let request = Request {
                tenant: TenantId::new(tenant)?,
                user: user.as_deref().map(UserId::new).transpose()?,
                route: RouteName::new(route)?,
                model: None,
                region: None,
                amounts: amounts_from_words(amounts),
                minimum: Amounts::NONE,
                hold_ttl_ms: None,
            };
            let request_digest = request.digest();
            Command::Reserve(Reserve { id: id.parse()?, attempt, request, request_digest, key: None })
        }
        Call::Start { operation } => {
            Command::Start(Start { id: id.parse()?, operation: OperationId::new(operation)? })
        }
        Call::Settle { operation, actual } => Command::Settle(Settle {
            id: id.parse()?,
            operation: OperationId::new(operation)?,
            actual: amounts_from_words(actual),
            estimated: false,
        }),
        Call::Release => Command::Release(Release { id: id.parse()? }),
        Call::Get | Call::Publish { .. } => return Ok(None),
    }))
}
