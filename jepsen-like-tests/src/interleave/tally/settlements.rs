//! How reservations are settled: exactly, by estimate and correction, or by an operator's word; and what a
//! breach freezes.

use holdfast_ledger::answer::{Answer, Refusal, State};
use holdfast_ledger::command::{Correct, ResolveUnknown, Settle};
use holdfast_ledger::plan::Level;
use holdfast_ledger::{Amounts, ReservationId, Unit};

use super::lives::unit_of;
use super::{Estimate, Tally, is_settled, receipt, refusal};
use crate::interleave::found::Kind;

impl Tally {
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
