//! What operators say and ask: freezes, and usage that nobody else knows of.

use holdfast_ledger::ReservationId;
use holdfast_ledger::command::{Freeze, ResolveUnknown, Unfreeze};
use holdfast_ledger::query::UnknownUsage;
use holdfast_ledger::record::FreezeScope;

use crate::amounts::{amounts_or_none, none_if_empty};
use crate::field::{FieldError, InField, name, optional_name, required};
use crate::limits::REASON_BYTES_MAX;
use crate::v1;

/// What an operator does needs a reason, in some sentences at most.
pub(crate) fn checked_reason(text: &str) -> Result<String, FieldError> {
    match text.len() {
        0 => Err(FieldError::missing("reason")),
        length if length > REASON_BYTES_MAX => {
            let problem = format!("has {length} bytes; at most {REASON_BYTES_MAX} are allowed");
            Err(FieldError::new("reason", problem))
        }
        _ => Ok(text.to_owned()),
    }
}

impl From<&FreezeScope> for v1::FreezeScope {
    fn from(FreezeScope { tenant, user, route, model, region }: &FreezeScope) -> Self {
        v1::FreezeScope {
            tenant: tenant.as_str().to_owned(),
            user: user.as_ref().map(|user| user.as_str().to_owned()),
            route: route.as_str().to_owned(),
            model: model.as_ref().map(|model| model.as_str().to_owned()),
            region: region.as_ref().map(|region| region.as_str().to_owned()),
        }
    }
}

/// The scope in a stored message, which has one.
pub(crate) fn decode_scope(wire: Option<&v1::FreezeScope>) -> Result<FreezeScope, FieldError> {
    let v1::FreezeScope { tenant, user, route, model, region } = required("scope", wire)?;
    Ok(FreezeScope {
        tenant: name("scope.tenant", tenant)?,
        user: optional_name("scope.user", user.as_deref())?,
        route: name("scope.route", route)?,
        model: optional_name("scope.model", model.as_deref())?,
        region: optional_name("scope.region", region.as_deref())?,
    })
}

macro_rules! freezing {
    ($command:ident, $wire:ident) => {
        impl TryFrom<&v1::$wire> for $command {
            type Error = FieldError;

            fn try_from(wire: &v1::$wire) -> Result<Self, FieldError> {
                Ok($command {
                    scope: FreezeScope {
                        tenant: name("tenant", &wire.tenant)?,
                        user: optional_name("user", wire.user.as_deref())?,
                        route: name("route", &wire.route)?,
                        model: optional_name("model", wire.model.as_deref())?,
                        region: optional_name("region", wire.region.as_deref())?,
                    },
                    actor: name("actor", &wire.actor)?,
                    reason: checked_reason(&wire.reason)?,
                })
            }
        }

        impl From<&$command> for v1::$wire {
            fn from($command { scope, actor, reason }: &$command) -> Self {
                let v1::FreezeScope { tenant, user, route, model, region } = scope.into();
                v1::$wire {
                    tenant,
                    user,
                    route,
                    model,
                    region,
                    actor: actor.as_str().to_owned(),
                    reason: reason.clone(),
                }
            }
        }
    };
}
freezing!(Freeze, FreezeRequest);
freezing!(Unfreeze, UnfreezeRequest);

impl TryFrom<&v1::ResolveUnknownRequest> for ResolveUnknown {
    type Error = FieldError;

    fn try_from(wire: &v1::ResolveUnknownRequest) -> Result<Self, FieldError> {
        Ok(ResolveUnknown {
            id: name("id", &wire.id)?,
            actual: amounts_or_none(wire.actual.as_ref()).in_field("actual")?,
            actor: name("actor", &wire.actor)?,
            reason: checked_reason(&wire.reason)?,
        })
    }
}

impl From<&ResolveUnknown> for v1::ResolveUnknownRequest {
    fn from(ResolveUnknown { id, actual, actor, reason }: &ResolveUnknown) -> Self {
        v1::ResolveUnknownRequest {
            id: id.to_string(),
            actual: none_if_empty(*actual),
            actor: actor.as_str().to_owned(),
            reason: reason.clone(),
        }
    }
}

impl From<&UnknownUsage> for v1::UnknownUsage {
    fn from(UnknownUsage { since_ms, receipt }: &UnknownUsage) -> Self {
        v1::UnknownUsage { since_ms: *since_ms, receipt: Some(receipt.into()) }
    }
}

/// Behind which entry a page of the list begins.
pub fn decode_place(wire: &v1::UnknownPlace) -> Result<(u64, ReservationId), FieldError> {
    Ok((wire.since_ms, name("id", &wire.id).in_field("after")?))
}
