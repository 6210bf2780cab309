//! Routes: how requests of one kind are admitted.

use crate::ids::RouteName;
use crate::plan::{Degrade, Match, OnUnavailable, Rollout};
use crate::unit::Amounts;

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
    /// How long a settlement that was estimated is remembered for its correction, ms from the settlement.
    pub correction_window_ms: u64,
    /// Higher goes first in the client's scheduler.
    pub priority: u32,
    /// Most debt per lineage and unit; past it the route is frozen for the subject.
    pub debt_max: Amounts,
    /// Execution hard cap per unit: an actual past it freezes the route for the subject.
    pub execution_max: Amounts,
    /// How the route is rolled out.
    pub rollout: Rollout,
    /// How gateways degrade its requests.
    pub degrade: Degrade,
    /// What gateways do without the ledger.
    pub on_unavailable: OnUnavailable,
    /// Emergency shards, off unless the plan turns them on.
    pub emergency: Option<Emergency>,
}

/// Bounds on a route's emergency shards.
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
