//! Scripts: what happens to a book, as plain steps that can be left out one by one.

use std::sync::Arc;

use holdfast_ledger::answer::State;
use holdfast_ledger::command::{
    Command, Correct, Freeze, PublishPlan, Release, Renew, ReportUnknown, Request, Reserve, ResolveUnknown,
    RollBack, SetTenant, SetWebhook, Settle, Start, Unfreeze,
};
use holdfast_ledger::ids::{ActorName, IdempotencyKey, ModelName, OperationId, RouteName, TenantId, UserId};
use holdfast_ledger::plan::{Level, Plan, TenantRecord};
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};
use holdfast_ledger::webhook::{Webhook, WebhookSecret, WebhookUrl};
use holdfast_ledger::{Adjust, Adjustment, AdjustmentId, Amounts, ReservationId, Unit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::epochs::BEGIN_MS;
use crate::naive::Model;
use crate::plans::{LIMITS, RECORDS, Scale, VARIANTS, document, record};

/// A whole script.
#[derive(Clone, Debug)]
pub struct Script {
    /// Plans that it may publish, by number.
    pub documents: Vec<String>,
    pub shape: u64,
    pub scale: Scale,
    pub steps: Vec<Step>,
}

/// One command and when it is stamped.
#[derive(Clone, Debug)]
pub struct Step {
    /// From the stamp before; the clock may be asked to go back.
    pub after_ms: i64,
    /// In the same entry as the step before it.
    pub joins: bool,
    /// The book is snapshotted and restored after it.
    pub restores: bool,
    pub act: Act,
}

/// What a step asks.
#[derive(Clone, Debug)]
pub enum Act {
    Reserve {
        id: Id,
        subject: Subject,
        amounts: Amounts,
        minimum: Amounts,
        key: Option<u8>,
        ttl_ms: Option<u64>,
    },
    Start {
        id: Id,
        operation: u8,
    },
    Settle {
        id: Id,
        operation: u8,
        actual: Amounts,
        estimated: bool,
    },
    Correct {
        id: Id,
        operation: u8,
        actual: Amounts,
    },
    Release {
        id: Id,
    },
    Renew {
        id: Id,
        extend_ms: u64,
    },
    Report {
        id: Id,
        operation: u8,
    },
    Publish {
        variant: u8,
        expected: Option<u64>,
        force: bool,
    },
    RollBack {
        to: u64,
        expected: Option<u64>,
    },
    SetTenant {
        tenant: u8,
        number: u8,
    },
    /// Number 0: remove it.
    SetWebhook {
        tenant: u8,
        number: u8,
    },
    Resolve {
        id: Id,
        actual: Amounts,
    },
    Freeze {
        subject: Subject,
        of_user: bool,
    },
    Unfreeze {
        subject: Subject,
        of_user: bool,
    },
    Adjust {
        id: Id,
        limit: u8,
        subject: Subject,
        old_epoch: bool,
        what: Adjustment,
    },
    Tick,
}

/// A reservation's id by its time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    pub at_ms: u64,
    pub number: u32,
}

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    pub tenant: u8,
    pub user: Option<u8>,
    pub route: u8,
    pub model: Option<u8>,
}

impl Id {
    pub fn ulid(self) -> ReservationId {
        ReservationId::from_parts(self.at_ms, u128::from(self.number))
    }

    pub fn adjustment(self) -> AdjustmentId {
        AdjustmentId::from_parts(self.at_ms, u128::from(self.number))
    }
}

impl Subject {
    pub fn tenant_id(self) -> TenantId {
        TenantId::new(format!("t{}", self.tenant)).unwrap()
    }

    pub fn user_id(self) -> Option<UserId> {
        self.user.map(|user| UserId::new(format!("u{user}")).unwrap())
    }

    pub fn route_name(self) -> RouteName {
        RouteName::new(format!("r{}", self.route)).unwrap()
    }
}

impl Script {
    /// The script of a seed.
    pub fn generate(seed: u64) -> Script {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let scale = if random.random_ratio(1, 8) { Scale::Edge } else { Scale::Small };
        let shape = random.random_range(0..1 << 40);
        let documents = (0..VARIANTS).map(|variant| document(shape, variant, scale)).collect();
        let mut script = Script { documents, shape, scale, steps: Vec::new() };
        let model = Model::default();
        let mut writer = Writer {
            random,
            scale,
            now: BEGIN_MS,
            ids: Vec::new(),
            adjustments: Vec::new(),
            next: 0,
            last: None,
            reserved: None,
            model,
        };
        let first = Act::Publish { variant: 0, expected: None, force: false };
        writer.play(&script, &first);
        script.steps.push(Step { after_ms: 0, joins: false, restores: false, act: first });
        for _ in 0..writer.random.random_range(20..120) {
            let step = writer.step();
            writer.play(&script, &step.act);
            script.steps.push(step);
        }
        script
    }

