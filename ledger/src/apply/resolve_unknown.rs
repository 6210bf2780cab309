//! Resolve unknown: an operator says what an operation used that nobody else knows of.

use crate::answer::{Answer, Refusal, State};
use crate::apply::invalid;
use crate::apply::settle::{actual_amounts, settled_with};
use crate::book::{Book, Kept};
use crate::command::ResolveUnknown;
use crate::event::EventKind;
use crate::mutants;
use crate::unit::{Amounts, Unit};

impl Book {
    pub(super) fn apply_resolve_unknown(&mut self, resolve: &ResolveUnknown) -> Result<Answer, Refusal> {
        let slot = self.known(resolve.id)?;
        let state = self.state(slot);
        let row = self.reservations.get(slot);
        if row.operation.is_none() {
            return Err(Refusal::WrongState { state });
        }
        check_named(row, &resolve.actual)?;
        let actual = actual_amounts(row, &resolve.actual, false)?;
        if let Some(ended) = &row.ended {
            // The executor's receipt may have come first: if both say the same, all is well.
            return match ended.actual == actual {
                true => Ok(self.answer_with(slot)),
                false => Err(Refusal::Conflict { state }),
            };
        }
        if state != State::UsageUnknown && !mutants::on("resolve-what-runs") {
            return Err(Refusal::WrongState { state });
        }
        let event = EventKind::UnknownResolved {
            reservation: row.id,
            tenant: row.hold.subject.tenant.clone(),
            user: row.hold.subject.user.clone(),
            route: row.hold.subject.route.clone(),
            actor: resolve.actor.clone(),
            reason: resolve.reason.clone(),
        };
        let legs = self.touch_legs(slot)?;
        self.push_event(event);
        let debts = self.end_legs(resolve.id, &legs, &actual);
        self.extras_mut(slot).resolved_by = Some(resolve.actor.clone());
        let receipt = self.end(slot, settled_with(&debts), actual, debts);
        self.freeze_at_breach(slot, &actual, None);
        Ok(Answer::Reservation(receipt))
    }
}

/// Unknown is never taken for unused: an operator names every unit, be it with 0.
fn check_named(row: &Kept, said: &Amounts) -> Result<(), Refusal> {
    let held = row.reserved.iter().map(|(unit, _)| unit);
    let mut silent =
        held.filter(|unit| said.get(*unit).is_none() && !matches!(unit, Unit::Requests | Unit::Slots));
    match silent.next() {
        Some(unit) => {
            Err(invalid("actual", format!("{unit} was held and is not named; say 0 if none was used")))
        }
        None => Ok(()),
    }
}
