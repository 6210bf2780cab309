//! The plan: the published set of routes, limits, tiers and tenants (`admissionBudget.v1`).
//!
//! [`Plan`] is what a document means; [`Plan::parse`] reads YAML and names every problem at once by line.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::{LimitId, RouteName, TenantId, TierId, UserId};
use crate::unit::{Amounts, Unit};

/// A whole plan. Equal plans are equal content: publishing one again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// ISO 4217 code of the currency that `micros` are millionths of; `None` if no limit counts money.
    pub currency: Option<String>,
    /// First match wins.
    pub routes: Vec<Route>,
    /// Sorted by id.
    pub limits: Vec<Limit>,
    /// Rules that replace a limit's default for the tenants of the tier.
    pub tiers: BTreeMap<TierId, Overrides>,
    /// The tier of tenants that have no record; `None`: the limits' own rules.
    pub default_tier: Option<TierId>,
    /// Tenants that the plan itself lists. A record set by command replaces the plan's whole record.
    pub tenants: BTreeMap<TenantId, TenantRecord>,
    /// Rules of users that have no override of their own, per user-level limit.
    pub default_user: Overrides,
    /// How far back an unknown reservation id may lie, ms.
    pub id_window_ms: u64,
    /// How long EXPIRING lasts, ms.
    pub expiring_grace_ms: u64,
}

/// Amounts that replace those of a limit's own rule, by limit id.
pub type Overrides = BTreeMap<LimitId, Override>;

/// What an override puts in place of a rule's amount. Period, zone and refill interval stay the limit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Counted, never refused.
    Unlimited,
    /// Another amount; 0 admits nothing.
    Amount {
        /// Period and concurrency: the limit. Bucket: units refilled per `per_ms`.
        amount: u64,
        /// Bucket only: most units held; `None`: the same as `amount`.
        burst: Option<u64>,
    },
}

/// What is known of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantRecord {
    /// The tenant's tier; `None`: the plan's default tier.
    pub tier: Option<TierId>,
    /// Rules for this tenant, over those of its tier.
    pub overrides: Overrides,
    /// Rules for single users of this tenant, over everything else.
    pub users: BTreeMap<UserId, Overrides>,
}

/// Which requests a route or a limit is for. An absent part matches everything; `*` at the end matches any rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Patterns on the request's route name.
    pub route: Vec<String>,
    /// Patterns on the request's model. A request without a model matches only an absent part.
    pub model: Vec<String>,
    /// Patterns on the request's region.
    pub region: Vec<String>,
}

/// How requests of one kind are admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The route's name in the plan (what suspension, freezing and answers name).
    pub name: RouteName,
    /// Which requests it is for.
    pub matches: Match,
    /// Digest of the estimator that gateways must use, `sha256:…`; `None`: any.
    pub estimator_digest: Option<String>,
    /// Largest single reservation per unit; an absent unit is not bounded here.
    pub reservation_max: Amounts,
    /// Hold TTL of a reservation that names none, ms.
    pub hold_ttl_ms: u64,
    /// Longest hold TTL that a reserve or renew may ask for, ms.
    pub hold_ttl_ms_max: u64,
    /// From start to USAGE_UNKNOWN unless renewed, ms.
    pub usage_deadline_ms: u64,
    /// Longest usage deadline that a renew may ask for, ms from the renewal.
    pub usage_deadline_ms_max: u64,
    /// Higher goes first in the client's scheduler.
    pub priority: u32,
    /// Most debt per lineage and unit; past it the route is frozen for the subject.
    pub debt_max: Amounts,
    /// Execution hard cap per unit: an actual past it freezes the route for the subject.
    pub execution_max: Amounts,
    /// How the route is rolled out.
    pub rollout: Rollout,
    /// Emergency shards, off unless the plan turns them on.
    pub emergency: Option<Emergency>,
}

/// Roll-out of a route (spec §10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rollout {
    /// Decide and book in the shadow lane, never refuse.
    Shadow,
    /// This share of subjects, 0 to 100, in the enforced lane; the rest in shadow.
    Percent(u8),
    /// Everybody in the enforced lane.
    #[default]
    Enforce,
}

