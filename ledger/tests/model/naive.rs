//! The naive model of the whole book: plain lists, searched from the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_ledger::answer::{Reason, State, Tier};
use holdfast_ledger::command::{
    Command, PublishPlan, Release, Renew, ReportUnknown, Request, Reserve, SetTenant, Settle, Start, Unfreeze,
};
use holdfast_ledger::ids::{LimitId, OperationId, RouteName, TenantId, UserId};
use holdfast_ledger::limits::{ID_AHEAD_MS, ID_WINDOW_MS};
use holdfast_ledger::plan::{Level, Limit, Plan, Route, Rule, Shape, TenantRecord};
use holdfast_ledger::record::{Lane, LineageKey};
use holdfast_ledger::{Amounts, ReservationId, Unit};

use crate::decide::{actual_of, hit, key_of, legs_of, reason_rank, tier_of};
use crate::lineage::{Balance, Fact};

/// What the model says of a command; the parts of an answer that the spec fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Receipt(Box<Sketch>),
    Tombstone,
    Published { generation: u64, changed: bool },
    Unfrozen { changed: bool },
    Done,
    Invalid,
    Conflict(State),
    WrongState(State),
    NotFound,
    IdTooOld(u64),
    IdInFuture(u64),
    GenerationMismatch(u64),
    Rejected(Box<No>),
}

/// The parts of a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct No {
    pub generation: u64,
    pub limit: LimitId,
    pub level: Level,
    pub unit: Unit,
    pub reason: Reason,
    /// What would have to fit for an admission; cases for waiting are tried out on these.
    pub asks: Vec<(LineageKey, u64)>,
    /// Nobody knows when a slot comes back: the wait is a hint.
    pub hint: bool,
}

/// The parts of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    pub state: State,
    pub generation: u64,
    pub route: RouteName,
    pub tier: Tier,
    pub reserved: Amounts,
    /// Limit, amount, generation, start of the epoch.
    pub legs: Vec<(LimitId, u64, u64, Option<u64>)>,
    pub reserved_at_ms: u64,
    pub reserved_revision: u64,
    pub expires_at_ms: u64,
    pub operation: Option<OperationId>,
    pub started_at_ms: Option<u64>,
    pub actual: Option<Amounts>,
    pub ended_at_ms: Option<u64>,
    pub debt: Amounts,
}

#[derive(Clone, Debug)]
struct Reservation {
    id: ReservationId,
    digest: [u8; 32],
    request: Request,
    route: Route,
    grace_ms: u64,
    legs: Vec<(LineageKey, u64)>,
    /// `state` as it was set; what time makes of it is worked out.
    receipt: Sketch,
    forget_at_ms: Option<u64>,
}

impl Reservation {
    fn state_at(&self, now: u64) -> State {
        let expiry = self.receipt.expires_at_ms;
        match self.receipt.state {
            State::Reserved if now >= expiry + self.grace_ms => State::Expired,
            State::Reserved if now >= expiry => State::Expiring,
            State::Started if now >= expiry => State::UsageUnknown,
            state => state,
        }
    }

    fn sketch(&self, now: u64) -> Verdict {
        let mut receipt = self.receipt.clone();
        receipt.state = self.state_at(now);
        Verdict::Receipt(Box::new(receipt))
    }
}

/// Something that concerns balances.
#[derive(Clone, Debug)]
enum Happening {
    /// An era begins, by its place in the list.
    Era(usize),
    /// A reservation took or gave back.
    Leg(LineageKey, Fact),
}

/// What holds from one publish to the next.
#[derive(Clone, Debug)]
struct Era {
    generation: u64,
    plan: Arc<Plan>,
    records: BTreeMap<TenantId, Arc<TenantRecord>>,
}

