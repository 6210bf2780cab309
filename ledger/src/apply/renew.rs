//! Renew: extend the hold TTL of a RESERVED one or the usage deadline of a STARTED one.

use crate::answer::{Answer, Refusal, State};
use crate::apply::invalid;
use crate::book::Book;
use crate::command::Renew;
use crate::mutants;

impl Book {
    pub(super) fn apply_renew(&mut self, renew: &Renew) -> Result<Answer, Refusal> {
        let slot = self.known(renew.id)?;
        if renew.extend_ms == 0 {
            return Err(invalid("extend_ms", "must be at least 1"));
        }
        let state = self.state(slot);
        let route = self.route_of(slot);
        let most_ms = match state {
            State::Reserved => route.map(|route| route.hold_ttl_ms_max),
            State::Started => route.map(|route| route.usage_deadline_ms_max),
            state => return Err(Refusal::WrongState { state }),
        };
        if let Some(most_ms) = most_ms.filter(|most_ms| renew.extend_ms > *most_ms) {
            return Err(invalid("extend_ms", format!("is over the route's maximum of {most_ms} ms")));
        }
        let until_ms = self.header.clock_ms.saturating_add(renew.extend_ms);
        if until_ms > self.reservations.get(slot).expires_at_ms || mutants::on("renew-shortens") {
            self.reservations.get_mut(slot).expires_at_ms = until_ms;
            self.schedule_reservation(slot);
        }
        Ok(self.answer_with(slot))
    }
}
