//! The lives of reservations: what each command may do in each state.

use holdfast_ledger::answer::{Answer, Receipt, Refusal, State};
use holdfast_ledger::command::{Correct, Release, Renew, ReportUnknown, ResolveUnknown, Settle, Start};
use holdfast_ledger::plan::Level;
use holdfast_ledger::{Amounts, ReservationId, Unit};

use super::{AHEAD_MS, Estimate, Known, Life, Tally, is_settled, receipt, refusal};
use crate::interleave::facts::Route;
use crate::interleave::found::Kind;

impl Life {
    fn terms(&self) -> Option<&Route> {
        self.facts.routes.iter().find(|route| route.name == self.route)
    }

    /// The state at a time.
    pub(super) fn state_at(&self, at_ms: u64) -> State {
        match self.state {
            State::Reserved if at_ms >= self.expires_at_ms + self.facts.grace_ms => State::Expired,
            State::Reserved if at_ms >= self.expires_at_ms => State::Expiring,
            State::Started if at_ms >= self.expires_at_ms => State::UsageUnknown,
            state => state,
        }
    }
}

impl Tally {
    /// What is over by the clock, at an entry's begin.
    pub(super) fn expire(&mut self) {
        let clock_ms = self.clock_ms;
        let over = |known: &Known| {
            let life = known.life.as_ref()?;
            let state = life.state_at(clock_ms);
            (state != life.state && state != State::Expiring).then_some((life.expires_at_ms, state))
        };
        let mut due: Vec<_> = self
            .known
            .iter()
            .filter_map(|(id, known)| over(known).map(|(at, state)| (at, *id, state)))
            .collect();
        due.sort_unstable();
        for (_, id, state) in due {
            match state {
                State::UsageUnknown => self.set_state(id, state),
                _ => {
                    self.end(id, State::Expired, Amounts::NONE, 0);
                }
            }
        }
    }

    fn set_state(&mut self, id: ReservationId, state: State) {
        if let Some(life) = self.life_mut(id) {
            life.state = state;
        }
    }

    fn life(&self, id: ReservationId) -> Option<&Life> {
        self.known.get(&id)?.life.as_ref()
    }

    fn life_mut(&mut self, id: ReservationId) -> Option<&mut Life> {
        self.known.get_mut(&id)?.life.as_mut()
    }

    /// Ends a reservation and its holds: of each unit what `actual` says is spent. True: debt remains.
    fn end(&mut self, id: ReservationId, state: State, actual: Amounts, revision: u64) -> bool {
        let clock_ms = self.clock_ms;
        let Some(known) = self.known.get_mut(&id) else { return false };
        known.ended_at_ms = Some(clock_ms);
        let Some(life) = known.life.as_mut() else { return false };
        (life.state, life.actual, life.ended_revision) = (state, actual, Some(revision));
        life.spent = actual;
        let mut in_debt = false;
        for leg in &life.legs {
            let unit = unit_of(&life.facts, self.lineages.at(leg.place).limit);
            let spent = if unit == Unit::Slots { 0 } else { actual.get(unit).unwrap_or(0) };
            if let Some(balance) = self.lineages.balance(leg.place) {
                balance.end(leg.stretch, leg.amount, spent);
                in_debt |= balance.debt > 0;
            }
        }
        in_debt
    }

    /// Whether the book may have forgotten an id: it ended, and a new reserve of it would be too old.
    fn may_be_forgotten(&self, id: ReservationId) -> bool {
        self.known.get(&id).is_some_and(|known| known.ended_at_ms.is_some()) && id.time_ms() < self.floor_ms
    }

    /// Common to every command on a known reservation: what must be answered if the id has no open life here.
    /// True: the answer was judged.
    fn judge_absent(&mut self, id: ReservationId, word: &str, answer: &Answer) -> bool {
        let said = refusal(answer);
        if said == Some(&Refusal::NotFound) {
            if self.known.contains_key(&id) && !self.may_be_forgotten(id) {
                self.find(Kind::Lifecycle, || format!("{word} {id}: not found, but it is known"));
            }
            return true;
        }
        let tombstone = Refusal::WrongState { state: State::Released };
        match self.known.get(&id) {
            Some(known) if known.life.is_some() => false,
            Some(_) if said == Some(&tombstone) => true,
            _ => {
                self.find(Kind::Lifecycle, || format!("{word} {id}, which was never admitted: {answer:?}"));
                true
            }
        }
    }

    fn unexpected(&mut self, kind: Kind, word: &str, id: ReservationId, answer: &Answer, expected: &str) {
        self.find(kind, || format!("{word} {id}: {expected} was expected, answered {answer:?}"));
    }

