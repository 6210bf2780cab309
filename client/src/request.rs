//! What a caller asks capacity for.

use std::time::Duration;

use holdfast_proto::FieldError;
use holdfast_proto::ledger::ids::IdError;
use holdfast_proto::ledger::{Amounts, ReservationId, Unit, command};

/// A request for capacity: who, what, and how much of each unit.
///
/// `requests` and `slots` count 1 unless they are set. Names are checked when it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    id: Option<ReservationId>,
    tenant: String,
    user: Option<String>,
    route: String,
    model: Option<String>,
    region: Option<String>,
    amounts: Amounts,
    minimum: Amounts,
    idempotency_key: Option<String>,
    hold_ttl: Option<Duration>,
}

impl Request {
    /// A request of a tenant on a route.
    pub fn new(tenant: impl Into<String>, route: impl Into<String>) -> Self {
        Request { tenant: tenant.into(), route: route.into(), ..Request::default() }
    }

    /// Under this id instead of a fresh one: for callers that remember their ids over a restart.
    #[must_use]
    pub fn id(mut self, id: ReservationId) -> Self {
        self.id = Some(id);
        self
    }

    /// For a user of the tenant; limits of the user level apply only then.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// For a model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Served in a region.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// An amount of a unit.
    #[must_use]
    pub fn amount(mut self, unit: Unit, amount: u64) -> Self {
        self.amounts.set(unit, Some(amount));
        self
    }

    /// Makes do with less of a unit, but not with less than this: as much is granted as every limit has,
    /// and [`crate::Receipt::reserved`] says how much that is.
    #[must_use]
    pub fn at_least(mut self, unit: Unit, minimum: u64) -> Self {
        self.minimum.set(unit, Some(minimum));
        self
    }

    /// An amount of tokens.
    #[must_use]
    pub fn tokens(self, tokens: u64) -> Self {
        self.amount(Unit::Tokens, tokens)
    }

    /// An amount of money, in millionths of the plan's currency.
    #[must_use]
    pub fn micros(self, micros: u64) -> Self {
        self.amount(Unit::Micros, micros)
    }

    /// A name of the tenant's own for it: the same request with the same key gives the first reservation's
    /// receipt, under whatever id it is asked again, for as long as the ledger remembers that one.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// How long it is held unless it is started; the route's own time otherwise. Whole milliseconds.
    #[must_use]
    pub fn hold_ttl(mut self, hold_ttl: Duration) -> Self {
        self.hold_ttl = Some(hold_ttl);
        self
    }

    /// The reserve that it is, with a fresh id if it has none. `now_ms` goes into a fresh id.
    pub(crate) fn into_reserve(self, now_ms: u64, random: u128) -> Result<command::Reserve, FieldError> {
        let request = command::Request {
            tenant: name("tenant", &self.tenant)?,
            user: optional_name("user", self.user.as_deref())?,
            route: name("route", &self.route)?,
            model: optional_name("model", self.model.as_deref())?,
            region: optional_name("region", self.region.as_deref())?,
            amounts: self.amounts,
            minimum: self.minimum,
            hold_ttl_ms: self.hold_ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
        };
        let id = self.id.unwrap_or_else(|| ReservationId::from_parts(now_ms, random));
        // The member that takes the call computes the digest; this one is not sent.
        let key = optional_name("idempotency_key", self.idempotency_key.as_deref())?;
        Ok(command::Reserve { id, attempt: 0, request, request_digest: [0; 32], key })
    }
}

/// A name in the ledger's syntax, or an error that says which field it was.
pub(crate) fn name<T: std::str::FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, FieldError> {
    text.parse().map_err(|error: IdError| FieldError::new(field, error.to_string()))
}

fn optional_name<T: std::str::FromStr<Err = IdError>>(
    field: &str,
    text: Option<&str>,
) -> Result<Option<T>, FieldError> {
    text.map(|text| name(field, text)).transpose()
}