/// The model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub clock_ms: u64,
    pub revision: u64,
    floor_ms: u64,
    eras: Vec<Era>,
    reservations: Vec<Reservation>,
    /// Id, and when it is forgotten.
    tombstones: Vec<(ReservationId, u64)>,
    frozen: BTreeSet<(TenantId, Option<UserId>, RouteName)>,
    /// Everything that ever happened to any lineage, in order.
    log: Vec<(u64, Happening)>,
    units: BTreeMap<LineageKey, Unit>,
    /// Which rules were met, so that a run can say that it met them all.
    pub seen: BTreeSet<&'static str>,
}

impl Model {
    pub fn generation(&self) -> u64 {
        self.eras.last().map_or(0, |era| era.generation)
    }

    pub fn plan(&self) -> Option<&Arc<Plan>> {
        self.eras.last().map(|era| &era.plan)
    }

    fn window_ms(&self) -> u64 {
        self.plan().map_or(ID_WINDOW_MS, |plan| plan.id_window_ms)
    }

    /// A log entry begins: time moves on and what is due happens.
    pub fn begin_entry(&mut self, stamp_ms: u64) {
        self.clock_ms = self.clock_ms.max(stamp_ms);
        let now = self.clock_ms;
        self.floor_ms = self.floor_ms.max(now.saturating_sub(self.window_ms()));
        let window = self.window_ms();
        for at in 0..self.reservations.len() {
            let state = self.reservations[at].state_at(now);
            if state == self.reservations[at].receipt.state || state == State::Expiring {
                continue;
            }
            self.reservations[at].receipt.state = state;
            if state == State::Expired {
                self.finish(at, Amounts::NONE, window);
            }
        }
        self.forget();
    }

    /// Forgets what is due. An id that could still be taken for a new one is remembered longer: the window may have grown.
    fn forget(&mut self) {
        let (now, floor) = (self.clock_ms, self.floor_ms);
        let longer = |id: ReservationId| (id.time_ms() + self.window_ms() + ID_AHEAD_MS).max(now + 1);
        let stays = |id: ReservationId| if id.time_ms() >= floor { Some(longer(id)) } else { None };
        let mut forgotten = Vec::new();
        let mut kept = self.reservations.clone();
        for reservation in &mut kept {
            if reservation.forget_at_ms.is_none_or(|when| now < when) {
                continue;
            }
            match stays(reservation.id) {
                Some(later) => reservation.forget_at_ms = Some(later),
                None => forgotten.push(reservation.id),
            }
        }
        kept.retain(|reservation| !forgotten.contains(&reservation.id));
        let mut stones = self.tombstones.clone();
        for (id, when) in stones.iter_mut().filter(|(_, when)| now >= *when) {
            match stays(*id) {
                Some(later) => *when = later,
                None => forgotten.push(*id),
            }
        }
        stones.retain(|(id, _)| !forgotten.contains(id));
        if !forgotten.is_empty() {
            self.seen.insert("forgotten");
        }
        (self.reservations, self.tombstones) = (kept, stones);
    }

    /// Every leg ends with what it used.
    fn finish(&mut self, at: usize, used: Amounts, window_ms: u64) {
        let now = self.clock_ms;
        let reservation = &mut self.reservations[at];
        reservation.receipt.ended_at_ms = Some(now);
        reservation.forget_at_ms = Some(now.max(reservation.id.time_ms()) + window_ms + ID_AHEAD_MS);
        for (key, _) in reservation.legs.clone() {
            let unit = self.units[&key];
            let used = if unit == Unit::Slots { 0 } else { used.get(unit).unwrap_or(0) };
            let id = self.reservations[at].id;
            self.log.push((now, Happening::Leg(key, Fact::End(id, used))));
        }
    }

    pub fn apply(&mut self, command: &Command) -> Verdict {
        self.revision += 1;
        let verdict = self.decide(command);
        self.seen.extend(words_for(&verdict));
        verdict
    }