    pub(super) fn on_start(&mut self, start: &Start, answer: &Answer) {
        let id = start.id;
        if self.judge_absent(id, "start", answer) {
            return;
        }
        let clock_ms = self.clock_ms;
        let Some(life) = self.life_mut(id) else { return };
        let state = life.state_at(clock_ms);
        match &life.operation {
            Some(bound) if bound == start.operation.as_str() => {
                self.expect_receipt("start", id, answer, state)
            }
            Some(_) => self.expect_conflict("start", id, answer),
            None if state == State::Reserved => {
                life.operation = Some(start.operation.as_str().to_owned());
                life.state = State::Started;
                let deadline_ms = life.terms().map_or(0, |terms| terms.usage_deadline_ms);
                life.expires_at_ms = clock_ms + deadline_ms;
                self.expect_receipt("start", id, answer, State::Started);
            }
            None => self.expect_wrong_state("start", id, answer, state),
        }
    }

    pub(super) fn on_settle(&mut self, settle: &Settle, answer: &Answer, revision: u64) {
        let id = settle.id;
        if self.judge_absent(id, "settle", answer) {
            return;
        }
        let clock_ms = self.clock_ms;
        let Some(life) = self.life(id) else { return };
        let state = life.state_at(clock_ms);
        match &life.operation {
            None => return self.expect_wrong_state("settle", id, answer, state),
            Some(bound) if bound != settle.operation.as_str() => {
                return self.expect_conflict("settle", id, answer);
            }
            Some(_) => {}
        }
        if is_foreign(&life.amounts, &settle.actual) {
            return self.expect_invalid("settle", id, answer);
        }
        let actual = booked(&life.amounts, &settle.actual, settle.estimated);
        if is_settled(state) {
            let same = life.actual == actual && (life.estimate != Estimate::No) == settle.estimated;
            let ended_revision = life.ended_revision;
            match (same, receipt(answer)) {
                (true, Some(receipt)) if receipt.ended_revision == ended_revision => {}
                (false, None) if matches!(refusal(answer), Some(Refusal::Conflict { .. })) => {}
                _ => self.unexpected(Kind::DoubleSettle, "settle", id, answer, "the first settlement"),
            }
            return;
        }
        if settle.estimated && state == State::UsageUnknown {
            return self.expect_wrong_state("settle", id, answer, state);
        }
        if let (true, Some(life)) = (settle.estimated, self.life_mut(id)) {
            life.estimate = Estimate::Open;
        }
        self.settle_known(id, actual, answer, revision);
    }

    fn settle_known(&mut self, id: ReservationId, actual: Amounts, answer: &Answer, revision: u64) {
        let in_debt = self.end(id, State::Settled, actual, revision);
        self.settled(id, in_debt, answer);
        if receipt(answer).is_some_and(|receipt| receipt.actual != Some(actual)) {
            self.unexpected(Kind::DoubleSettle, "settle", id, answer, "what was said to be used");
        }
        self.freeze_at_breach(id, &actual, None);
    }

    fn settled(&mut self, id: ReservationId, in_debt: bool, answer: &Answer) {
        let ended = if in_debt { State::SettledWithDebt } else { State::Settled };
        self.set_state(id, ended);
        self.expect_receipt("settle", id, answer, ended);
    }

    pub(super) fn on_correct(&mut self, correct: &Correct, answer: &Answer) {
        let id = correct.id;
        if self.judge_absent(id, "correct", answer) {
            return;
        }
        let Some(life) = self.life(id) else { return };
        let state = life.state_at(self.clock_ms);
        match &life.operation {
            Some(bound) if bound != correct.operation.as_str() => {
                return self.expect_conflict("correct", id, answer);
            }
            Some(_) if is_settled(state) => {}
            _ => return self.expect_wrong_state("correct", id, answer, state),
        }
        if is_foreign(&life.amounts, &correct.actual) {
            return self.expect_invalid("correct", id, answer);
        }
        let before = life.actual;
        let mut actual = before;
        for (unit, amount) in before.iter().filter(|(unit, _)| *unit != Unit::Slots) {
            actual.set(unit, Some(correct.actual.get(unit).unwrap_or(amount)));
        }
        let known = match life.estimate {
            Estimate::Open => return self.correct_estimate(id, before, actual, answer),
            Estimate::Corrected(known) => known,
            Estimate::No => before,
        };
        match known == actual {
            true => self.expect_receipt("correct", id, answer, state),
            false => self.expect_conflict("correct", id, answer),
        }
    }

