//! Start: RESERVED → STARTED, binding an operation id.

use crate::answer::{Answer, Refusal, State};
use crate::book::Book;
use crate::command::Start;
use crate::mutants;

impl Book {
    pub(super) fn apply_start(&mut self, start: &Start) -> Result<Answer, Refusal> {
        let slot = self.known(start.id)?;
        let state = self.state(slot);
        let row = self.reservations.get(slot);
        if let Some(bound) = &row.operation {
            return match *bound == start.operation || mutants::on("start-binds-anybody") {
                true => Ok(self.answer_with(slot)),
                false => Err(Refusal::Conflict { state }),
            };
        }
        let may_start =
            state == State::Reserved || (state == State::Expiring && mutants::on("start-after-the-hold"));
        if !may_start {
            return Err(Refusal::WrongState { state });
        }
        let now_ms = self.header.clock_ms;
        let deadline_ms = self.route_of(slot).map_or(0, |route| route.usage_deadline_ms);
        let row = self.reservations.get_mut(slot);
        row.operation = Some(start.operation.clone());
        row.started_at_ms = now_ms;
        row.expires_at_ms = now_ms.saturating_add(deadline_ms);
        row.state = State::Started;
        self.derived.tally.leave(State::Reserved);
        self.derived.tally.enter(State::Started);
        self.schedule_reservation(slot);
        Ok(self.answer_with(slot))
    }
}
