//! Scripts: a plan, four clients with three steps each, and what must hold.

use std::sync::Arc;

use holdfast_ledger::adjust::Adjust;
pub(super) use holdfast_ledger::adjust::Adjustment;
use holdfast_ledger::command::{
    Command, Correct, Freeze, PublishPlan, Release, Renew, ReportUnknown, Request, Reserve, ResolveUnknown,
    RollBack, SetTenant, Settle, Start, Unfreeze,
};
use holdfast_ledger::ids::AdjustmentId;
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};
use holdfast_ledger::{Amounts, ReservationId, Unit};

use super::Outcomes;
use crate::interleave::facts::{Plan, Record};
use crate::interleave::plans::{Family, TENANT_IDS, USER_IDS, named};

/// When every script begins, ms: at the begin of a minute.
pub(super) const BEGIN_MS: u64 = 1_800_000_000_000;

/// What must hold, and its words.
pub(super) type Claim = (&'static str, fn(&Outcomes) -> bool);

/// A script.
pub struct Script {
    /// Its name, unique.
    pub name: &'static str,
    pub(super) family: &'static Family,
    pub(super) clients: Vec<Vec<Step>>,
    pub(super) always: Vec<Claim>,
    pub(super) sometimes: Vec<Claim>,
}

/// A step: time passes, then a command is applied.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) wait_ms: u64,
    pub(super) act: Act,
}

#[derive(Clone)]
pub(super) enum Act {
    Command(Box<Command>),
    /// A plan of the family, expecting a generation.
    Publish(usize, Option<u64>),
    /// A record of the family for a tenant, or none.
    SetTenant(usize, Option<usize>),
}

impl Script {
    /// A script under these plans, the first of which is in force, and with these records at hand.
    pub(super) fn new(name: &'static str, plans: Vec<Plan>, records: Vec<Record>) -> Script {
        // Scripts are few and live as long as the program.
        let family = Box::leak(Box::new(Family::of((plans, records))));
        Script { name, family, clients: Vec::new(), always: Vec::new(), sometimes: Vec::new() }
    }

    pub(super) fn client(mut self, steps: [Step; 3]) -> Script {
        self.clients.push(steps.into());
        self
    }

    pub(super) fn always(mut self, words: &'static str, claim: fn(&Outcomes) -> bool) -> Script {
        self.always.push((words, claim));
        self
    }

    pub(super) fn sometimes(mut self, words: &'static str, claim: fn(&Outcomes) -> bool) -> Script {
        self.sometimes.push((words, claim));
        self
    }
}

impl Step {
    /// The command of it.
    pub(super) fn command(&self, family: &Family) -> Command {
        match &self.act {
            Act::Command(command) => command.as_ref().clone(),
            Act::Publish(which, expected_generation) => {
                let publishable = &family.plans[*which];
                Command::PublishPlan(PublishPlan {
                    expected_generation: *expected_generation,
                    document: Arc::clone(&publishable.document),
                    plan: Arc::clone(&publishable.plan),
                    actor: named("operator"),
                    force: true,
                })
            }
            Act::SetTenant(tenant, which) => Command::SetTenant(SetTenant {
                tenant: TENANT_IDS[*tenant].clone(),
                record: which.map(|which| Arc::clone(&family.records[which].parsed)),
                expected_generation: None,
                actor: named("operator"),
            }),
        }
    }

    /// The same after so many ms.
    pub(super) fn after(self, wait_ms: u64) -> Step {
        Step { wait_ms, ..self }
    }
}

fn step(command: Command) -> Step {
    Step { wait_ms: 0, act: Act::Command(Box::new(command)) }
}

/// An id by its number, made at the begin.
pub(super) fn id(number: u8) -> ReservationId {
    ReservationId::from_parts(BEGIN_MS, u128::from(number))
}

fn tokens(amount: u64) -> Amounts {
    if amount == 0 { Amounts::NONE } else { Amounts::NONE.with(Unit::Tokens, amount) }
}

/// Who asks: a tenant's place and perhaps a user's.
#[derive(Clone, Copy)]
pub(super) struct Who(pub(super) usize, pub(super) Option<usize>);

/// The first tenant.
pub(super) const ACME: Who = Who(0, None);
/// Its users.
pub(super) const U1: Who = Who(0, Some(0));
pub(super) const U2: Who = Who(0, Some(1));
/// The other tenant.
pub(super) const BRAVO: Who = Who(1, None);

/// Reserves tokens (none if 0) under an id.
pub(super) fn reserve(number: u8, who: Who, amount: u64) -> Step {
    reserve_id(id(number), who, amount)
}

/// The same under any id.
pub(super) fn reserve_id(id: ReservationId, Who(tenant, user): Who, amount: u64) -> Step {
    reserve_request(id, request(tenant, user, amount))
}

fn reserve_request(id: ReservationId, request: Request) -> Step {
    let request_digest = request.digest();
    step(Command::Reserve(Reserve { id, attempt: 1, key: None, request, request_digest }))
}

