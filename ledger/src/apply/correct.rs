//! Correct: put the usage of an estimated settlement right, once, by the operation's receipt.

use crate::answer::{Answer, Correction, Estimate, Refusal};
use crate::apply::settle::{check_reserved, settled_with};
use crate::book::{Book, Kept};
use crate::command::Correct;
use crate::mutants;
use crate::unit::{Amounts, Unit};

impl Book {
    pub(super) fn apply_correct(&mut self, correct: &Correct) -> Result<Answer, Refusal> {
        let slot = self.known(correct.id)?;
        self.check_operation(slot, &correct.operation)?;
        let state = self.state(slot);
        let row = self.reservations.get(slot);
        let Some(ended) = &row.ended else { return Err(Refusal::WrongState { state }) };
        let before = ended.actual;
        let actual = corrected_amounts(row, &before, &correct.actual)?;
        let known = match row.estimate() {
            Some(Estimate { correction: None }) => None,
            Some(_) if mutants::on("corrected-twice") => None,
            Some(Estimate { correction: Some(correction) }) => Some(correction.actual),
            // It was exact: there is nothing to correct, and nothing that might be.
            None => Some(before),
        };
        match known {
            Some(known) if known == actual => return Ok(self.answer_with(slot)),
            Some(_) => return Err(Refusal::Conflict { state }),
            None => {}
        }
        let legs = self.touch_legs(slot)?;
        let debt = self.correct_legs(correct.id, &legs, &before, &actual);
        let (at_ms, revision) = (self.header.clock_ms, self.header.revision);
        let correction = Some(Correction { at_ms, revision, actual, debt });
        self.extras_mut(slot).estimate = Some(Estimate { correction });
        let receipt = self.end_again(slot, settled_with(&debt));
        self.freeze_at_breach(slot, &actual, Some(&before));
        Ok(Answer::Reservation(receipt))
    }
}

/// What a correction books in the end, per unit that was reserved: as said, else as it was estimated; slots never.
fn corrected_amounts(row: &Kept, before: &Amounts, said: &Amounts) -> Result<Amounts, Refusal> {
    check_reserved(row, said)?;
    let mut actual = *before;
    for (unit, _) in before.iter().filter(|(unit, _)| *unit != Unit::Slots) {
        if let Some(amount) = said.get(unit) {
            actual.set(unit, Some(amount));
        }
    }
    Ok(actual)
}
