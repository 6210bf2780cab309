//! The plans that worlds run under: families of plans that one cluster may publish one after the other.

use std::sync::{Arc, LazyLock};

use holdfast_ledger::ids::{TenantId, UserId};
use holdfast_ledger::plan::{Level, TenantRecord};
use holdfast_ledger::{Plan, Unit};

use super::facts::{Every, Limit, Override, Plan as Facts, Record, Route, Rule, record_document};

/// A plan ready to be published.
pub struct Publishable {
    /// What it says.
    pub facts: Arc<Facts>,
    /// The document.
    pub document: Arc<str>,
    /// What the ledger makes of it.
    pub plan: Arc<Plan>,
}

/// A tenant's record ready to be set.
pub struct Settable {
    /// What it says.
    pub record: Record,
    /// What the ledger makes of it.
    pub parsed: Arc<TenantRecord>,
}

/// Plans that follow each other, and records that fit all of them.
pub struct Family {
    /// The first one is published at the start.
    pub plans: Vec<Publishable>,
    /// For any tenant.
    pub records: Vec<Settable>,
    /// Every limit id of any of the plans, with its level.
    pub limits: Vec<(&'static str, Level)>,
}

/// The tenants of every world.
pub const TENANTS: [&str; 2] = ["acme", "bravo"];
/// The users of each tenant.
pub const USERS: [&str; 2] = ["u1", "u2"];
/// The routes of every plan.
pub const ROUTES: [&str; 2] = ["chat", "batch"];

/// [`TENANTS`] as ids.
pub static TENANT_IDS: LazyLock<Vec<TenantId>> =
    LazyLock::new(|| TENANTS.iter().map(|name| named(name)).collect());
/// [`USERS`] as ids.
pub static USER_IDS: LazyLock<Vec<UserId>> = LazyLock::new(|| USERS.iter().map(|name| named(name)).collect());

/// Every family.
pub static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    vec![three_levels(), buckets(), debts(), windows(), days()].into_iter().map(Family::of).collect()
});

/// A name of the harness's own, which is well formed.
pub fn named<T: std::str::FromStr>(name: &str) -> T {
    match name.parse() {
        Ok(parsed) => parsed,
        Err(_) => panic!("the harness's own name {name:?} is refused"),
    }
}