    fn decide(&mut self, command: &Command) -> Verdict {
        match command {
            Command::Reserve(reserve) => self.reserve(reserve),
            Command::Start(start) => self.start(start),
            Command::Settle(settle) => self.settle(settle),
            Command::Release(release) => self.release(release),
            Command::Renew(renew) => self.renew(renew),
            Command::ReportUnknown(report) => self.report(report),
            Command::PublishPlan(publish) => self.publish(publish),
            Command::SetTenant(set) => self.set_tenant(set),
            Command::Unfreeze(unfreeze) => self.unfreeze(unfreeze),
            Command::Tick | Command::RaiseRules { .. } => Verdict::Done,
        }
    }

    fn find(&self, id: ReservationId) -> Option<usize> {
        self.reservations.iter().position(|reservation| reservation.id == id)
    }

    fn has_tombstone(&self, id: ReservationId) -> bool {
        self.tombstones.iter().any(|(stone, _)| *stone == id)
    }

    fn check_fresh(&self, id: ReservationId) -> Result<(), Verdict> {
        let latest = self.clock_ms + ID_AHEAD_MS;
        if id.time_ms() < self.floor_ms {
            Err(Verdict::IdTooOld(self.floor_ms))
        } else if id.time_ms() > latest {
            Err(Verdict::IdInFuture(latest))
        } else {
            Ok(())
        }
    }

    fn reserve(&mut self, reserve: &Reserve) -> Verdict {
        let now = self.clock_ms;
        if let Some(at) = self.find(reserve.id) {
            let known = &self.reservations[at];
            let same = known.digest == reserve.request_digest;
            return if same { known.sketch(now) } else { Verdict::Conflict(known.state_at(now)) };
        }
        if self.has_tombstone(reserve.id) {
            return Verdict::WrongState(State::Released);
        }
        if let Err(refusal) = self.check_fresh(reserve.id) {
            return refusal;
        }
        let Some(plan) = self.plan().cloned() else { return Verdict::Invalid };
        let Some(route) = plan.route_for(&reserve.request) else { return Verdict::Invalid };
        let asked = reserve.request.amounts_asked();
        let ttl = reserve.request.hold_ttl_ms.unwrap_or(route.hold_ttl_ms);
        let too_large = |(unit, amount)| route.reservation_max.get(unit).is_some_and(|most| amount > most);
        let zero = |(unit, amount)| amount == 0 && unit != Unit::Micros;
        if asked.iter().any(too_large) || asked.iter().any(zero) || ttl == 0 || ttl > route.hold_ttl_ms_max {
            return Verdict::Invalid;
        }
        if let Some(rejection) = self.reject(&plan, route, &reserve.request, asked) {
            return rejection;
        }
        let mut tier = Tier::Normal;
        let (mut legs, mut keys) = (Vec::new(), Vec::new());
        for (limit, amount) in legs_of(&plan, &reserve.request, asked) {
            let key = key_of(limit, route, &reserve.request);
            self.units.insert(key.clone(), limit.unit);
            self.log.push((now, Happening::Leg(key.clone(), Fact::Hold(reserve.id, amount))));
            let balance = self.balance(&key, now);
            tier = tier.max(tier_of(limit, &balance));
            let epoch = balance.epoch.map(|(start, _)| start);
            legs.push((limit.id.clone(), amount, self.rule_generation(&key), epoch));
            keys.push((key, amount));
        }
        let reservation = Reservation {
            id: reserve.id,
            digest: reserve.request_digest,
            request: reserve.request.clone(),
            route: route.clone(),
            grace_ms: plan.expiring_grace_ms,
            legs: keys,
            receipt: Sketch {
                state: State::Reserved,
                generation: self.generation(),
                route: route.name.clone(),
                tier,
                reserved: asked,
                legs,
                reserved_at_ms: now,
                reserved_revision: self.revision,
                expires_at_ms: now + ttl,
                operation: None,
                started_at_ms: None,
                actual: None,
                ended_at_ms: None,
                debt: Amounts::NONE,
            },
            forget_at_ms: None,
        };
        let verdict = reservation.sketch(now);
        self.reservations.push(reservation);
        verdict
    }