    fn correct_estimate(&mut self, id: ReservationId, before: Amounts, actual: Amounts, answer: &Answer) {
        let Some(life) = self.known.get_mut(&id).and_then(|known| known.life.as_mut()) else { return };
        life.estimate = Estimate::Corrected(actual);
        for (unit, amount) in actual.iter() {
            life.spent.set(unit, life.spent.get(unit).max(Some(amount)));
        }
        let mut in_debt = false;
        for leg in &life.legs {
            let unit = unit_of(&life.facts, self.lineages.at(leg.place).limit);
            let Some(balance) = self.lineages.balance(leg.place) else { continue };
            if unit != Unit::Slots {
                balance.correct(leg.stretch, before.get(unit).unwrap_or(0), actual.get(unit).unwrap_or(0));
            }
            in_debt |= balance.debt > 0;
        }
        self.settled(id, in_debt, answer);
        self.freeze_at_breach(id, &actual, Some(&before));
    }

    pub(super) fn on_resolve(&mut self, resolve: &ResolveUnknown, answer: &Answer, revision: u64) {
        let id = resolve.id;
        if self.judge_absent(id, "resolve", answer) {
            return;
        }
        let Some(life) = self.life(id) else { return };
        let state = life.state_at(self.clock_ms);
        if life.operation.is_none() {
            return self.expect_wrong_state("resolve", id, answer, state);
        }
        let silent = life.amounts.get(Unit::Tokens).is_some() && resolve.actual.get(Unit::Tokens).is_none();
        if silent || is_foreign(&life.amounts, &resolve.actual) {
            return self.expect_invalid("resolve", id, answer);
        }
        let actual = booked(&life.amounts, &resolve.actual, false);
        match state {
            State::UsageUnknown => self.settle_known(id, actual, answer, revision),
            _ if is_settled(state) && life.actual == actual => {
                self.expect_receipt("resolve", id, answer, state)
            }
            _ if is_settled(state) => self.expect_conflict("resolve", id, answer),
            _ => self.expect_wrong_state("resolve", id, answer, state),
        }
    }

    fn expect_invalid(&mut self, word: &str, id: ReservationId, answer: &Answer) {
        if !matches!(refusal(answer), Some(Refusal::Invalid { .. })) {
            self.unexpected(Kind::Lifecycle, word, id, answer, "what makes no sense to be invalid");
        }
    }

    pub(super) fn on_release(&mut self, release: &Release, answer: &Answer, revision: u64) {
        let id = release.id;
        let known = self.known.get(&id);
        let closed = known.is_none_or(|known| known.life.is_none());
        if closed || (self.may_be_forgotten(id) && receipt(answer).is_none()) {
            return self.on_close(id, answer);
        }
        let Some(life) = self.life(id) else { return };
        match life.state_at(self.clock_ms) {
            State::Reserved | State::Expiring => {
                self.end(id, State::Released, Amounts::NONE, revision);
                self.expect_receipt("release", id, answer, State::Released);
            }
            State::Released => self.expect_receipt("release", id, answer, State::Released),
            state => self.expect_wrong_state("release", id, answer, state),
        }
    }

    /// A release of an id that holds nothing and may be unknown.
    fn on_close(&mut self, id: ReservationId, answer: &Answer) {
        let (too_old, ahead) = (id.time_ms() < self.floor_ms, id.time_ms() > self.clock_ms + AHEAD_MS);
        match answer {
            Answer::Tombstone { .. } if self.known.contains_key(&id) => {}
            Answer::Tombstone { .. } if !too_old && !ahead => {
                self.known.insert(id, Known { life: None, ended_at_ms: Some(self.clock_ms) });
            }
            Answer::Refused(Refusal::IdTooOld { .. }) if too_old => {}
            Answer::Refused(Refusal::IdInFuture { .. }) if ahead => {}
            Answer::Refused(Refusal::WrongState { state }) if self.state(id) == Some(*state) => {}
            _ => self.unexpected(Kind::Lifecycle, "release", id, answer, "a tombstone"),
        }
    }

    pub(super) fn on_renew(&mut self, renew: &Renew, answer: &Answer) {
        let id = renew.id;
        if self.judge_absent(id, "renew", answer) {
            return;
        }
        let clock_ms = self.clock_ms;
        let Some(life) = self.life_mut(id) else { return };
        match life.state_at(clock_ms) {
            state @ (State::Reserved | State::Started) => {
                life.expires_at_ms = life.expires_at_ms.max(clock_ms + renew.extend_ms);
                let until_ms = life.expires_at_ms;
                self.expect_receipt("renew", id, answer, state);
                if receipt(answer).is_some_and(|receipt| receipt.expires_at_ms != until_ms) {
                    self.unexpected(Kind::Lifecycle, "renew", id, answer, "a later end");
                }
            }
            state => self.expect_wrong_state("renew", id, answer, state),
        }
    }