fn request(tenant: usize, user: Option<usize>, amount: u64) -> Request {
    Request {
        tenant: TENANT_IDS[tenant].clone(),
        user: user.map(|user| USER_IDS[user].clone()),
        route: named("chat"),
        model: None,
        region: None,
        amounts: tokens(amount),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    }
}

/// Reserves as much as there is of an amount, and `least` at least.
pub(super) fn reserve_up_to(number: u8, Who(tenant, user): Who, amount: u64, least: u64) -> Step {
    let mut request = request(tenant, user, amount);
    request.minimum = tokens(least);
    reserve_request(id(number), request)
}

/// Starts as operation `op`.
pub(super) fn start(number: u8, op: &str) -> Step {
    start_id(id(number), op)
}

/// The same under any id.
pub(super) fn start_id(id: ReservationId, op: &str) -> Step {
    step(Command::Start(Start { id, operation: named(op) }))
}

/// Settles with what `op` used.
pub(super) fn settle(number: u8, op: &str, used: u64) -> Step {
    settle_id(id(number), op, used)
}

/// The same under any id.
pub(super) fn settle_id(id: ReservationId, op: &str, used: u64) -> Step {
    step(Command::Settle(Settle { id, operation: named(op), actual: tokens(used), estimated: false }))
}

/// Settles at what is held, for want of a report.
pub(super) fn settle_estimated(number: u8, op: &str) -> Step {
    let (actual, operation) = (Amounts::NONE, named(op));
    step(Command::Settle(Settle { id: id(number), operation, actual, estimated: true }))
}

/// Puts an estimate right.
pub(super) fn correct(number: u8, op: &str, used: u64) -> Step {
    let actual = Amounts::NONE.with(Unit::Tokens, used);
    step(Command::Correct(Correct { id: id(number), operation: named(op), actual }))
}

/// An operator says what was used.
pub(super) fn resolve(number: u8, used: u64) -> Step {
    let actual = Amounts::NONE.with(Unit::Tokens, used);
    let (actor, reason) = (named("operator"), "for a test".to_owned());
    step(Command::ResolveUnknown(ResolveUnknown { id: id(number), actual, actor, reason }))
}

/// Freezes the route `chat`.
pub(super) fn freeze(Who(tenant, user): Who) -> Step {
    step(Command::Freeze(Freeze {
        scope: FreezeScope::of_route(
            TENANT_IDS[tenant].clone(),
            user.map(|user| USER_IDS[user].clone()),
            named("chat"),
        ),
        actor: named("operator"),
        reason: "for a test".to_owned(),
    }))
}

/// Adjusts the tenant's limit `tokens`.
pub(super) fn adjust(number: u8, what: Adjustment) -> Step {
    let lineage = LineageKey {
        limit: named("tokens"),
        tenant: Some(TENANT_IDS[ACME.0].clone()),
        user: None,
        route: None,
        model: None,
        region: None,
        lane: Lane::Enforced,
    };
    step(Command::Adjust(Box::new(Adjust {
        id: AdjustmentId::from_parts(BEGIN_MS, u128::from(number)),
        lineage: Arc::new(lineage),
        epoch_start_ms: None,
        what,
        actor: named("operator"),
        reason: "for a test".to_owned(),
    })))
}

/// Makes the plan of an earlier generation that of a new one.
pub(super) fn roll_back(to: u64) -> Step {
    step(Command::RollBack(RollBack { to, expected_generation: None, actor: named("operator") }))
}

/// Releases.
pub(super) fn release(number: u8) -> Step {
    release_id(id(number))
}

/// The same under any id.
pub(super) fn release_id(id: ReservationId) -> Step {
    step(Command::Release(Release { id }))
}

/// Renews to `extend_ms` from then on.
pub(super) fn renew(number: u8, extend_ms: u64) -> Step {
    step(Command::Renew(Renew { id: id(number), extend_ms }))
}

/// Says that `op` was lost sight of.
pub(super) fn unknown(number: u8, op: &str) -> Step {
    step(Command::ReportUnknown(ReportUnknown { id: id(number), operation: named(op) }))
}

/// Publishes a plan of the script.
pub(super) fn publish(which: usize) -> Step {
    Step { wait_ms: 0, act: Act::Publish(which, None) }
}

/// Publishes a plan of the script if that generation is in force.
pub(super) fn publish_over(which: usize, generation: u64) -> Step {
    Step { wait_ms: 0, act: Act::Publish(which, Some(generation)) }
}

/// Sets a record of the script for a tenant.
pub(super) fn set_tenant(tenant: usize, which: Option<usize>) -> Step {
    Step { wait_ms: 0, act: Act::SetTenant(tenant, which) }
}

/// Lifts a freeze on the route `chat`.
pub(super) fn unfreeze(Who(tenant, user): Who) -> Step {
    step(Command::Unfreeze(Unfreeze {
        scope: FreezeScope::of_route(
            TENANT_IDS[tenant].clone(),
            user.map(|user| USER_IDS[user].clone()),
            named("chat"),
        ),
        actor: named("operator"),
        reason: "for a test".to_owned(),
    }))
}

/// Lets the leader see to its timers.
pub(super) fn tick() -> Step {
    step(Command::Tick)
}
