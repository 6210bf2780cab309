//! Touching lineages for a command, and putting away what a touch leaves.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::book::calendars::Uncovered;
use crate::book::derived::Found;
use crate::book::lineage::Sink;
use crate::book::{Book, Counted};
use crate::event::Effect;
use crate::ids::{IdempotencyKey, ReservationId, TenantId};
use crate::mutants;
use crate::record::{ClosedAccount, Leg, Lineage};
use crate::unit::{Amounts, Unit};

impl Book {
    /// Brings a lineage to the book's clock. On an error it is as it was.
    pub(crate) fn touch(&mut self, slot: u32) -> Result<(), Uncovered> {
        self.note_lineage(slot);
        let (now_ms, generation) = (self.header.clock_ms, self.header.generation);
        let row = self.lineages.get(slot);
        if !row.is_behind(now_ms, generation) {
            return Ok(());
        }
        let sink = &mut self.derived.sink;
        if row.replays_simply(now_ms, generation) {
            let row = self.lineages.get_mut(slot);
            row.replay(now_ms, generation, &self.generations, &self.calendars, sink)?;
        } else {
            let mut copy = row.clone();
            let mut fresh = Sink::default();
            copy.replay(now_ms, generation, &self.generations, &self.calendars, &mut fresh)?;
            *self.lineages.get_mut(slot) = copy;
            *sink = fresh;
        }
        self.put_away(slot);
        Ok(())
    }

    /// Puts away what a change of a lineage left in the sink.
    pub(crate) fn put_away(&mut self, lineage: u32) {
        if !self.derived.sink.closed.is_empty() {
            for account in std::mem::take(&mut self.derived.sink.closed) {
                let slot = self.closed.insert(ClosedAccount { lineage, account });
                self.derived.add_closed(&self.closed, slot);
                self.count_account(lineage, Counted::In);
            }
        }
        if !self.derived.sink.statements.is_empty() {
            let statements = std::mem::take(&mut self.derived.sink.statements);
            for statement in statements.into_iter().map(Arc::new) {
                self.derived.effects.push(Effect::Statement(Arc::clone(&statement)));
                self.keep_statement(statement);
            }
        }
        if !self.derived.sink.events.is_empty() {
            for kind in std::mem::take(&mut self.derived.sink.events) {
                self.push_event(kind);
            }
        }
    }

    /// What open reservations of the running epoch hold on earlier accounts of a lineage.
    pub(crate) fn held_before(&self, slot: u32, lineage: &Lineage) -> u128 {
        if lineage.legs == lineage.current.legs {
            return 0;
        }
        (lineage.epoch_first..lineage.current.number)
            .filter_map(|number| self.derived.closed_slot(&self.closed, slot, number))
            .map(|closed| self.closed.get(closed).account.columns.reserved)
            .sum()
    }

    pub(crate) fn find(&self, id: ReservationId) -> Option<Found> {
        self.derived.find_id(&self.reservations, &self.tombstones, id)
    }

    /// The reservation that a tenant made with an idempotency key.
    pub(crate) fn find_key(&self, tenant: &TenantId, key: &IdempotencyKey) -> Option<u32> {
        self.derived.keys.find(&self.reservations, tenant, key)
    }

    /// Touches every lineage that a reservation is held on, and gives its legs. On an error the command must be refused.
    pub(crate) fn touch_legs(&mut self, slot: u32) -> Result<SmallVec<[Leg; 8]>, Uncovered> {
        let legs = SmallVec::<[Leg; 8]>::from_slice(self.reservations.get(slot).legs());
        legs.iter().try_for_each(|leg| self.touch(leg.lineage))?;
        Ok(legs)
    }

    /// Ends the legs of a reservation whose lineages were touched: of each unit what `actual` says is spent.
    /// Gives the debt that remains per unit, the largest of each.
    pub(crate) fn end_legs(&mut self, id: ReservationId, legs: &[Leg], actual: &Amounts) -> Amounts {
        let mut debts = Amounts::NONE;
        for leg in legs {
            let debt = self.end_leg(leg, actual, id);
            if debt > 0 {
                raise(&mut debts, self.lineages.get(leg.lineage).unit, debt);
            }
        }
        debts
    }