/// Bounds on a route's emergency shards (spec §8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emergency {
    /// Most that one gateway may hold at a time, per unit.
    pub per_gateway_max: Amounts,
    /// Most that all gateways together may hold at a time, per unit.
    pub total_max: Amounts,
    /// Most that one user may take of one shard, per unit.
    pub per_user_max: Amounts,
    /// How long a shard lives, ms.
    pub ttl_ms: u64,
}

/// One rule on one unit at one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's id, unique in the plan.
    pub id: LimitId,
    /// What it counts.
    pub unit: Unit,
    /// Which attributes of a request key it.
    pub scope: Scope,
    /// Which requests it applies to.
    pub matches: Match,
    /// The rule of subjects for which nothing else is said.
    pub rule: Rule,
    /// Where the tiers DEGRADED_LIGHT and DEGRADED_HEAVY begin; `None`: no ladder.
    pub ladder: Option<Ladder>,
    /// Whether a settle may overdraw this limit past what its debts may grow to; `None`: the route's `debt_max`.
    pub overdraft_max: Option<u64>,
}

/// Which request attributes key a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// global, tenant or tenant + user.
    pub level: Level,
    /// Keyed by the plan's route too.
    pub route: bool,
    /// Keyed by the request's model too.
    pub model: bool,
    /// Keyed by the request's region too.
    pub region: bool,
}

/// The three levels, in the order in which they are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Everybody together.
    #[default]
    Global,
    /// Each tenant.
    Tenant,
    /// Each user of each tenant.
    User,
}

impl Level {
    /// The word used in plans, on the wire and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Global => "global",
            Level::Tenant => "tenant",
            Level::User => "user",
        }
    }
}

/// How much, and how it comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A token bucket: refills `amount` every `per_ms`, holds at most `burst`.
    Bucket {
        /// Units refilled per `per_ms`.
        amount: u64,
        /// Milliseconds in which `amount` accrues; at least 1.
        per_ms: u64,
        /// Most units held; at least 1 unless the amount is 0.
        burst: u64,
    },
    /// A total per period.
    Period {
        /// Units per epoch. 0 admits nothing.
        limit: u64,
        /// The epochs.
        calendar: Arc<Calendar>,
        /// Most unused units carried into the next epoch.
        carry_over: u64,
        /// Whether debt outlives the epoch (the default).
        carry_debt: bool,
    },
    /// At most this many at the same time.
    Concurrency {
        /// Units held at the same time. 0 admits nothing.
        limit: u64,
    },
    /// Counted, never refused; shown as null.
    Unlimited,
}

/// How time is cut into accounting epochs. Half-open: the start belongs to the epoch, the end to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Calendar {
    /// The period.
    pub period: Period,
    /// IANA time zone; `UTC` by default. Ignored by `Seconds` and `Lifetime`.
    pub zone: String,
}

/// The length of an accounting epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// This many seconds, counted from the Unix epoch; bounds are computed in `apply`.
    Seconds(u32),
    /// A clock hour in the zone.
    Hour,
    /// A calendar day in the zone, 23 to 25 hours.
    Day,
    /// Seven days from the given weekday, 1 = Monday to 7 = Sunday.
    Week(u8),
    /// A calendar month from the given day, 1 to 28.
    Month(u8),
    /// A calendar year from the first of the given month, 1 to 12.
    Year(u8),
    /// This many calendar days, counted from 1970-01-01 in the zone.
    Days(u16),
    /// For ever: one epoch.
    Lifetime,
}

/// Thresholds in percent of the ratio of spec §7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// From here on DEGRADED_LIGHT and one alert; default 80.
    pub alert_percent: u8,
    /// From here on DEGRADED_HEAVY; default 95.
    pub degrade_percent: u8,
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder { alert_percent: 80, degrade_percent: 95 }
    }
}

/// One thing that is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {path}: {problem}")]
pub struct PlanError {
    /// Line in the document, from 1.
    pub line: usize,
    /// Where in the document's structure, for example `limits[2].unit`.
    pub path: String,
    /// What is wrong and what would be right.
    pub problem: String,
}