    /// Why a limit says no, or nothing. The order of reporting is spec §7's.
    fn reject(&self, plan: &Plan, route: &Route, request: &Request, asked: Amounts) -> Option<Verdict> {
        let now = self.clock_ms;
        let generation = self.generation();
        let subject = (request.tenant.clone(), request.user.clone(), route.name.clone());
        let whole = (request.tenant.clone(), None, route.name.clone());
        if self.frozen.contains(&subject) || self.frozen.contains(&whole) {
            // Which of the subject's limits a frozen one's rejection names is left open.
            let limit = LimitId::new("frozen").ok()?;
            let (level, unit, reason) = (Level::Tenant, Unit::Requests, Reason::Frozen);
            let no = No { generation, limit, level, unit, reason, asks: Vec::new(), hint: false };
            return Some(Verdict::Rejected(Box::new(no)));
        }
        let (mut hits, mut asks, mut hint) = (Vec::new(), Vec::new(), false);
        for limit in plan.limits_for(request) {
            let key = key_of(limit, route, request);
            let balance = self.balance(&key, now);
            // A limit in debt suspends the subject, for requests of other units too.
            let amount = asked.get(limit.unit);
            if amount.is_none() && balance.debt == 0 {
                continue;
            }
            let amount = amount.unwrap_or(0);
            let kind = match &balance.rule {
                Some(Rule::Bucket { .. }) => 0,
                Some(Rule::Concurrency { .. }) => 1,
                _ => 2,
            };
            if let Some(reason) = hit(&balance, amount) {
                hint |= kind == 1;
                hits.push((
                    reason_rank(reason),
                    kind,
                    limit.scope.level,
                    limit.id.clone(),
                    limit.unit,
                    reason,
                ));
                asks.push((key, amount));
            }
        }
        hits.sort_by(|a, b| (a.0, a.1, a.2, &a.3).cmp(&(b.0, b.1, b.2, &b.3)));
        let (_, _, level, limit, unit, reason) = hits.into_iter().next()?;
        Some(Verdict::Rejected(Box::new(No { generation, limit, level, unit, reason, asks, hint })))
    }

    /// Whether amounts that did not fit would fit at a later time, if nothing else happened until then.
    pub fn fits(&self, asks: &[(LineageKey, u64)], at_ms: u64) -> bool {
        asks.iter().all(|(key, amount)| hit(&self.balance(key, at_ms), *amount).is_none())
    }

    fn start(&mut self, start: &Start) -> Verdict {
        let now = self.clock_ms;
        let Some(at) = self.find(start.id) else { return self.missing(start.id) };
        let state = self.reservations[at].state_at(now);
        let known = &mut self.reservations[at];
        match (&known.receipt.operation, state) {
            (Some(bound), _) if *bound == start.operation => known.sketch(now),
            (Some(_), _) => Verdict::Conflict(state),
            (None, State::Reserved) => {
                known.receipt.state = State::Started;
                known.receipt.operation = Some(start.operation.clone());
                known.receipt.started_at_ms = Some(now);
                known.receipt.expires_at_ms = now + known.route.usage_deadline_ms;
                known.sketch(now)
            }
            (None, _) => Verdict::WrongState(state),
        }
    }

    fn missing(&self, id: ReservationId) -> Verdict {
        if self.has_tombstone(id) { Verdict::WrongState(State::Released) } else { Verdict::NotFound }
    }