impl Family {
    /// Of these facts; the records are read under the first plan.
    pub fn of((plans, records): (Vec<Facts>, Vec<Record>)) -> Family {
        let plans: Vec<_> = plans.into_iter().map(publishable).collect();
        let mut limits: Vec<(&'static str, Level)> = Vec::new();
        for limit in plans.iter().flat_map(|plan| &plan.facts.limits) {
            if !limits.iter().any(|(known, _)| *known == limit.id) {
                limits.push((limit.id, limit.level));
            }
        }
        let records = records.into_iter().map(|record| settable(record, &plans[0].plan)).collect();
        Family { plans, records, limits }
    }
}

/// Parses a plan's facts, which are well formed.
pub fn publishable(facts: Facts) -> Publishable {
    let document = facts.document();
    let plan = Plan::parse(&document).unwrap_or_else(|errors| panic!("{errors:?} in\n{document}"));
    Publishable { facts: Arc::new(facts), document: document.into(), plan: Arc::new(plan) }
}

/// Parses a record, which is well formed.
pub fn settable(record: Record, plan: &Plan) -> Settable {
    let document = record_document(&record);
    let parsed =
        TenantRecord::parse(&document, plan).unwrap_or_else(|errors| panic!("{errors:?} in\n{document}"));
    Settable { record, parsed: Arc::new(parsed) }
}

/// A route whose holds live for 8 s and whose operations for 30 s.
pub(crate) fn route(name: &'static str) -> Route {
    Route {
        name,
        hold_ttl_ms: 8_000,
        usage_deadline_ms: 30_000,
        tokens_max: None,
        execution_tokens_max: None,
        debt_tokens_max: None,
    }
}

fn plan(limits: Vec<Limit>) -> Facts {
    let batch = Route { hold_ttl_ms: 20_000, usage_deadline_ms: 6_000, ..route(ROUTES[1]) };
    Facts { id_window_ms: 20_000, grace_ms: 500, routes: vec![route(ROUTES[0]), batch], limits }
}

/// A limit whose debt is bounded by its route only.
pub(crate) fn limit(id: &'static str, level: Level, unit: Unit, rule: Rule) -> Limit {
    Limit { id, level, unit, rule, overdraft_max: None }
}

fn bucket(amount: u64, per_ms: u64, burst: u64) -> Rule {
    Rule::Bucket { amount, per_ms, burst }
}

fn period(limit: u64, every: Every) -> Rule {
    Rule::Period { limit, every, carry_over: 0, carry_debt: true }
}

fn slots(limit: u64) -> Rule {
    Rule::Slots { limit }
}

/// The plain case: a total for everybody, one for each tenant, slots, and a rate for each user.
fn three_levels() -> (Vec<Facts>, Vec<Record>) {
    let with = |global, tenant, cap, rate| {
        plan(vec![
            limit("all-tokens", Level::Global, Unit::Tokens, period(global, Every::Lifetime)),
            limit("tenant-tokens", Level::Tenant, Unit::Tokens, period(tenant, Every::Window(60_000))),
            limit("tenant-slots", Level::Tenant, Unit::Slots, slots(cap)),
            limit("user-rate", Level::User, Unit::Requests, bucket(rate, 1_000, rate)),
        ])
    };
    let plans = vec![
        with(2_500, 1_000, 3, 3),
        with(1_200, 1_500, 2, 3),
        with(2_500, 600, 3, 1),
        with(3_000, 1_000, 1, 3),
    ];
    let records = vec![
        vec![("tenant-tokens", Override::Amount(400, None)), ("tenant-slots", Override::Amount(1, None))],
        vec![("tenant-tokens", Override::Unlimited), ("user-rate", Override::Amount(2, Some(4)))],
        vec![("tenant-slots", Override::Unlimited)],
    ];
    (plans, records)
}

/// Rates of tokens, with fractions, at two levels.
fn buckets() -> (Vec<Facts>, Vec<Record>) {
    let with = |amount, per_ms, burst, rate| {
        plan(vec![
            limit("all-rate", Level::Global, Unit::Requests, bucket(rate, 1_000, 6)),
            limit("tenant-flow", Level::Tenant, Unit::Tokens, bucket(amount, per_ms, burst)),
            limit("user-flow", Level::User, Unit::Tokens, bucket(7, 30, 500)),
        ])
    };
    let plans = vec![
        with(100, 1_000, 900, 5),
        with(333, 1_001, 600, 5),
        with(100, 1_000, 900, 2),
        with(50, 700, 1_200, 7),
    ];
    let records = vec![
        vec![("tenant-flow", Override::Amount(10, Some(700)))],
        vec![("tenant-flow", Override::Unlimited), ("user-flow", Override::Amount(1, Some(300)))],
        vec![("user-flow", Override::Unlimited)],
    ];
    (plans, records)
}

/// Small totals for ever, with breaches: executions past their cap, debt past its maximum.
fn debts() -> (Vec<Facts>, Vec<Record>) {
    let with = |tenant, user, overdraft_max, execution, debt| {
        let mut facts = plan(vec![
            limit("all-slots", Level::Global, Unit::Slots, slots(4)),
            Limit {
                overdraft_max,
                ..limit("tenant-tokens", Level::Tenant, Unit::Tokens, period(tenant, Every::Lifetime))
            },
            limit("user-tokens", Level::User, Unit::Tokens, period(user, Every::Window(30_000))),
        ]);
        facts.routes[0].execution_tokens_max = execution;
        facts.routes[1].debt_tokens_max = debt;
        facts.routes[0].tokens_max = Some(550);
        facts
    };
    let plans = vec![
        with(1_500, 800, Some(200), Some(800), Some(50)),
        with(900, 800, None, Some(800), Some(50)),
        with(2_500, 500, Some(100), None, Some(0)),
        with(1_500, 1_000, Some(200), Some(600), None),
    ];
    let records = vec![
        vec![("tenant-tokens", Override::Amount(700, None))],
        vec![("tenant-tokens", Override::Amount(4_000, None)), ("user-tokens", Override::Amount(300, None))],
        vec![("user-tokens", Override::Unlimited)],
    ];
    (plans, records)
}

/// Short windows: what is carried over, debt that is carried or forgiven, a limit that goes and comes back.
fn windows() -> (Vec<Facts>, Vec<Record>) {
    let with = |amount, carry_over, carry_debt, user: Option<u64>| {
        let every = Every::Window(10_000);
        let tenant = Rule::Period { limit: amount, every, carry_over, carry_debt };
        let mut limits = vec![limit("tenant-tokens", Level::Tenant, Unit::Tokens, tenant)];
        if let Some(user) = user {
            limits.push(limit("user-tokens", Level::User, Unit::Tokens, period(user, Every::Window(15_000))));
            limits.push(limit("user-rate", Level::User, Unit::Requests, bucket(1, 2_000, 3)));
        }
        plan(limits)
    };
    let plans = vec![
        with(700, 300, true, Some(600)),
        with(700, 300, true, None),
        with(500, 900, false, Some(600)),
        with(1_000, 0, true, Some(400)),
    ];
    let records = vec![
        vec![("tenant-tokens", Override::Amount(300, None))],
        vec![("tenant-tokens", Override::Unlimited)],
        vec![("tenant-tokens", Override::Amount(0, None))],
    ];
    (plans, records)
}

/// Days, whose bounds come with the entries.
fn days() -> (Vec<Facts>, Vec<Record>) {
    let with = |global, tenant, carry_over| {
        plan(vec![
            limit("all-tokens", Level::Global, Unit::Tokens, period(global, Every::Day)),
            limit(
                "tenant-tokens",
                Level::Tenant,
                Unit::Tokens,
                Rule::Period { limit: tenant, every: Every::Day, carry_over, carry_debt: true },
            ),
            limit("tenant-slots", Level::Tenant, Unit::Slots, slots(2)),
        ])
    };
    let plans = vec![with(2_000, 1_000, 400), with(1_500, 1_400, 400), with(2_000, 800, 0)];
    let records = vec![
        vec![("tenant-tokens", Override::Amount(500, None))],
        vec![("tenant-slots", Override::Amount(4, None))],
    ];
    (plans, records)
}

/// The unit of a limit by its id: every plan here counts one unit under one id.
pub fn unit_of_limit(id: &str) -> Unit {
    let mut limits = FAMILIES.iter().flat_map(|family| &family.plans).flat_map(|plan| &plan.facts.limits);
    limits.find(|limit| limit.id == id).map_or(Unit::Requests, |limit| limit.unit)
}
