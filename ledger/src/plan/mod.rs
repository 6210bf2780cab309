//! The plan: the published set of routes, limits, tiers and tenants (`admissionBudget.v1`).
//!
//! [`Plan`] is what a document means; [`Plan::parse`] reads YAML and names every problem at once by line.

use std::collections::BTreeMap;

use crate::ids::{TenantId, TierId};

mod calendar;
mod diff;
mod door;
mod effective;
mod error;
mod limit;
mod matching;
mod parse;
mod price;
mod rollout;
mod route;
mod tenant;

pub use calendar::{Calendar, Period};
pub use diff::Change;
pub use door::{Degrade, OnUnavailable, Rewrite};
pub use error::PlanError;
pub use limit::{Ladder, Level, Limit, Rule, Scope, Shape};
pub use matching::Match;
pub use parse::{PLAN_SCHEMA, RECORD_SCHEMA};
pub use price::{Price, PriceBook, TOKENS_PER_PRICE, TokenClasses, UnknownPrice};
pub use rollout::{Rollout, RolloutBy};
pub use route::{Emergency, Route};
pub use tenant::{Override, Overrides, TenantRecord};

/// A whole plan. Equal plans are equal content: publishing one again changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// ISO 4217 code of the currency that `micros` are millionths of; `None` if no limit counts money.
    pub currency: Option<String>,
    /// What models cost; `None`: no price book.
    pub prices: Option<PriceBook>,
    /// First match wins.
    pub routes: Vec<Route>,
    /// Sorted by id.
    pub limits: Vec<Limit>,
    /// Rules that replace a limit's default for the tenants of the tier.
    pub tiers: BTreeMap<TierId, Overrides>,
    /// Shares of tiers in the gateways' scheduler; a tier that is not here has 1.
    pub weights: BTreeMap<TierId, u32>,
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
    /// How long the book keeps an event, ms.
    pub events_kept_ms: u64,
}