    fn settle(&mut self, settle: &Settle) -> Verdict {
        let now = self.clock_ms;
        let window = self.window_ms();
        let Some(at) = self.find(settle.id) else { return self.missing(settle.id) };
        let known = &self.reservations[at];
        let state = known.state_at(now);
        if known.receipt.operation.is_none() {
            return Verdict::WrongState(state);
        }
        if known.receipt.operation.as_ref() != Some(&settle.operation) {
            return Verdict::Conflict(state);
        }
        let actual = actual_of(known.receipt.reserved, settle.actual);
        if settle.actual.iter().any(|(unit, used)| used > 0 && actual.get(unit).is_none()) {
            return Verdict::Invalid;
        }
        if let Some(settled) = known.receipt.actual {
            return if settled == actual { known.sketch(now) } else { Verdict::Conflict(state) };
        }
        self.finish(at, actual, window);
        let mut debt = Amounts::NONE;
        let known = self.reservations[at].clone();
        let mut breached = false;
        for (key, held) in &known.legs {
            let unit = self.units[key];
            let owed = self.balance(key, now).debt;
            if owed > 0 {
                let owed = u64::try_from(owed).unwrap_or(u64::MAX);
                debt.set(unit, Some(debt.get(unit).unwrap_or(0).max(owed)));
            }
            let limit = self.plan().and_then(|plan| plan.limit(&key.limit).cloned());
            let most = limit.and_then(|limit| limit.overdraft_max).or(known.route.debt_max.get(unit));
            // Debt that others made is not this one's breach.
            let overran = actual.get(unit).is_some_and(|used| used > *held);
            let past_debt = overran && most.is_some_and(|most| owed > i128::from(most));
            breached |= past_debt;
        }
        breached |= actual
            .iter()
            .any(|(unit, used)| known.route.execution_max.get(unit).is_some_and(|cap| used > cap));
        // Who is frozen is the narrowest lineage of the reservation, never the global level.
        let keys = known.legs.iter().map(|(key, _)| key).filter(|key| key.tenant.is_some());
        if let (true, Some(narrowest)) = (breached, keys.max_by_key(|key| key.level())) {
            let tenant = known.request.tenant.clone();
            self.frozen.insert((tenant, narrowest.user.clone(), known.route.name.clone()));
        }
        let known = &mut self.reservations[at];
        known.receipt.state = if debt.is_empty() { State::Settled } else { State::SettledWithDebt };
        known.receipt.actual = Some(actual);
        known.receipt.debt = debt;
        known.sketch(now)
    }

    fn release(&mut self, release: &Release) -> Verdict {
        let now = self.clock_ms;
        let window = self.window_ms();
        let Some(at) = self.find(release.id) else {
            if self.has_tombstone(release.id) {
                return Verdict::Tombstone;
            }
            if let Err(refusal) = self.check_fresh(release.id) {
                return refusal;
            }
            self.tombstones.push((release.id, now.max(release.id.time_ms()) + window + ID_AHEAD_MS));
            return Verdict::Tombstone;
        };
        match self.reservations[at].state_at(now) {
            State::Released => self.reservations[at].sketch(now),
            State::Reserved | State::Expiring => {
                self.reservations[at].receipt.state = State::Released;
                self.finish(at, Amounts::NONE, window);
                self.reservations[at].sketch(now)
            }
            state => Verdict::WrongState(state),
        }
    }

    fn renew(&mut self, renew: &Renew) -> Verdict {
        let now = self.clock_ms;
        let Some(at) = self.find(renew.id) else { return self.missing(renew.id) };
        let known = &mut self.reservations[at];
        let most = match known.state_at(now) {
            State::Reserved => known.route.hold_ttl_ms_max,
            State::Started => known.route.usage_deadline_ms_max,
            state => return Verdict::WrongState(state),
        };
        if renew.extend_ms == 0 || renew.extend_ms > most {
            return Verdict::Invalid;
        }
        known.receipt.expires_at_ms = known.receipt.expires_at_ms.max(now + renew.extend_ms);
        known.sketch(now)
    }

    fn report(&mut self, report: &ReportUnknown) -> Verdict {
        let now = self.clock_ms;
        let Some(at) = self.find(report.id) else { return self.missing(report.id) };
        let known = &mut self.reservations[at];
        let state = known.state_at(now);
        match &known.receipt.operation {
            None => Verdict::WrongState(state),
            Some(bound) if *bound != report.operation => Verdict::Conflict(state),
            Some(_) if matches!(state, State::Started | State::UsageUnknown) => {
                known.receipt.state = State::UsageUnknown;
                known.sketch(now)
            }
            Some(_) => Verdict::WrongState(state),
        }
    }