    pub(super) fn on_report_unknown(&mut self, report: &ReportUnknown, answer: &Answer) {
        let id = report.id;
        if self.judge_absent(id, "report unknown", answer) {
            return;
        }
        let Some(life) = self.life(id) else { return };
        let state = life.state_at(self.clock_ms);
        match &life.operation {
            Some(bound) if bound != report.operation.as_str() => {
                self.expect_conflict("report unknown", id, answer);
            }
            Some(_) if matches!(state, State::Started | State::UsageUnknown) => {
                self.set_state(id, State::UsageUnknown);
                self.expect_receipt("report unknown", id, answer, State::UsageUnknown);
            }
            _ => self.expect_wrong_state("report unknown", id, answer, state),
        }
    }

    fn expect_receipt(&mut self, word: &str, id: ReservationId, answer: &Answer, state: State) {
        let fits = |receipt: &Receipt| {
            self.life(id).is_some_and(|life| {
                receipt.id == id
                    && receipt.state == state
                    && receipt.reserved_revision == life.revision
                    && receipt.request_digest == life.digest
                    && receipt.reserved == life.amounts
                    && receipt.operation.as_ref().map(|bound| bound.as_str()) == life.operation.as_deref()
            })
        };
        if !receipt(answer).is_some_and(fits) {
            let expected = format!("a receipt in {}", state.as_str());
            self.unexpected(Kind::Lifecycle, word, id, answer, &expected);
        }
    }

    fn expect_conflict(&mut self, word: &str, id: ReservationId, answer: &Answer) {
        if !matches!(refusal(answer), Some(Refusal::Conflict { .. })) {
            self.unexpected(Kind::Lifecycle, word, id, answer, "a conflict");
        }
    }

    fn expect_wrong_state(&mut self, word: &str, id: ReservationId, answer: &Answer, state: State) {
        if refusal(answer) != Some(&Refusal::WrongState { state }) {
            let expected = format!("wrong state {}", state.as_str());
            self.unexpected(Kind::Lifecycle, word, id, answer, &expected);
        }
    }

    /// Freezes the narrowest level of a reservation that used more than its route or limits allow.
    /// `before`: what was booked until then, where it was not what was held.
    fn freeze_at_breach(&mut self, id: ReservationId, actual: &Amounts, before: Option<&Amounts>) {
        let Some(life) = self.life(id) else { return };
        let Some(terms) = life.terms() else { return };
        let tokens = actual.get(Unit::Tokens).unwrap_or(0);
        let grew = before.is_none_or(|before| tokens > before.get(Unit::Tokens).unwrap_or(0));
        let past_cap = grew && terms.execution_tokens_max.is_some_and(|most| tokens > most);
        let plan = self.plan.as_ref();
        let past_debt = life.legs.iter().any(|leg| {
            let row = self.lineages.at(leg.place);
            let limit = plan.and_then(|plan| plan.limits.iter().find(|limit| limit.id == row.limit));
            let unit = unit_of(&life.facts, row.limit);
            let of_route = terms.debt_tokens_max.filter(|_| unit == Unit::Tokens);
            let most = limit.and_then(|limit| limit.overdraft_max).or(of_route);
            let known = before.map_or(leg.amount, |before| before.get(unit).unwrap_or(0));
            let overran = actual.get(unit).is_some_and(|actual| actual > known);
            let debt = row.balance.as_ref().map_or(0, |balance| balance.debt);
            overran && most.is_some_and(|most| debt > i128::from(most))
        });
        if !(past_cap || past_debt) {
            return;
        }
        let level = |place| match self.lineages.at(place) {
            row if row.user.is_some() => Level::User,
            row if row.tenant.is_some() => Level::Tenant,
            _ => Level::Global,
        };
        let narrowest = life.legs.iter().map(|leg| level(leg.place)).max();
        let key = (life.tenant, life.user.filter(|_| narrowest == Some(Level::User)), life.route);
        if narrowest > Some(Level::Global) && !self.frozen.contains(&key) {
            self.frozen.push(key);
        }
    }
}

/// The unit that a limit had when a reservation was admitted.
fn unit_of(facts: &crate::interleave::facts::Plan, limit: &str) -> Unit {
    facts.limits.iter().find(|known| known.id == limit).map_or(Unit::Requests, |known| known.unit)
}

/// Whether something is said of a unit that is not held.
fn is_foreign(held: &Amounts, said: &Amounts) -> bool {
    said.iter().any(|(unit, amount)| amount > 0 && held.get(unit).is_none())
}

/// What a settlement books of what it says.
fn booked(held: &Amounts, said: &Amounts, estimated: bool) -> Amounts {
    let mut actual = Amounts::NONE;
    for (unit, held) in held.iter() {
        let amount = match unit {
            Unit::Slots => 0,
            Unit::Requests => said.get(unit).unwrap_or(held),
            _ if estimated => said.get(unit).unwrap_or(held),
            Unit::Tokens | Unit::Micros => said.get(unit).unwrap_or(0),
        };
        actual.set(unit, Some(amount));
    }
    actual
}
