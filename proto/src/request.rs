//! What a reservation is for; shared by the public reserve and the stored one.

use holdfast_ledger::command::Request;

use crate::amounts::{amounts_or_none, none_if_empty};
use crate::field::{FieldError, InField, name, optional_name};
use crate::v1;

impl From<&Request> for v1::Request {
    fn from(request: &Request) -> Self {
        let Request { tenant, user, route, model, region, amounts, minimum, hold_ttl_ms } = request;
        v1::Request {
            tenant: tenant.as_str().to_owned(),
            user: user.as_ref().map(|user| user.as_str().to_owned()),
            route: route.as_str().to_owned(),
            model: model.as_ref().map(|model| model.as_str().to_owned()),
            region: region.as_ref().map(|region| region.as_str().to_owned()),
            amounts: none_if_empty(*amounts),
            hold_ttl_ms: *hold_ttl_ms,
            minimum: none_if_empty(*minimum),
        }
    }
}

impl TryFrom<&v1::Request> for Request {
    type Error = FieldError;

    fn try_from(wire: &v1::Request) -> Result<Self, FieldError> {
        Ok(Request {
            tenant: name("tenant", &wire.tenant)?,
            user: optional_name("user", wire.user.as_deref())?,
            route: name("route", &wire.route)?,
            model: optional_name("model", wire.model.as_deref())?,
            region: optional_name("region", wire.region.as_deref())?,
            amounts: amounts_or_none(wire.amounts.as_ref()).in_field("amounts")?,
            minimum: amounts_or_none(wire.minimum.as_ref()).in_field("minimum")?,
            hold_ttl_ms: wire.hold_ttl_ms,
        })
    }
}