    fn publish(&mut self, publish: &PublishPlan) -> Verdict {
        let generation = self.generation();
        // What is in force already is no change, whatever was expected: so the repeat of a publish whose answer was lost is answered.
        if self.plan().is_some_and(|plan| **plan == *publish.plan) {
            return Verdict::Published { generation, changed: false };
        }
        if publish.expected_generation.is_some_and(|expected| expected != generation) {
            return Verdict::GenerationMismatch(generation);
        }
        let records = self.eras.last().map(|era| era.records.clone()).unwrap_or_default();
        self.open_era(Arc::clone(&publish.plan), records)
    }

    fn set_tenant(&mut self, set: &SetTenant) -> Verdict {
        let generation = self.generation();
        if set.expected_generation.is_some_and(|expected| expected != generation) {
            return Verdict::GenerationMismatch(generation);
        }
        let Some(era) = self.eras.last() else { return Verdict::Invalid };
        if set.record.as_ref().is_some_and(|record| !era.plan.check_record(record).is_empty()) {
            return Verdict::Invalid;
        }
        let (plan, mut records) = (Arc::clone(&era.plan), era.records.clone());
        let before = match &set.record {
            Some(record) => records.insert(set.tenant.clone(), Arc::clone(record)),
            None => records.remove(&set.tenant),
        };
        if before == set.record {
            return Verdict::Published { generation, changed: false };
        }
        self.open_era(plan, records)
    }

    fn open_era(&mut self, plan: Arc<Plan>, records: BTreeMap<TenantId, Arc<TenantRecord>>) -> Verdict {
        let generation = self.generation() + 1;
        self.log.push((self.clock_ms, Happening::Era(self.eras.len())));
        self.eras.push(Era { generation, plan, records });
        self.floor_ms = self.floor_ms.max(self.clock_ms.saturating_sub(self.window_ms()));
        Verdict::Published { generation, changed: true }
    }

    fn unfreeze(&mut self, unfreeze: &Unfreeze) -> Verdict {
        let key = (unfreeze.tenant.clone(), unfreeze.user.clone(), unfreeze.route.clone());
        Verdict::Unfrozen { changed: self.frozen.remove(&key) }
    }

    /// The rule of a lineage in an era.
    fn rule_in(&self, era: &Era, key: &LineageKey) -> Option<Rule> {
        let limit = era.plan.limit(&key.limit)?;
        let set = key.tenant.as_ref().and_then(|tenant| era.records.get(tenant)).map(Arc::as_ref);
        let record = key.tenant.as_ref().and_then(|tenant| era.plan.record_for(tenant, set));
        Some(era.plan.effective_rule(limit, record, key.user.as_ref()))
    }

    /// The generation in which a lineage's rule last changed.
    fn rule_generation(&self, key: &LineageKey) -> u64 {
        let mut last = (0, None);
        for era in &self.eras {
            let rule = self.rule_in(era, key);
            if rule != last.1 {
                last = (era.generation, rule);
            }
        }
        last.0
    }

    /// A lineage at a time, from everything that ever happened to it.
    pub fn balance(&self, key: &LineageKey, at_ms: u64) -> Balance {
        Balance::of(&self.facts(key), at_ms)
    }

    /// Every lineage that anything happened to.
    pub fn keys(&self) -> Vec<LineageKey> {
        self.units.keys().cloned().collect()
    }

    /// The legs of reservations that hold: lineage and amount.
    pub fn open_legs(&self) -> Vec<(LineageKey, u64)> {
        let open = self.reservations.iter().filter(|reservation| reservation.receipt.ended_at_ms.is_none());
        open.flat_map(|reservation| reservation.legs.iter().cloned()).collect()
    }

