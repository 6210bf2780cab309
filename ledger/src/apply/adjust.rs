//! Adjust: an operator's grant, charge, correction or boost, booked once.

use std::sync::Arc;

use crate::adjust::{Adjust, AdjustmentReceipt};
use crate::answer::{Answer, Refusal};
use crate::apply::invalid;
use crate::apply::reserve::no_plan;
use crate::book::lineage::Sink;
use crate::book::{Book, find_limit, fits, open_lineage};
use crate::event::EventKind;
use crate::limits::ADJUSTMENTS_KEPT_MAX;
use crate::mutants;
use crate::record::{Lane, Lineage};

impl Book {
    pub(super) fn apply_adjust(&mut self, adjust: &Adjust) -> Result<Answer, Refusal> {
        if let Some(known) = self.adjustments.get(&adjust.id).filter(|_| !mutants::on("adjusted-twice")) {
            return match known.receipt.command == *adjust {
                true => Ok(Answer::Adjusted(Arc::clone(&known.receipt))),
                false => Err(Refusal::AdjustmentConflict),
            };
        }
        self.check_fresh_time(adjust.id.time_ms(), self.header.clock_ms)?;
        if self.adjustments.len() >= ADJUSTMENTS_KEPT_MAX {
            return Err(Refusal::Overloaded { ceiling: "ADJUSTMENTS_KEPT_MAX" });
        }
        self.check_place(adjust)?;
        let (slot, mut lineage) = self.lineage_to_adjust(adjust)?;
        self.check_epoch(adjust, &lineage)?;
        let held_before = slot.map_or(0, |slot| self.held_before(slot, &lineage));
        let before = lineage.standing(held_before);
        let mut sink = Sink::default();
        let debt_before = lineage.debt;
        lineage.adjust(adjust.id, &adjust.what, held_before, self.header.clock_ms, &mut sink)?;
        lineage.note_debt(debt_before, self.header.generation);
        let receipt = Arc::new(AdjustmentReceipt {
            command: adjust.clone(),
            unit: lineage.unit,
            at_ms: self.header.clock_ms,
            revision: self.header.revision,
            generation: lineage.current.generation,
            epoch_start_ms: lineage.current.epoch_start_ms,
            before,
            after: lineage.standing(held_before),
        });
        self.push_event(EventKind::Adjusted(Arc::clone(&receipt)));
        self.keep_adjusted(slot, lineage, sink);
        self.remember_adjustment(Arc::clone(&receipt));
        Ok(Answer::Adjusted(receipt))
    }

    /// The limit must be one of the plan in force and be keyed by just the values that are given.
    fn check_place(&self, adjust: &Adjust) -> Result<(), Refusal> {
        let plan = &self.generations.plan().ok_or_else(no_plan)?.published.plan;
        let key = &adjust.lineage;
        let limit = find_limit(plan, &key.limit)
            .ok_or_else(|| invalid("limit", format!("{} is no limit of the plan in force", key.limit)))?;
        if key.lane != Lane::Enforced || !fits(limit, key) {
            let problem =
                format!("limit {} is keyed by {}, which is not what is given", limit.id, limit.scope);
            return Err(invalid("limit", problem));
        }
        Ok(())
    }

    /// The lineage as it is now, with its slot if the book has it. A refused adjustment leaves no trace, so
    /// it works on a copy.
    fn lineage_to_adjust(&mut self, adjust: &Adjust) -> Result<(Option<u32>, Lineage), Refusal> {
        if let Some(slot) = self.derived.find_lineage(&self.lineages, &adjust.lineage) {
            self.touch(slot)?;
            return Ok((Some(slot), self.lineages.get(slot).clone()));
        }
        self.check_accounts()?;
        let (now_ms, generation) = (self.header.clock_ms, self.header.generation);
        let plan = &self.generations.plan().ok_or_else(no_plan)?.published.plan;
        let unit = find_limit(plan, &adjust.lineage.limit).ok_or_else(no_plan)?.unit;
        let key = &adjust.lineage;
        let opened = open_lineage(key, unit, now_ms, generation, &self.generations, &self.calendars)?;
        let lineage = opened.ok_or_else(|| invalid("limit", "does not exist yet"))?;
        Ok((None, lineage))
    }

    /// Only the running epoch is open: what closed has its statement, and stays as it is.
    fn check_epoch(&self, adjust: &Adjust, lineage: &Lineage) -> Result<(), Refusal> {
        let running_start_ms = lineage.current.epoch_start_ms;
        match adjust.epoch_start_ms {
            Some(meant) if Some(meant) != running_start_ms => Err(Refusal::EpochClosed { running_start_ms }),
            _ => Ok(()),
        }
    }

    fn keep_adjusted(&mut self, slot: Option<u32>, lineage: Lineage, sink: Sink) {
        let slot = match slot {
            Some(slot) => {
                *self.lineages.get_mut(slot) = lineage;
                slot
            }
            None => {
                let slot = self.lineages.insert(lineage);
                self.derived.add_lineage(&self.lineages, slot);
                self.note_opened(slot);
                slot
            }
        };
        self.derived.sink = sink;
        self.put_away(slot);
        self.schedule_drop(slot);
    }
}