    /// A step's command. The plan in force is needed for what a tenant's record may say.
    pub fn command(&self, act: &Act, plan: Option<&Plan>) -> Option<Command> {
        let actor = ActorName::new("tester").unwrap();
        let operation = |number: &u8| OperationId::new(format!("op{number}")).unwrap();
        Some(match act {
            Act::Reserve { id, subject, amounts, minimum, key, ttl_ms } => {
                let request = Request {
                    tenant: subject.tenant_id(),
                    user: subject.user_id(),
                    route: subject.route_name(),
                    model: subject.model.map(|model| ModelName::new(format!("m{model}")).unwrap()),
                    region: None,
                    amounts: *amounts,
                    minimum: *minimum,
                    hold_ttl_ms: *ttl_ms,
                };
                let request_digest = request.digest();
                let key = key.map(|key| IdempotencyKey::new(format!("key{key}")).unwrap());
                Command::Reserve(Reserve { id: id.ulid(), attempt: 2, request, request_digest, key })
            }
            Act::Start { id, operation: number } => {
                Command::Start(Start { id: id.ulid(), operation: operation(number) })
            }
            Act::Settle { id, operation: number, actual, estimated } => {
                let (actual, estimated) = (*actual, *estimated);
                Command::Settle(Settle { id: id.ulid(), operation: operation(number), actual, estimated })
            }
            Act::Correct { id, operation: number, actual } => {
                Command::Correct(Correct { id: id.ulid(), operation: operation(number), actual: *actual })
            }
            Act::Release { id } => Command::Release(Release { id: id.ulid() }),
            Act::Renew { id, extend_ms } => Command::Renew(Renew { id: id.ulid(), extend_ms: *extend_ms }),
            Act::Report { id, operation: number } => {
                Command::ReportUnknown(ReportUnknown { id: id.ulid(), operation: operation(number) })
            }
            Act::Publish { variant, expected, force } => {
                let text = self.documents[usize::from(*variant)].as_str();
                let plan = Plan::parse(text).unwrap_or_else(|problems| panic!("{problems:#?} in\n{text}"));
                let (document, plan) = (Arc::from(text), Arc::new(plan));
                let (expected_generation, force) = (*expected, *force);
                Command::PublishPlan(PublishPlan { expected_generation, force, document, plan, actor })
            }
            Act::RollBack { to, expected } => {
                Command::RollBack(RollBack { to: *to, expected_generation: *expected, actor })
            }
            Act::SetTenant { tenant, number } => {
                let plan = plan?;
                let text = record(self.shape, plan, *tenant, *number, self.scale);
                let read = |text: String| {
                    let record = TenantRecord::parse(&text, plan);
                    Arc::new(record.unwrap_or_else(|problems| panic!("{problems:#?} in\n{text}")))
                };
                let tenant = TenantId::new(format!("t{tenant}")).unwrap();
                Command::SetTenant(SetTenant {
                    tenant,
                    record: text.map(read),
                    expected_generation: None,
                    actor,
                })
            }
            Act::SetWebhook { tenant, number } => {
                let webhook = (*number > 0).then(|| Webhook {
                    url: WebhookUrl::new(&format!("https://t{tenant}.example/{number}")).unwrap(),
                    secret: WebhookSecret::new(&[*number; 32]).unwrap(),
                });
                let tenant = TenantId::new(format!("t{tenant}")).unwrap();
                Command::SetWebhook(SetWebhook { tenant, webhook, actor })
            }
            Act::Resolve { id, actual } => Command::ResolveUnknown(ResolveUnknown {
                id: id.ulid(),
                actual: *actual,
                actor,
                reason: "test".to_owned(),
            }),
            Act::Freeze { subject, of_user } => Command::Freeze(Freeze {
                scope: scope_of(subject, *of_user),
                actor,
                reason: "test".to_owned(),
            }),
            Act::Unfreeze { subject, of_user } => Command::Unfreeze(Unfreeze {
                scope: scope_of(subject, *of_user),
                actor,
                reason: "test".to_owned(),
            }),
            Act::Adjust { id, limit, subject, old_epoch, what } => Command::Adjust(Box::new(Adjust {
                id: id.adjustment(),
                lineage: Arc::new(key_of(LIMITS[usize::from(*limit)].0, *subject, plan)),
                epoch_start_ms: old_epoch.then_some(1),
                what: *what,
                actor,
                reason: "test".to_owned(),
            })),
            Act::Tick => Command::Tick,
        })
    }
}