    /// A reservation as it stands at a time.
    pub fn reservation(&self, id: ReservationId, at_ms: u64) -> Option<Sketch> {
        let found = self.reservations.iter().find(|reservation| reservation.id == id)?;
        match found.sketch(at_ms.max(self.clock_ms)) {
            Verdict::Receipt(sketch) => Some(*sketch),
            _ => None,
        }
    }

    /// Everything that happened to a lineage, changes of its rule included.
    pub fn facts(&self, key: &LineageKey) -> Vec<(u64, Fact)> {
        let mut facts = Vec::new();
        let mut last = None;
        for (when, happening) in &self.log {
            match happening {
                Happening::Era(at) => {
                    let rule = self.rule_in(&self.eras[*at], key);
                    if rule != last {
                        let era = &self.eras[*at];
                        let shape = era.plan.limit(&key.limit).map(|limit| &limit.shape);
                        let is_bucket = matches!(shape, Some(Shape::Bucket { .. }));
                        facts.push((*when, Fact::Rule(rule.clone(), is_bucket)));
                        last = rule;
                    }
                }
                Happening::Leg(of, fact) if of == key => facts.push((*when, fact.clone())),
                Happening::Leg(..) => {}
            }
        }
        facts
    }

    /// The tenant's and the user's lineages that the plan in force gives without further keys, for comparing quotas.
    pub fn lineages_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Vec<(Limit, LineageKey)> {
        let Some(plan) = self.plan() else { return Vec::new() };
        let plain = |limit: &&Limit| !limit.scope.route && !limit.scope.model && !limit.scope.region;
        let mut found = Vec::new();
        for limit in plan.limits.iter().filter(plain) {
            let (tenant, user) = match (limit.scope.level, user) {
                (Level::Global, _) => (None, None),
                (Level::Tenant, _) => (Some(tenant.clone()), None),
                (Level::User, Some(user)) => (Some(tenant.clone()), Some(user.clone())),
                (Level::User, None) => continue,
            };
            let limit_id = limit.id.clone();
            let key = LineageKey {
                limit: limit_id,
                tenant,
                user,
                route: None,
                model: None,
                region: None,
                lane: Lane::Enforced,
            };
            found.push((limit.clone(), key));
        }
        found
    }
}

/// The words under which a verdict is counted as met.
fn words_for(verdict: &Verdict) -> Vec<&'static str> {
    match verdict {
        Verdict::Receipt(sketch) => {
            let state = match sketch.state {
                State::Reserved => "reserved",
                State::Started => "started",
                State::Expiring => "expiring",
                State::Expired => "expired",
                State::Released => "released",
                State::UsageUnknown => "unknown",
                State::Settled => "settled",
                State::SettledWithDebt => "settled with debt",
            };
            let tier = match sketch.tier {
                Tier::Normal => "tier normal",
                Tier::DegradedLight => "tier light",
                Tier::DegradedHeavy => "tier heavy",
            };
            vec![state, tier]
        }
        Verdict::Tombstone => vec!["tombstone"],
        Verdict::Published { .. } => vec!["published"],
        Verdict::Unfrozen { .. } => vec!["unfrozen"],
        Verdict::Done => vec![],
        Verdict::Invalid => vec!["invalid"],
        Verdict::Conflict(_) => vec!["conflict"],
        Verdict::WrongState(State::Expiring) => vec!["wrong state", "expiring"],
        Verdict::WrongState(State::Expired) => vec!["wrong state", "expired"],
        Verdict::WrongState(_) => vec!["wrong state"],
        Verdict::NotFound => vec!["not found"],
        Verdict::IdTooOld(_) => vec!["id too old"],
        Verdict::IdInFuture(_) => vec!["id in future"],
        Verdict::GenerationMismatch(_) => vec!["generation mismatch"],
        Verdict::Rejected(no) => vec![match no.reason {
            Reason::Frozen => "frozen",
            Reason::NeverFits => "never fits",
            Reason::Debt => "debt",
            Reason::Held => "held",
            Reason::Spent => "spent",
        }],
    }
}
