//! The naive model of the whole book: plain lists, searched from the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_ledger::answer::{Reason, State, Tier};
use holdfast_ledger::command::{
    Command, Correct, Release, Renew, ReportUnknown, Request, Reserve, ResolveUnknown, Settle, Start,
};
use holdfast_ledger::ids::{LimitId, RouteName, TenantId};
use holdfast_ledger::limits::{ID_AHEAD_MS, ID_WINDOW_MS};
use holdfast_ledger::plan::{Level, Plan, Route, Rule};
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};
use holdfast_ledger::webhook::Webhook;
use holdfast_ledger::{Adjust, Amounts, ReservationId, Unit};

use crate::decide::{actual_of, hit, key_of, lane_of, legs_of, reason_rank, tier_of};
use crate::lineage::Fact;
use crate::rows::{Era, Happening, Reservation};
use crate::verdict::{No, Shadow, Sketch, Verdict, words_for};

/// The model.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub clock_ms: u64,
    pub revision: u64,
    pub floor_ms: u64,
    pub eras: Vec<Era>,
    pub reservations: Vec<Reservation>,
    /// Id, and when it is forgotten.
    tombstones: Vec<(ReservationId, u64)>,
    /// What was asked, what came of it, and when it is forgotten.
    pub adjustments: Vec<(Adjust, Verdict, u64)>,
    pub frozen: BTreeSet<FreezeScope>,
    pub webhooks: BTreeMap<TenantId, Webhook>,
    /// Everything that ever happened to any lineage, in order.
    pub log: Vec<(u64, Happening)>,
    pub units: BTreeMap<LineageKey, Unit>,
    /// How often the shadow lane decided what, by route.
    pub shadow: BTreeMap<(RouteName, Shadow), u64>,
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

    pub fn window_ms(&self) -> u64 {
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
        self.forget_adjustments();
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
            let generation = self.reservations[at].receipt.generation;
            self.log.push((now, Happening::Leg(key, Fact::End(id, used, generation))));
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
            Command::Correct(correct) => self.correct(correct),
            Command::Release(release) => self.release(release),
            Command::Renew(renew) => self.renew(renew),
            Command::ReportUnknown(report) => self.report(report),
            Command::PublishPlan(publish) => self.publish(publish),
            Command::UnreadablePlan(_) => Verdict::Invalid,
            Command::RollBack(roll_back) => self.roll_back(roll_back),
            Command::SetTenant(set) => self.set_tenant(set),
            Command::Freeze(freeze) => self.freeze(freeze),
            Command::ResolveUnknown(resolve) => self.resolve(resolve),
            Command::Unfreeze(unfreeze) => self.unfreeze(unfreeze),
            Command::Adjust(adjust) => self.adjust(adjust),
            Command::SetWebhook(set) => self.set_webhook(set),
            Command::AdvanceWebhook(_) => unreachable!("nothing is sent here"),
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
        if let Some(first) = self.first_with_key(reserve) {
            self.seen.insert("key");
            let same = first.digest == reserve.request_digest;
            return if same { first.sketch(now) } else { Verdict::Conflict(first.state_at(now)) };
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
        if asked.iter().any(zero) || ttl == 0 || ttl > route.hold_ttl_ms_max {
            return Verdict::Invalid;
        }
        let minimum = reserve.request.minimum;
        let foreign = |(unit, least)| asked.get(unit).is_none_or(|most| least > most);
        if minimum.iter().any(zero) || minimum.iter().any(foreign) {
            return Verdict::Invalid;
        }
        let mut needed = asked;
        minimum.iter().for_each(|(unit, least)| needed.set(unit, Some(least)));
        let too_large = asked.iter().any(too_large);
        let in_shadow = lane_of(route, &reserve.request) == Lane::Shadow;
        let rejection = self.reject(&plan, route, &reserve.request, needed);
        let refused = match (in_shadow, too_large, rejection) {
            (false, true, _) => return Verdict::Invalid,
            (false, false, Some(no)) => return Verdict::Rejected(Box::new(no)),
            (true, true, _) => Some(Shadow::Undecided),
            (true, false, Some(no)) => Some(Shadow::of(&no)),
            (_, false, None) => None,
        };
        let (granted, mut cut) = match refused {
            Some(_) => (Amounts::NONE, Amounts::NONE),
            None => self.grant(&plan, route, &reserve.request, asked),
        };
        // In shadow everything is given that is asked; only what is held there is less.
        if in_shadow {
            cut = Amounts::NONE;
        }
        let mut tier = Tier::Normal;
        let (mut legs, mut keys) = (Vec::new(), Vec::new());
        // What the shadow lane would have refused takes nothing.
        let takes = if refused.is_some() { Vec::new() } else { legs_of(&plan, &reserve.request, granted) };
        for (limit, amount) in takes {
            let key = key_of(limit, route, &reserve.request);
            self.units.insert(key.clone(), limit.unit);
            self.log.push((now, Happening::Leg(key.clone(), Fact::Hold(reserve.id, amount))));
            let balance = self.balance(&key, now);
            tier = tier.max(tier_of(limit, &balance));
            let epoch = balance.epoch.map(|(start, _)| start);
            legs.push((limit.id.clone(), amount, self.rule_generation(&key), epoch));
            keys.push((key, amount));
        }
        let shadow = in_shadow.then(|| refused.unwrap_or(Shadow::Admitted(tier)));
        if let Some(decision) = &shadow {
            self.seen.insert(decision.word());
            *self.shadow.entry((route.name.clone(), decision.clone().counted())).or_default() += 1;
            tier = Tier::Normal;
        }
        let reservation = Reservation {
            id: reserve.id,
            digest: reserve.request_digest,
            key: reserve.key.clone(),
            request: reserve.request.clone(),
            route: route.clone(),
            grace_ms: plan.expiring_grace_ms,
            legs: keys,
            receipt: Sketch {
                state: State::Reserved,
                generation: self.generation(),
                route: route.name.clone(),
                tier,
                reserved: if in_shadow { asked } else { granted },
                cut,
                legs,
                reserved_at_ms: now,
                reserved_revision: self.revision,
                expires_at_ms: now + ttl,
                operation: None,
                started_at_ms: None,
                actual: None,
                estimated: false,
                resolved: false,
                corrected: None,
                ended_at_ms: None,
                debt: Amounts::NONE,
                shadow,
            },
            forget_at_ms: None,
        };
        let verdict = reservation.sketch(now);
        self.reservations.push(reservation);
        verdict
    }

    /// The reservation that a tenant's key stands for: every one that is remembered has a key of its own.
    fn first_with_key(&self, reserve: &Reserve) -> Option<Reservation> {
        let tenant = &reserve.request.tenant;
        let mut known = self.reservations.iter().filter(|known| known.request.tenant == *tenant);
        known.find(|known| known.key.is_some() && known.key == reserve.key).cloned()
    }

    /// What is granted of an ask whose minimum fits, and what was asked where it is less: every limit in turn
    /// takes away what it has not got.
    fn grant(&self, plan: &Plan, route: &Route, request: &Request, asked: Amounts) -> (Amounts, Amounts) {
        let (mut granted, mut cut) = (asked, Amounts::NONE);
        for (limit, _) in legs_of(plan, request, asked) {
            let balance = self.balance(&key_of(limit, route, request), self.clock_ms);
            let bounded = !matches!(balance.rule, Some(Rule::Unlimited { .. }));
            let over = i128::from(granted.get(limit.unit).unwrap_or(0)) - balance.available;
            if request.minimum.get(limit.unit).is_some() && bounded && over > 0 {
                granted.set(limit.unit, u64::try_from(balance.available).ok());
                cut.set(limit.unit, asked.get(limit.unit));
            }
        }
        (granted, cut)
    }

    /// Why a limit says no, or nothing. The order of reporting is that of docs/ledger.md.
    fn reject(&self, plan: &Plan, route: &Route, request: &Request, asked: Amounts) -> Option<No> {
        let now = self.clock_ms;
        let generation = self.generation();
        let meets = |scope: &&FreezeScope| {
            scope.tenant == request.tenant
                && scope.route == route.name
                && scope.user.as_ref().is_none_or(|user| request.user.as_ref() == Some(user))
                && scope.model.as_ref().is_none_or(|model| request.model.as_ref() == Some(model))
                && scope.region.as_ref().is_none_or(|region| request.region.as_ref() == Some(region))
        };
        if self.frozen.iter().any(|scope| meets(&scope)) {
            // Which of the subject's limits a frozen one's rejection names is left open.
            let limit = LimitId::new("frozen").ok()?;
            let (level, unit, reason) = (Level::Tenant, Unit::Requests, Reason::Frozen);
            return Some(No { generation, limit, level, unit, reason, asks: Vec::new(), hint: false });
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
            let reason = hit(&balance, amount);
            let slots_are_free = kind == 1 && reason.is_none();
            hint |= kind == 1 && reason.is_some();
            if let Some(reason) = reason {
                let rank = reason_rank(reason);
                hits.push((rank, kind, limit.scope.level, limit.id.clone(), limit.unit, reason));
            }
            // What fits now may not any more once another limit does. When slots come back nobody knows.
            if !slots_are_free {
                asks.push((key, amount));
            }
        }
        hits.sort_by(|a, b| (a.0, a.1, a.2, &a.3).cmp(&(b.0, b.1, b.2, &b.3)));
        let (_, _, level, limit, unit, reason) = hits.into_iter().next()?;
        Some(No { generation, limit, level, unit, reason, asks, hint })
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
        let mut said = settle.actual;
        for unit in [Unit::Tokens, Unit::Micros].into_iter().filter(|_| settle.estimated) {
            said.set(unit, said.get(unit).or(known.receipt.reserved.get(unit)));
        }
        let actual = actual_of(known.receipt.reserved, said);
        if settle.actual.iter().any(|(unit, used)| used > 0 && actual.get(unit).is_none()) {
            return Verdict::Invalid;
        }
        if let Some(settled) = known.receipt.actual {
            let same = settled == actual && known.receipt.estimated == settle.estimated;
            return if same { known.sketch(now) } else { Verdict::Conflict(state) };
        }
        if settle.estimated && state == State::UsageUnknown {
            return Verdict::WrongState(state);
        }
        let held = known.legs.iter().map(|(_, held)| *held).collect();
        self.finish(at, actual, window);
        let debt = self.judge_settlement(at, actual, held, None);
        let known = &mut self.reservations[at];
        known.receipt.state = if debt.is_empty() { State::Settled } else { State::SettledWithDebt };
        known.receipt.actual = Some(actual);
        known.receipt.estimated = settle.estimated;
        known.receipt.debt = debt;
        if settle.estimated {
            let until = now + known.route.correction_window_ms;
            known.forget_at_ms = known.forget_at_ms.max(Some(until));
        }
        known.sketch(now)
    }

    /// An operator's word ends what nobody knows, and nothing else.
    fn resolve(&mut self, resolve: &ResolveUnknown) -> Verdict {
        let (now, window) = (self.clock_ms, self.window_ms());
        let Some(at) = self.find(resolve.id) else { return self.missing(resolve.id) };
        let known = &self.reservations[at];
        let state = known.state_at(now);
        let (reserved, said) = (known.receipt.reserved, resolve.actual);
        if known.receipt.operation.is_none() {
            return Verdict::WrongState(state);
        }
        let silent = [Unit::Tokens, Unit::Micros].into_iter();
        let mut silent = silent.filter(|unit| reserved.get(*unit).is_some() && said.get(*unit).is_none());
        let used = actual_of(reserved, said);
        let foreign = said.iter().any(|(unit, amount)| amount > 0 && used.get(unit).is_none());
        match known.receipt.actual {
            _ if silent.next().is_some() || foreign => return Verdict::Invalid,
            Some(settled) if settled == used => return known.sketch(now),
            Some(_) => return Verdict::Conflict(state),
            None if state != State::UsageUnknown => return Verdict::WrongState(state),
            None => {}
        }
        let held = known.legs.iter().map(|(_, held)| *held).collect();
        self.finish(at, used, window);
        let debt = self.judge_settlement(at, used, held, None);
        let known = &mut self.reservations[at];
        known.receipt.state = if debt.is_empty() { State::Settled } else { State::SettledWithDebt };
        (known.receipt.actual, known.receipt.debt, known.receipt.resolved) = (Some(used), debt, true);
        self.seen.insert("resolved");
        self.reservations[at].sketch(now)
    }

    fn correct(&mut self, correct: &Correct) -> Verdict {
        let (now, window) = (self.clock_ms, self.window_ms());
        let Some(at) = self.find(correct.id) else { return self.missing(correct.id) };
        let known = &self.reservations[at];
        let state = known.state_at(now);
        match &known.receipt.operation {
            None => return Verdict::WrongState(state),
            Some(bound) if *bound != correct.operation => return Verdict::Conflict(state),
            Some(_) => {}
        }
        let Some(said) = known.receipt.actual else { return Verdict::WrongState(state) };
        if correct.actual.iter().any(|(unit, used)| used > 0 && said.get(unit).is_none()) {
            return Verdict::Invalid;
        }
        let mut used = said;
        for (unit, amount) in correct.actual.iter() {
            if said.get(unit).is_some() && unit != Unit::Slots {
                used.set(unit, Some(amount));
            }
        }
        let final_already = known.receipt.corrected.map(|(used, _)| used);
        let final_already = final_already.or((!known.receipt.estimated).then_some(said));
        match final_already {
            Some(known_used) if known_used == used => return known.sketch(now),
            Some(_) => return Verdict::Conflict(state),
            None => {}
        }
        let (mut before, generation) = (Vec::new(), known.receipt.generation);
        for (key, _) in known.legs.clone() {
            let unit = self.units[&key];
            let of = |amounts: Amounts| if unit == Unit::Slots { 0 } else { amounts.get(unit).unwrap_or(0) };
            let id = correct.id;
            let fact = Fact::Correct(id, of(said), of(used), generation);
            self.log.push((now, Happening::Leg(key, fact)));
            before.push(of(said));
        }
        let debt = self.judge_settlement(at, used, before, Some(said));
        let known = &mut self.reservations[at];
        known.receipt.state = if debt.is_empty() { State::Settled } else { State::SettledWithDebt };
        known.receipt.corrected = Some((used, debt));
        // It may be asked again for as long as if it had ended now.
        known.forget_at_ms = known.forget_at_ms.max(Some(now.max(known.id.time_ms()) + window + ID_AHEAD_MS));
        self.seen.insert("corrected");
        self.reservations[at].sketch(now)
    }

    /// The debt that a settlement or a correction left, per unit; freezes the subject at a breach. `booked`:
    /// what each leg had before it; `before`: what was said to be used until then.
    fn judge_settlement(
        &mut self,
        at: usize,
        used: Amounts,
        booked: Vec<u64>,
        before: Option<Amounts>,
    ) -> Amounts {
        let now = self.clock_ms;
        let mut debt = Amounts::NONE;
        let known = self.reservations[at].clone();
        let mut breached = false;
        for ((key, _), booked) in known.legs.iter().zip(booked) {
            let unit = self.units[key];
            let owed = self.balance(key, now).debt;
            if owed > 0 {
                let owed = u64::try_from(owed).unwrap_or(u64::MAX);
                debt.set(unit, Some(debt.get(unit).unwrap_or(0).max(owed)));
            }
            let limit = self.plan().and_then(|plan| plan.limit(&key.limit).cloned());
            let most = limit.and_then(|limit| limit.overdraft_max).or(known.route.debt_max.get(unit));
            // Debt that others made is not this one's breach.
            let overran = used.get(unit).is_some_and(|used| used > booked);
            let past_debt = overran && most.is_some_and(|most| owed > i128::from(most));
            breached |= past_debt;
        }
        breached |= used.iter().any(|(unit, used)| {
            let more = before.is_none_or(|before| before.get(unit).is_none_or(|before| used > before));
            more && known.route.execution_max.get(unit).is_some_and(|cap| used > cap)
        });
        // Who is frozen is the narrowest lineage of the reservation, never the global level.
        // What the shadow lane books freezes nobody.
        breached &= known.receipt.shadow.is_none();
        let keys = known.legs.iter().map(|(key, _)| key).filter(|key| key.tenant.is_some());
        let narrow = |key: &&LineageKey| {
            let more = [key.route.is_some(), key.model.is_some(), key.region.is_some()];
            (key.level(), more.iter().filter(|keyed| **keyed).count(), std::cmp::Reverse(key.limit.clone()))
        };
        if let (true, Some(narrowest)) = (breached, keys.max_by_key(narrow)) {
            self.frozen.insert(FreezeScope {
                tenant: known.request.tenant.clone(),
                user: narrowest.user.clone(),
                route: known.route.name.clone(),
                model: narrowest.model.clone(),
                region: narrowest.region.clone(),
            });
        }
        debt
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
}