/// The lineage of a limit for a subject, keyed as the plan in force says, or by its tenant if it has no such limit.
fn key_of(limit: &str, subject: Subject, plan: Option<&Plan>) -> LineageKey {
    let id = limit.parse().unwrap();
    let scope = plan.and_then(|plan| plan.limit(&id)).map(|limit| limit.scope).unwrap_or_default();
    let route = if subject.route == 0 { "r0" } else { "other" };
    LineageKey {
        limit: id,
        tenant: (scope.level != Level::Global).then(|| subject.tenant_id()),
        // A subject without a user gives a key that does not fit.
        user: subject.user_id().filter(|_| scope.level == Level::User),
        route: scope.route.then(|| route.parse().unwrap()),
        model: subject.model.filter(|_| scope.model).map(|model| format!("m{model}").parse().unwrap()),
        region: None,
        lane: Lane::Enforced,
    }
}

/// Makes up steps that have something to do with each other.
struct Writer {
    random: ChaCha8Rng,
    scale: Scale,
    now: u64,
    ids: Vec<Id>,
    adjustments: Vec<Id>,
    next: u32,
    /// The last command on an id, for repeats.
    last: Option<Act>,
    /// The last reserve that had a key.
    reserved: Option<Act>,
    /// Knows which reservations are in which state, so that commands often meet one that they are for.
    model: Model,
}

impl Writer {
    fn play(&mut self, script: &Script, act: &Act) {
        self.model.begin_entry(self.now);
        let plan = self.model.plan().cloned();
        if let Some(command) = script.command(act, plan.as_deref()) {
            self.model.apply(&command);
        }
    }

    /// Mostly one of the last ids in such a state, else any.
    fn id_in(&mut self, state: State) -> Id {
        let model = &self.model;
        let now = self.now;
        let fits = |id: &&Id| model.reservation(id.ulid(), now).is_some_and(|sketch| sketch.state == state);
        let fitting: Vec<Id> = self.ids.iter().rev().filter(fits).take(4).copied().collect();
        if fitting.is_empty() || self.random.random_ratio(1, 6) {
            return self.id();
        }
        fitting[self.random.random_range(0..fitting.len())]
    }

    fn step(&mut self) -> Step {
        let after_ms = self.after_ms();
        self.now = self.now.saturating_add_signed(after_ms);
        let joins = self.random.random_ratio(1, 6);
        let restores = self.random.random_ratio(1, 8);
        let act = match &self.last {
            Some(last) if self.random.random_ratio(1, 10) => last.clone(),
            _ => self.act(),
        };
        if !matches!(
            act,
            Act::Tick
                | Act::Publish { .. }
                | Act::RollBack { .. }
                | Act::SetTenant { .. }
                | Act::SetWebhook { .. }
                | Act::Freeze { .. }
                | Act::Unfreeze { .. }
        ) {
            self.last = Some(act.clone());
        }
        Step { after_ms, joins, restores, act }
    }

    fn after_ms(&mut self) -> i64 {
        match self.random.random_range(0..100) {
            0..45 => 0,
            45..70 => self.random.random_range(1..50),
            70..90 => self.random.random_range(1..1_200),
            90..95 => self.random.random_range(1..12_000),
            95 => self.random.random_range(1..300_000),
            96 if self.random.random_ratio(1, 4) => self.random.random_range(1..40_000_000),
            96 => self.random.random_range(1..100_000),
            _ => -self.random.random_range(1..20_000),
        }
    }