    fn end_leg(&mut self, leg: &Leg, actual: &Amounts, id: ReservationId) -> u128 {
        let row = self.lineages.get_mut(leg.lineage);
        let (unit, debt_before) = (row.unit, row.debt);
        // Slots are held while the operation runs and never spent.
        let spent = if unit == Unit::Slots && mutants::on("slots-are-spent") {
            leg.amount
        } else if unit == Unit::Slots {
            0
        } else {
            actual.get(unit).unwrap_or(0)
        };
        self.derived.tally.held_by_legs[unit as usize] -= u128::from(leg.amount);
        let debt = if row.current.number == leg.account {
            row.settle_current(leg.amount, spent, id, &mut self.derived.sink);
            row.debt
        } else {
            self.end_closed_leg(leg, spent, id)
        };
        self.note_debt(leg, debt_before, id);
        self.put_away(leg.lineage);
        debt
    }

    /// Notes whose reservation left debt that was not there before.
    fn note_debt(&mut self, leg: &Leg, debt_before: u128, id: ReservationId) {
        if self.lineages.get(leg.lineage).debt <= debt_before {
            return;
        }
        // Seldom, and so looked up here.
        let generation = match self.find(id) {
            Some(Found::Reservation(slot)) => self.reservations.get(slot).generation,
            _ => self.header.generation,
        };
        self.lineages.get_mut(leg.lineage).note_debt(debt_before, generation);
    }

    /// Books on the legs of a settled reservation, whose lineages were touched, what differs between its
    /// estimate and what it really used. Gives the debt that remains per unit, the largest of each.
    pub(crate) fn correct_legs(
        &mut self,
        id: ReservationId,
        legs: &[Leg],
        before: &Amounts,
        actual: &Amounts,
    ) -> Amounts {
        let mut debts = Amounts::NONE;
        for leg in legs {
            let unit = self.lineages.get(leg.lineage).unit;
            let booked =
                |amounts: &Amounts| if unit == Unit::Slots { 0 } else { amounts.get(unit).unwrap_or(0) };
            let debt = self.correct_leg(leg, booked(before), booked(actual), id);
            if debt > 0 {
                raise(&mut debts, unit, debt);
            }
        }
        debts
    }

    fn correct_leg(&mut self, leg: &Leg, before: u64, actual: u64, id: ReservationId) -> u128 {
        let debt_before = self.lineages.get(leg.lineage).debt;
        if self.lineages.get(leg.lineage).current.number == leg.account {
            let row = self.lineages.get_mut(leg.lineage);
            row.correct_current(before, actual, id, &mut self.derived.sink);
        } else {
            let closed = self.closed_slot_of(leg, id);
            self.note_closed(closed);
            let row = self.lineages.get_mut(leg.lineage);
            let account = &mut self.closed.get_mut(closed).account;
            row.correct_closed(account, before, actual, id, &mut self.derived.sink);
        }
        self.note_debt(leg, debt_before, id);
        self.put_away(leg.lineage);
        self.lineages.get(leg.lineage).debt
    }

    fn end_closed_leg(&mut self, leg: &Leg, spent: u64, id: ReservationId) -> u128 {
        let closed = self.closed_slot_of(leg, id);
        self.note_closed(closed);
        let row = self.lineages.get_mut(leg.lineage);
        let account = &mut self.closed.get_mut(closed).account;
        row.settle_closed(account, leg.amount, spent, id, &mut self.derived.sink);
        row.debt
    }

    /// The slot of the closed account that a leg is on.
    fn closed_slot_of(&self, leg: &Leg, id: ReservationId) -> u32 {
        match self.derived.closed_slot(&self.closed, leg.lineage, leg.account) {
            Some(closed) => closed,
            None => panic!("{id}: lineage {} has no account {}", leg.lineage, leg.account),
        }
    }
}

/// Keeps the largest debt of each unit.
fn raise(debts: &mut Amounts, unit: Unit, debt: u128) {
    let debt = u64::try_from(debt).unwrap_or(u64::MAX);
    debts.set(unit, Some(debt.max(debts.get(unit).unwrap_or(0))));
}
