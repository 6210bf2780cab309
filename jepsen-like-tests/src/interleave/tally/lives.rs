//! The lives of reservations: what each command may do in each state.

use holdfast_ledger::answer::{Answer, Receipt, Refusal, State};
use holdfast_ledger::command::{Release, Renew, ReportUnknown, Start};
use holdfast_ledger::{Amounts, ReservationId, Unit};

use super::{AHEAD_MS, Known, Life, Tally, receipt, refusal};
use crate::interleave::facts::Route;
use crate::interleave::found::Kind;

impl Life {
    pub(super) fn terms(&self) -> Option<&Route> {
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

    pub(super) fn set_state(&mut self, id: ReservationId, state: State) {
        if let Some(life) = self.life_mut(id) {
            life.state = state;
        }
    }

    pub(super) fn life(&self, id: ReservationId) -> Option<&Life> {
        self.known.get(&id)?.life.as_ref()
    }

    pub(super) fn life_mut(&mut self, id: ReservationId) -> Option<&mut Life> {
        self.known.get_mut(&id)?.life.as_mut()
    }

    /// Ends a reservation and its holds: of each unit what `actual` says is spent. True: debt remains.
    pub(super) fn end(&mut self, id: ReservationId, state: State, actual: Amounts, revision: u64) -> bool {
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
    pub(super) fn judge_absent(&mut self, id: ReservationId, word: &str, answer: &Answer) -> bool {
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

    pub(super) fn unexpected(
        &mut self,
        kind: Kind,
        word: &str,
        id: ReservationId,
        answer: &Answer,
        expected: &str,
    ) {
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

    pub(super) fn expect_receipt(&mut self, word: &str, id: ReservationId, answer: &Answer, state: State) {
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

    pub(super) fn expect_conflict(&mut self, word: &str, id: ReservationId, answer: &Answer) {
        if !matches!(refusal(answer), Some(Refusal::Conflict { .. })) {
            self.unexpected(Kind::Lifecycle, word, id, answer, "a conflict");
        }
    }

    pub(super) fn expect_wrong_state(
        &mut self,
        word: &str,
        id: ReservationId,
        answer: &Answer,
        state: State,
    ) {
        if refusal(answer) != Some(&Refusal::WrongState { state }) {
            let expected = format!("wrong state {}", state.as_str());
            self.unexpected(Kind::Lifecycle, word, id, answer, &expected);
        }
    }
}

/// The unit that a limit had when a reservation was admitted.
pub(super) fn unit_of(facts: &crate::interleave::facts::Plan, limit: &str) -> Unit {
    facts.limits.iter().find(|known| known.id == limit).map_or(Unit::Requests, |known| known.unit)
}