    fn act(&mut self) -> Act {
        // A freeze that lasts until its route is in shadow is rare enough to be helped along.
        if !self.model.frozen.is_empty() && self.random.random_ratio(1, 12) {
            return self.publish();
        }
        match self.random.random_range(0..100) {
            0..32 => self.reserve(),
            32..36 => self.adjust(),
            36..54 => Act::Start { id: self.id_in(State::Reserved), operation: self.operation() },
            54..72 => {
                let from = if self.random.random_ratio(1, 5) { State::UsageUnknown } else { State::Started };
                let estimated = self.random.random_ratio(1, 4);
                let id = self.id_in(from);
                Act::Settle { id, operation: self.operation(), actual: self.actual(), estimated }
            }
            72..76 => {
                let states = [State::Settled, State::SettledWithDebt];
                let state = states[self.random.random_range(0..2)];
                let id = self.id_in(state);
                Act::Correct { id, operation: self.operation(), actual: self.actual() }
            }
            76..80 => Act::Release { id: self.id_in(State::Reserved) },
            80..84 => {
                let from = if self.random.random_bool(0.5) { State::Reserved } else { State::Started };
                Act::Renew { id: self.id_in(from), extend_ms: self.random.random_range(0..25_000) }
            }
            84 => Act::Resolve { id: self.id_in(State::UsageUnknown), actual: self.actual() },
            85..87 => Act::Report { id: self.id_in(State::Started), operation: self.operation() },
            87..92 => self.publish(),
            92..94 => Act::SetTenant {
                tenant: self.random.random_range(0..2),
                number: self.random.random_range(0..RECORDS),
            },
            94..96 => Act::Unfreeze { subject: self.subject(), of_user: self.random.random_bool(0.5) },
            96 => self.adjust(),
            97 if self.random.random_ratio(1, 3) => {
                Act::Freeze { subject: self.subject(), of_user: self.random.random_bool(0.5) }
            }
            98 if self.random.random_ratio(1, 3) => Act::SetWebhook {
                tenant: self.random.random_range(0..2),
                number: self.random.random_range(0..3),
            },
            _ => Act::Tick,
        }
    }

    fn publish(&mut self) -> Act {
        let expected =
            if self.random.random_ratio(1, 5) { Some(self.random.random_range(0..4)) } else { None };
        if self.random.random_ratio(1, 5) {
            let to = self.random.random_range(0..self.model.generation() + 2);
            return Act::RollBack { to, expected };
        }
        let (variant, force) = (self.random.random_range(0..VARIANTS), self.random.random_bool(0.5));
        Act::Publish { variant, expected, force }
    }

    fn reserve(&mut self) -> Act {
        let known = self.random.random_ratio(1, 8);
        let id = if known { self.id() } else { self.new_id() };
        let ttl_ms = match self.random.random_range(0..10) {
            0 => Some(self.random.random_range(0..30_000)),
            _ => None,
        };
        let (subject, amounts) = (self.subject(), self.amounts());
        let minimum = if self.random.random_ratio(1, 4) { self.minimum(&amounts) } else { Amounts::NONE };
        let key = match self.random.random_range(0..6) {
            0 => Some(self.random.random_range(0..4)),
            _ => None,
        };
        match &self.reserved {
            // A retry under another id that means the same.
            Some(Act::Reserve { subject, amounts, minimum, key: Some(key), ttl_ms, .. })
                if self.random.random_ratio(1, 10) =>
            {
                let (amounts, minimum, key) = (*amounts, *minimum, Some(*key));
                Act::Reserve { id, subject: *subject, amounts, minimum, key, ttl_ms: *ttl_ms }
            }
            _ => {
                let act = Act::Reserve { id, subject, amounts, minimum, key, ttl_ms };
                if key.is_some() {
                    self.reserved = Some(act.clone());
                }
                act
            }
        }
    }

    /// Now and then a little wrong: over what is asked, 0, or of a unit that is not asked for.
    fn minimum(&mut self, amounts: &Amounts) -> Amounts {
        let mut minimum = Amounts::NONE;
        for unit in Unit::ALL {
            let Some(asked) = amounts.get(unit) else {
                if self.random.random_ratio(1, 40) {
                    minimum.set(unit, Some(self.random.random_range(0..2)));
                }
                continue;
            };
            if self.random.random_ratio(3, 4) {
                let most = asked.saturating_add(u64::from(self.random.random_ratio(1, 20)));
                minimum.set(unit, Some(self.random.random_range(0..=most.min(asked / 2 + 2))));
            }
        }
        minimum
    }

    fn adjust(&mut self) -> Act {
        let amount = self.scale.amount(&mut self.random, 60);
        let what = match self.random.random_range(0..16) {
            0..3 => Adjustment::Grant(amount),
            3..5 => Adjustment::Take(self.random.random_range(0..30)),
            5..7 => Adjustment::Charge(amount),
            7..9 => Adjustment::Correct(self.random.random_range(0..12)),
            9..11 => Adjustment::SetUsed(amount),
            11..15 => {
                let length_ms = match self.random.random_range(0..4) {
                    0 => self.random.random_range(0..3_000),
                    // As an epoch ends.
                    1 => 20_000 - self.now % 20_000,
                    2 => self.random.random_range(1..60_000),
                    _ => self.random.random_range(1..400_000),
                };
                Adjustment::Boost { amount, until_ms: self.now + length_ms }
            }
            _ => Adjustment::EndBoost { boost: self.adjustment().adjustment() },
        };
        let id = if self.random.random_ratio(1, 10) { self.adjustment() } else { self.new_adjustment() };
        let old_epoch = self.random.random_ratio(1, 12);
        let mut subject = self.subject();
        if self.random.random_ratio(9, 10) {
            subject.user = Some(self.random.random_range(0..2));
        }
        Act::Adjust { id, limit: self.limit(), subject, old_epoch, what }
    }

