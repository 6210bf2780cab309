//! Which route, limits and rules hold for one request: pure functions of the plan, the tenant's record and the request.

use std::sync::Arc;

use crate::command::Request;
use crate::ids::{LimitId, RouteName, TenantId, UserId};
use crate::plan::{Calendar, Level, Limit, Override, Plan, Route, Rule, Shape, TenantRecord};

impl Plan {
    /// One limit by its id.
    pub fn limit(&self, id: &LimitId) -> Option<&Limit> {
        let at = self.limits.binary_search_by(|limit| limit.id.cmp(id)).ok()?;
        self.limits.get(at)
    }

    /// One route by its name in the plan.
    pub fn route(&self, name: &RouteName) -> Option<&Route> {
        self.routes.iter().find(|route| route.name == *name)
    }

    /// The route that admits a request: the first whose match fits.
    pub fn route_for(&self, request: &Request) -> Option<&Route> {
        self.routes.iter().find(|route| route.matches.matches(request))
    }

    /// The limits that a request is for, sorted by id, whatever its amounts are.
    pub fn limits_for<'a>(&'a self, request: &'a Request) -> impl Iterator<Item = &'a Limit> + 'a {
        self.limits.iter().filter(|limit| limit.applies_to(request))
    }

    /// The record that holds for a tenant: the one set by command if there is one, else the plan's own.
    pub fn record_for<'a>(
        &'a self,
        tenant: &TenantId,
        set: Option<&'a TenantRecord>,
    ) -> Option<&'a TenantRecord> {
        set.or_else(|| self.tenants.get(tenant))
    }

    /// The rule of one limit for one subject.
    ///
    /// The global level has its own rule always. For a tenant: its record, then its tier, then the limit's own rule.
    /// For a user: the user's entry in the tenant's record, then the record's, then the tier's, then the plan's
    /// default for users, then the limit's own rule. A record without a tier, or with one that the plan
    /// does not have (any more), has the plan's default tier.
    pub fn effective_rule(
        &self,
        limit: &Limit,
        record: Option<&TenantRecord>,
        user: Option<&UserId>,
    ) -> Rule {
        match self.find_override(limit, record, user) {
            Some(found) => limit.with_override(found),
            None => limit.rule.clone(),
        }
    }

    fn find_override(
        &self,
        limit: &Limit,
        record: Option<&TenantRecord>,
        user: Option<&UserId>,
    ) -> Option<Override> {
        if limit.scope.level == Level::Global {
            return None;
        }
        let of_tier = || {
            let named = record.and_then(|record| record.tier.as_ref()).and_then(|tier| self.tiers.get(tier));
            let tier = named.or_else(|| self.default_tier.as_ref().and_then(|tier| self.tiers.get(tier)));
            tier.and_then(|overrides| overrides.get(&limit.id))
        };
        let of_tenant = record.and_then(|record| record.overrides.get(&limit.id));
        let found = if limit.scope.level == Level::User {
            let of_user = record.zip(user).and_then(|(record, user)| record.users.get(user));
            of_user
                .and_then(|overrides| overrides.get(&limit.id))
                .or(of_tenant)
                .or_else(of_tier)
                .or_else(|| self.default_user.get(&limit.id))
        } else {
            of_tenant.or_else(of_tier)
        };
        found.copied()
    }

    /// The calendars of the plan's limits, without repeats, in order.
    pub fn calendars(&self) -> Vec<Arc<Calendar>> {
        let mut calendars: Vec<_> =
            self.limits.iter().filter_map(|limit| limit.shape.calendar().cloned()).collect();
        calendars.sort();
        calendars.dedup();
        calendars
    }
}

impl Limit {
    /// Whether the limit is for a request, whatever its amounts are. One of the user level is only for requests with a user.
    pub fn applies_to(&self, request: &Request) -> bool {
        (self.scope.level != Level::User || request.user.is_some()) && self.matches.matches(request)
    }

    /// The limit's rule with the amounts of an override.
    pub fn with_override(&self, found: Override) -> Rule {
        match found {
            Override::Unlimited => self.shape.unlimited(),
            Override::Amount { amount, burst } => self.shape.with_amount(amount, burst),
        }
    }
}

impl Shape {
    /// The epochs of a period limit; `None` = the single epoch `continuous`.
    pub fn calendar(&self) -> Option<&Arc<Calendar>> {
        match self {
            Shape::Period { calendar, .. } => Some(calendar),
            Shape::Bucket { .. } | Shape::Concurrency => None,
        }
    }

    /// The rule that counts and never refuses.
    pub fn unlimited(&self) -> Rule {
        Rule::Unlimited { calendar: self.calendar().cloned() }
    }

    /// The rule with an amount; a bucket's burst is the amount if none is given, and other shapes have none.
    pub fn with_amount(&self, amount: u64, burst: Option<u64>) -> Rule {
        match self {
            Shape::Bucket { per_ms } => {
                Rule::Bucket { amount, per_ms: *per_ms, burst: burst.unwrap_or(amount) }
            }
            Shape::Period { calendar, carry_over, carry_debt } => Rule::Period {
                limit: amount,
                calendar: Arc::clone(calendar),
                carry_over: *carry_over,
                carry_debt: *carry_debt,
            },
            Shape::Concurrency => Rule::Concurrency { limit: amount },
        }
    }
}
