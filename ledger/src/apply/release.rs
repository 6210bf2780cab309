//! Release: end a reservation that was not started, or leave a tombstone for an id never seen.

use crate::answer::{Answer, Refusal, State};
use crate::book::{Book, Found};
use crate::command::Release;
use crate::ids::ReservationId;
use crate::limits::RESERVATIONS_KEPT_MAX;
use crate::record::Tombstone;
use crate::unit::Amounts;

impl Book {
    pub(super) fn apply_release(&mut self, release: &Release) -> Result<Answer, Refusal> {
        let slot = match self.find(release.id) {
            Some(Found::Reservation(slot)) => slot,
            Some(Found::Tombstone(_)) => return Ok(Answer::Tombstone { id: release.id }),
            None => return self.leave_tombstone(release.id),
        };
        match self.state(slot) {
            State::Reserved | State::Expiring => {
                let legs = self.touch_legs(slot)?;
                self.end_legs(release.id, &legs, &Amounts::NONE);
                let receipt = self.end(slot, State::Released, Amounts::NONE, Amounts::NONE);
                Ok(Answer::Reservation(receipt))
            }
            State::Released => Ok(self.answer_with(slot)),
            state => Err(Refusal::WrongState { state }),
        }
    }

    /// A reserve that is still under way somewhere finds RELEASED when it lands.
    fn leave_tombstone(&mut self, id: ReservationId) -> Result<Answer, Refusal> {
        self.check_fresh(id)?;
        if self.reservations.len() + self.tombstones.len() >= RESERVATIONS_KEPT_MAX {
            return Err(Refusal::Overloaded { ceiling: "RESERVATIONS_KEPT_MAX" });
        }
        let forget_at_ms = self.forget_at_ms(id);
        let slot = self.tombstones.insert(Tombstone { id, at_ms: self.header.clock_ms, forget_at_ms });
        self.derived.add_id(id, Found::Tombstone(slot));
        self.derived.tombstone_timers.schedule(forget_at_ms, slot);
        Ok(Answer::Tombstone { id })
    }
}
