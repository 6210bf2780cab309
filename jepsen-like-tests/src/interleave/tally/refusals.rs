//! Reserves: who must be admitted, at which tier, and which refusals are right.

use holdfast_ledger::answer::{Answer, Reason, Receipt, Refusal, Rejection, State, Tier};
use holdfast_ledger::command::Reserve;
use holdfast_ledger::record::FreezeScope;
use holdfast_ledger::{Amounts, Unit};

use super::{AHEAD_MS, Balance, Estimate, Known, Leg, Life, Place, Tally, receipt};
use crate::interleave::facts::{Plan as Facts, Rule};
use crate::interleave::found::Kind;
use crate::interleave::plans::{ROUTES, TENANTS, USERS};

/// What must be answered to a reserve of an id that was never seen.
enum Expected {
    /// At a tier, with so much.
    Admitted(Tier, Amounts),
    TooOld,
    InFuture,
    Invalid,
    Frozen,
    /// The lineages that say no.
    Refused(Vec<(Place, Reason)>),
}

/// A request's subject by its places in the harness's lists.
pub(super) struct Subject {
    tenant: usize,
    user: Option<usize>,
    route: &'static str,
}

impl Subject {
    /// `None`: the harness has no such tenant, user or route.
    pub(super) fn of(tenant: &str, user: Option<&str>, route: &str) -> Option<Subject> {
        let tenant = TENANTS.iter().position(|name| *name == tenant)?;
        let user = match user {
            Some(user) => Some(USERS.iter().position(|name| *name == user)?),
            None => None,
        };
        let route = ROUTES.iter().copied().find(|name| *name == route)?;
        Some(Subject { tenant, user, route })
    }

    /// What a freeze of the harness is on: none is on a model or region.
    pub(super) fn of_freeze(scope: &FreezeScope) -> Option<Subject> {
        let FreezeScope { tenant, user, route, model: None, region: None } = scope else { return None };
        Subject::of(tenant.as_str(), user.as_ref().map(|user| user.as_str()), route.as_str())
    }

    fn of_reserve(reserve: &Reserve) -> Option<Subject> {
        let request = &reserve.request;
        let user = request.user.as_ref().map(|user| user.as_str());
        Subject::of(request.tenant.as_str(), user, request.route.as_str())
    }

    /// As freezes are noted.
    pub(super) fn key(&self) -> (usize, Option<usize>, &'static str) {
        (self.tenant, self.user, self.route)
    }
}

impl Tally {
    pub(super) fn on_reserve(&mut self, reserve: &Reserve, answer: &Answer, revision: u64) {
        let id = reserve.id;
        if let Some(receipt) = receipt(answer).filter(|receipt| receipt.reserved_revision == revision) {
            if self.known.contains_key(&id) {
                self.find(Kind::SecondReservation, || {
                    format!("{id} is admitted again at revision {revision}")
                });
            }
            return self.on_admission(reserve, receipt, revision);
        }
        match self.known.get(&id) {
            Some(known) => {
                let known = known.clone();
                self.judge_repeat(reserve, &known, answer);
            }
            None => self.judge_refusal(reserve, answer),
        }
    }

    /// A known id: its receipt, or a conflict, whatever the limits say by now.
    fn judge_repeat(&mut self, reserve: &Reserve, known: &Known, answer: &Answer) {
        let id = reserve.id;
        let too_old = known.ended_at_ms.is_some() && id.time_ms() < self.floor_ms;
        let right = match (answer, &known.life) {
            (Answer::Refused(Refusal::IdTooOld { .. }), _) => too_old,
            (Answer::Refused(Refusal::WrongState { state: State::Released }), None) => true,
            (Answer::Refused(Refusal::Conflict { .. }), Some(life)) => life.digest != reserve.request_digest,
            (Answer::Reservation(receipt), Some(life)) => {
                life.digest == reserve.request_digest
                    && receipt.reserved_revision == life.revision
                    && receipt.state == life.state_at(self.clock_ms)
                    && receipt.reserved == life.amounts
            }
            _ => false,
        };
        if !right {
            let digest = known.life.as_ref().map(|life| life.digest == reserve.request_digest);
            self.find(Kind::SecondReservation, || {
                format!("{id} was seen before (same request: {digest:?}) and is answered {answer:?}")
            });
        }
    }