    /// Mostly a limit of the plan in force.
    fn limit(&mut self) -> u8 {
        let any = self.random.random_range(0..LIMITS.len() as u8);
        let Some(plan) = self.model.plan() else { return any };
        let known = |at: &u8| plan.limits.iter().any(|limit| limit.id.as_str() == LIMITS[usize::from(*at)].0);
        let known: Vec<u8> = (0..LIMITS.len() as u8).filter(known).collect();
        if known.is_empty() || self.random.random_ratio(1, 20) {
            return any;
        }
        known[self.random.random_range(0..known.len())]
    }

    fn new_adjustment(&mut self) -> Id {
        let Id { at_ms, number } = self.new_id();
        self.ids.pop();
        let id = Id { at_ms, number };
        self.adjustments.push(id);
        id
    }

    /// One of the last few adjustments.
    fn adjustment(&mut self) -> Id {
        if self.adjustments.is_empty() {
            return self.new_adjustment();
        }
        let reach = self.adjustments.len().min(6);
        self.adjustments[self.adjustments.len() - 1 - self.random.random_range(0..reach)]
    }

    fn new_id(&mut self) -> Id {
        let at_ms = match self.random.random_range(0..12) {
            0 => self.now + self.random.random_range(0..8_000),
            1 => self.now - self.random.random_range(0..90_000),
            2 => self.now - self.random.random_range(0..15_000),
            _ => self.now - self.random.random_range(0..500),
        };
        let id = Id { at_ms, number: self.next };
        self.next += 1;
        self.ids.push(id);
        id
    }

    /// One of the last few ids, or one that nobody knows.
    fn id(&mut self) -> Id {
        if self.ids.is_empty() || self.random.random_ratio(1, 25) {
            return self.new_id();
        }
        let reach = if self.random.random_ratio(1, 6) { self.ids.len() } else { self.ids.len().min(5) };
        self.ids[self.ids.len() - 1 - self.random.random_range(0..reach)]
    }

    fn operation(&mut self) -> u8 {
        u8::from(self.random.random_ratio(1, 12))
    }

    fn subject(&mut self) -> Subject {
        Subject {
            tenant: self.random.random_range(0..2),
            user: if self.random.random_ratio(2, 3) { Some(self.random.random_range(0..2)) } else { None },
            route: self.random.random_range(0..2),
            model: if self.random.random_ratio(1, 2) { Some(self.random.random_range(0..2)) } else { None },
        }
    }

    /// Mostly near what is usually asked, now and then far over it.
    fn actual(&mut self) -> Amounts {
        let mut actual = self.amounts();
        if self.random.random_ratio(1, 4) {
            actual.set(Unit::Tokens, Some(self.scale.amount(&mut self.random, 150)));
            actual.set(Unit::Requests, Some(self.random.random_range(0..15)));
        }
        actual
    }

    fn amounts(&mut self) -> Amounts {
        let mut amounts = Amounts::NONE;
        let most = if self.random.random_ratio(1, 5) { 90 } else { 12 };
        if self.random.random_ratio(4, 5) {
            amounts.set(Unit::Tokens, Some(self.scale.amount(&mut self.random, most).max(1)));
        }
        if self.random.random_ratio(1, 3) {
            amounts.set(Unit::Micros, Some(self.scale.amount(&mut self.random, most)));
        }
        if self.random.random_ratio(1, 6) {
            amounts.set(Unit::Requests, Some(self.random.random_range(1..4)));
        }
        if self.random.random_ratio(1, 60) {
            amounts.set(Unit::Tokens, Some(0));
        }
        if self.random.random_ratio(1, 12) {
            amounts.set(Unit::Slots, Some(self.random.random_range(1..3)));
        }
        amounts
    }
}

/// What an operator's freeze is on: of the subject's user or of its whole tenant, and of its model if it names one.
fn scope_of(subject: &Subject, of_user: bool) -> FreezeScope {
    FreezeScope {
        tenant: subject.tenant_id(),
        user: if of_user { subject.user_id() } else { None },
        route: subject.route_name(),
        model: subject.model.map(|model| ModelName::new(format!("m{model}")).unwrap()),
        region: None,
    }
}
