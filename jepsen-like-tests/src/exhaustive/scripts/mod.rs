//! The scripts, by what they are about.

mod capacity;
mod debt;
mod epochs;
mod expiry;
mod generations;
mod identity;
mod operators;

use holdfast_ledger::Unit;
use holdfast_ledger::plan::Level;

use super::Script;
use crate::interleave::facts::{Every, Limit, Plan, Rule};
use crate::interleave::plans::{ROUTES, limit, route};

/// Every script.
pub fn all() -> Vec<Script> {
    [
        capacity::scripts(),
        identity::scripts(),
        expiry::scripts(),
        debt::scripts(),
        generations::scripts(),
        epochs::scripts(),
        operators::scripts(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A plan with these limits: holds live for 8 s and half a second of grace, operations for 30 s, ids for 20 s.
fn plan(limits: Vec<Limit>) -> Plan {
    Plan { id_window_ms: 20_000, grace_ms: 500, routes: ROUTES.map(route).into(), limits }
}

/// Tokens of a tenant, once for ever.
fn total(amount: u64) -> Limit {
    limit("tokens", Level::Tenant, Unit::Tokens, period(amount, Every::Lifetime, 0, true))
}

/// Tokens of a user, once for ever.
fn user_total(amount: u64) -> Limit {
    limit("user-tokens", Level::User, Unit::Tokens, period(amount, Every::Lifetime, 0, true))
}

/// Tokens of everybody, once for ever.
fn all_total(amount: u64) -> Limit {
    limit("all-tokens", Level::Global, Unit::Tokens, period(amount, Every::Lifetime, 0, true))
}

/// Tokens of a tenant in every minute.
fn minute(amount: u64, carry_over: u64, carry_debt: bool) -> Limit {
    limit(
        "tokens",
        Level::Tenant,
        Unit::Tokens,
        period(amount, Every::Window(60_000), carry_over, carry_debt),
    )
}

fn period(limit: u64, every: Every, carry_over: u64, carry_debt: bool) -> Rule {
    Rule::Period { limit, every, carry_over, carry_debt }
}

fn slots(cap: u64) -> Limit {
    limit("slots", Level::Tenant, Unit::Slots, Rule::Slots { limit: cap })
}

/// Requests of a tenant: one in ten seconds, three at once.
fn rate(burst: u64) -> Limit {
    limit("rate", Level::Tenant, Unit::Requests, Rule::Bucket { amount: 1, per_ms: 10_000, burst })
}