    fn on_admission(&mut self, reserve: &Reserve, receipt: &Receipt, revision: u64) {
        let id = reserve.id;
        match self.expect(reserve) {
            Expected::Admitted(tier, granted) if tier == receipt.tier && granted == receipt.reserved => {}
            Expected::Admitted(tier, granted) => self.find(Kind::WrongRefusal, || {
                let (said, was) = (receipt.tier.as_str(), tier.as_str());
                format!(
                    "{id} is admitted at {said} with {:?}, not at {was} with {granted:?}",
                    receipt.reserved
                )
            }),
            Expected::Refused(no) => {
                let in_debt = no.iter().any(|(_, reason)| *reason == Reason::Debt);
                let kind = if in_debt { Kind::ForgottenDebt } else { Kind::OverIssue };
                let no = self.describe(&no);
                self.find(kind, || format!("{id} is admitted although {no}"));
            }
            Expected::Frozen => self.find(Kind::OverIssue, || format!("{id} is admitted although frozen")),
            Expected::TooOld => {
                self.find(Kind::SecondReservation, || format!("{id} is admitted although it is too old"));
            }
            Expected::InFuture | Expected::Invalid => {
                self.find(Kind::Lifecycle, || format!("{id} is admitted and makes no sense"));
            }
        }
        let (Some(subject), Some(facts)) = (Subject::of_reserve(reserve), self.plan.clone()) else { return };
        let amounts = receipt.reserved;
        let legs = self.hold(&subject, &facts, &amounts);
        self.judge_legs(receipt, &legs);
        let terms = facts.routes.iter().find(|route| route.name == subject.route);
        let ttl_ms = reserve.request.hold_ttl_ms.or(terms.map(|terms| terms.hold_ttl_ms)).unwrap_or(0);
        let life = Life {
            tenant: subject.tenant,
            user: subject.user,
            route: subject.route,
            facts,
            digest: reserve.request_digest,
            amounts,
            legs,
            revision,
            state: State::Reserved,
            expires_at_ms: self.clock_ms + ttl_ms,
            operation: None,
            actual: Amounts::NONE,
            spent: Amounts::NONE,
            estimate: Estimate::No,
            ended_revision: None,
        };
        self.known.insert(id, Known { life: Some(life), ended_at_ms: None });
    }

    fn hold(&mut self, subject: &Subject, facts: &Facts, amounts: &Amounts) -> Vec<Leg> {
        let places: Vec<_> = self.asks(subject, facts, amounts).collect();
        let mut legs = Vec::with_capacity(places.len());
        for (place, amount) in places {
            let (Some(amount), Some(balance)) = (amount, self.lineages.balance(place)) else { continue };
            legs.push(Leg { place, amount, stretch: balance.stretch() });
            balance.hold(amount);
        }
        legs
    }

    /// The receipt names every lineage that is held on, and no other.
    fn judge_legs(&mut self, receipt: &Receipt, legs: &[Leg]) {
        let mut said: Vec<_> = receipt.hold.legs.iter().map(|leg| (leg.limit.as_str(), leg.amount)).collect();
        let mut held: Vec<_> =
            legs.iter().map(|leg| (self.lineages.at(leg.place).limit, leg.amount)).collect();
        said.sort_unstable();
        held.sort_unstable();
        if said != held {
            let id = receipt.id;
            self.find(Kind::OverIssue, || format!("{id} is held on {said:?}, not on {held:?}"));
        }
    }

    /// The lineages that a request falls under, each with the amount asked of it.
    fn asks<'a>(
        &'a self,
        subject: &Subject,
        facts: &'a Facts,
        amounts: &'a Amounts,
    ) -> impl Iterator<Item = (Place, Option<u64>)> + 'a {
        self.lineages.of_subject(subject.tenant, subject.user).filter_map(|(place, row)| {
            let limit = facts.limits.iter().find(|limit| limit.id == row.limit)?;
            Some((place, amounts.get(limit.unit)))
        })
    }

    fn balance_at(&self, place: Place) -> Option<&Balance> {
        self.lineages.at(place).balance.as_ref()
    }

    fn expect(&self, reserve: &Reserve) -> Expected {
        let time_ms = reserve.id.time_ms();
        if time_ms < self.floor_ms {
            return Expected::TooOld;
        }
        if time_ms > self.clock_ms + AHEAD_MS {
            return Expected::InFuture;
        }
        let (Some(facts), Some(subject)) = (&self.plan, Subject::of_reserve(reserve)) else {
            return Expected::Invalid;
        };
        let amounts = Self::asked(reserve);
        let most = facts.routes.iter().find(|route| route.name == subject.route);
        let most = most.and_then(|route| route.tokens_max);
        let over = |(unit, least): (Unit, u64)| amounts.get(unit).is_none_or(|asked| least > asked);
        if reserve.request.minimum.iter().any(over) {
            return Expected::Invalid;
        }
        if most.is_some_and(|most| amounts.get(Unit::Tokens).is_some_and(|tokens| tokens > most)) {
            return Expected::Invalid;
        }
        let frozen = |user| self.frozen.contains(&(subject.tenant, user, subject.route));
        if frozen(None) || frozen(subject.user) {
            return Expected::Frozen;
        }
        let mut tier = Tier::Normal;
        let mut no = Vec::new();
        let least = reserve.request.amounts_least();
        let mut granted = amounts;
        for (place, amount) in self.asks(&subject, facts, &least) {
            let Some(balance) = self.balance_at(place) else { continue };
            if let Err(reason) = balance.judge(amount) {
                no.push((place, reason));
            }
            // What is between the least and the most is granted as far as every limit has it.
            let unit = facts.limits.iter().find(|limit| limit.id == self.lineages.at(place).limit);
            if let Some(unit) = unit.map(|limit| limit.unit)
                && let Some(most) = granted.get(unit).filter(|_| !balance.is_unlimited())
            {
                let available = u64::try_from(balance.available()).unwrap_or(u64::MAX);
                granted.set(unit, Some(most.min(available)));
            }
        }
        if !no.is_empty() {
            return Expected::Refused(no);
        }
        for (place, amount) in self.asks(&subject, facts, &granted) {
            if let Some(Ok(found)) = self.balance_at(place).map(|balance| balance.judge(amount)) {
                tier = tier.max(found);
            }
        }
        Expected::Admitted(tier, granted)
    }

    /// A reserve of a new id that was not admitted.
    fn judge_refusal(&mut self, reserve: &Reserve, answer: &Answer) {
        let expected = self.expect(reserve);
        let right = match (answer, &expected) {
            (Answer::Refused(Refusal::IdTooOld { .. }), Expected::TooOld)
            | (Answer::Refused(Refusal::IdInFuture { .. }), Expected::InFuture)
            | (Answer::Refused(Refusal::Invalid { .. }), Expected::Invalid) => true,
            (Answer::Refused(Refusal::Rejected(said)), Expected::Frozen) => said.reason == Reason::Frozen,
            (Answer::Refused(Refusal::Rejected(said)), Expected::Refused(no)) => {
                return self.judge_rejection(reserve, said, no);
            }
            _ => false,
        };
        if !right {
            let expected = match expected {
                Expected::Admitted(tier, granted) => {
                    format!("admission at {} with {granted:?}", tier.as_str())
                }
                Expected::TooOld => "too old".to_owned(),
                Expected::InFuture => "in the future".to_owned(),
                Expected::Invalid => "invalid".to_owned(),
                Expected::Frozen => "frozen".to_owned(),
                Expected::Refused(no) => self.describe(&no),
            };
            let id = reserve.id;
            self.find(Kind::WrongRefusal, || format!("{id}: {answer:?}, expected {expected}"));
        }
    }

    /// The limit that is named must be one that says no, for that reason; and the wait must be long enough.
    fn judge_rejection(&mut self, reserve: &Reserve, said: &Rejection, no: &[(Place, Reason)]) {
        let names = |(place, reason): &(Place, Reason)| {
            self.lineages.at(*place).limit == said.limit.as_str() && *reason == said.reason
        };
        if !no.iter().any(names) {
            let (id, no) = (reserve.id, self.describe(no));
            self.find(Kind::WrongRefusal, || format!("{id}: {said:?}, but {no}"));
            return;
        }
        if let Some(early) = self.too_early(reserve, said, no) {
            let id = reserve.id;
            self.find(Kind::WrongRefusal, || format!("{id}: {said:?}, but then {early} still says no"));
        }
    }

    /// A bucket or total that would still say no after the wait, if nothing else happened meanwhile.
    fn too_early(&self, reserve: &Reserve, said: &Rejection, no: &[(Place, Reason)]) -> Option<&'static str> {
        let wait_ms = said.retry_after_ms?;
        let (facts, amounts) = (self.plan.as_ref()?, reserve.request.amounts_least());
        no.iter().find_map(|(place, _)| {
            let row = self.lineages.at(*place);
            let mut balance = row.balance.clone()?;
            if matches!(balance.rule, Some(Rule::Slots { .. })) {
                return None;
            }
            let limit = facts.limits.iter().find(|limit| limit.id == row.limit)?;
            balance.advance(self.clock_ms.saturating_add(wait_ms));
            balance.judge(amounts.get(limit.unit)).err().map(|_| row.limit)
        })
    }

    fn describe(&self, no: &[(Place, Reason)]) -> String {
        let one = |(place, reason): &(Place, Reason)| {
            let row = self.lineages.at(*place);
            let (available, debt) =
                row.balance.as_ref().map_or((0, 0), |balance| (balance.available(), balance.debt));
            format!("{} says {} (available {available}, debt {debt})", row.limit, reason.as_str())
        };
        no.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
