//! Holding and settling amounts on a lineage's accounts.

use crate::book::lineage::credit::Source;
use crate::book::lineage::{Sink, take};
use crate::event::EventKind;
use crate::ids::ReservationId;
use crate::record::{Account, Lineage};

impl Lineage {
    /// Of the mutant `settle-twice`: units that were given back are given back again, where C7 does not see it.
    pub(crate) fn refund_again(&mut self, amount: u64) {
        if let Some(crate::plan::Rule::Bucket { .. }) = self.rule {
            self.credit(u128::from(amount), Source::Refill, &mut Sink::default());
        }
    }

    /// Holds an amount that was found to fit.
    pub(crate) fn hold(&mut self, amount: u64) {
        let amount = u128::from(amount);
        let unlimited = self.is_unlimited();
        let columns = &mut self.current.columns;
        if unlimited {
            columns.granted += amount;
        } else {
            take(&mut columns.available, amount, "available");
        }
        columns.reserved += amount;
        self.current.legs += 1;
        self.legs += 1;
        self.drop_at_ms = None;
    }

    /// Ends a leg on the current account: `spent` of the amount is used, the rest comes back; more than it is an overrun.
    pub(crate) fn settle_current(
        &mut self,
        held: u64,
        spent: u64,
        reservation: ReservationId,
        sink: &mut Sink,
    ) {
        let (held, spent) = (u128::from(held), u128::from(spent));
        take(&mut self.current.columns.reserved, held, "reserved");
        self.current.columns.spent += spent;
        if spent <= held {
            self.credit(held - spent, Source::Refund, sink);
            return;
        }
        self.overrun(spent - held, Some(reservation), sink);
    }

    /// Books usage that nothing was held for, as an operator's charge.
    pub(crate) fn charge(&mut self, amount: u128, sink: &mut Sink) {
        self.current.columns.spent += amount;
        self.overrun(amount, None, sink);
    }

    /// Pays for what is spent already: from `available`, and what is not there becomes debt.
    fn overrun(&mut self, over: u128, reservation: Option<ReservationId>, sink: &mut Sink) {
        if self.is_unlimited() {
            self.current.columns.granted += over;
            return;
        }
        let taken = over.min(self.current.columns.available);
        take(&mut self.current.columns.available, taken, "available");
        self.current.columns.overdraft_issued += over - taken;
        self.raise_debt(over - taken, reservation, sink);
    }

    /// Ends a leg on a closed account of the lineage.
    pub(crate) fn settle_closed(
        &mut self,
        closed: &mut Account,
        held: u64,
        spent: u64,
        reservation: ReservationId,
        sink: &mut Sink,
    ) {
        let (held, spent) = (u128::from(held), u128::from(spent));
        take(&mut closed.columns.reserved, held, "reserved");
        closed.columns.spent += spent;
        let same_epoch = self.is_of_epoch(closed.number);
        if same_epoch {
            self.past_used += spent as i128 - held as i128;
        }
        if spent <= held {
            self.credit_closed(closed, held - spent, sink);
            return;
        }
        let over = spent - held;
        closed.columns.overdraft_issued += over;
        if same_epoch {
            self.past_debt += over as i128;
        }
        self.debt += over;
        let indebted_before = self.debt > over;
        self.repay_from_current(over);
        if self.debt > 0 && !indebted_before {
            sink.events
                .push(EventKind::Indebted { lineage: self.key.clone(), reservation: Some(reservation) });
        }
    }

    /// A settlement on the current account was estimated at `before`, and is `actual` in truth: what was too
    /// much comes back, more than that is an overrun.
    pub(crate) fn correct_current(
        &mut self,
        before: u64,
        actual: u64,
        reservation: ReservationId,
        sink: &mut Sink,
    ) {
        match before.checked_sub(actual) {
            Some(too_much) => {
                let too_much = u128::from(too_much);
                self.current.columns.corrected += too_much;
                self.credit(too_much, Source::Refund, sink);
            }
            None => self.settle_current(0, actual - before, reservation, sink),
        }
    }

    /// The same on a closed account of the lineage.
    pub(crate) fn correct_closed(
        &mut self,
        closed: &mut Account,
        before: u64,
        actual: u64,
        reservation: ReservationId,
        sink: &mut Sink,
    ) {
        match before.checked_sub(actual) {
            Some(too_much) => {
                let too_much = u128::from(too_much);
                closed.columns.corrected += too_much;
                if self.is_of_epoch(closed.number) {
                    self.past_used -= too_much as i128;
                }
                self.credit_closed(closed, too_much, sink);
            }
            None => self.settle_closed(closed, 0, actual - before, reservation, sink),
        }
    }

    /// The current account pays for an overrun on a closed one, as far as it can.
    fn repay_from_current(&mut self, over: u128) {
        if self.is_unlimited() {
            self.earlier_repaid += over.min(self.earlier_debt());
            self.current.columns.granted += over;
            self.current.columns.overdraft_repaid += over;
            take(&mut self.debt, over, "debt");
            return;
        }
        let repaid = over.min(self.current.columns.available);
        self.earlier_repaid += repaid.min(self.earlier_debt());
        take(&mut self.current.columns.available, repaid, "available");
        self.current.columns.overdraft_repaid += repaid;
        // Not an event: the debt was made by this very command.
        take(&mut self.debt, repaid, "debt");
    }

    /// Notes that a reservation admitted under a generation, or an operator during one, has left debt that was
    /// not there before.
    pub(crate) fn note_debt(&mut self, before: u128, generation: u64) {
        if self.debt > before {
            let known = if before == 0 { generation } else { self.debt_generation };
            self.debt_generation = known.min(generation);
        }
    }

    fn raise_debt(&mut self, amount: u128, reservation: Option<ReservationId>, sink: &mut Sink) {
        if amount > 0 && self.debt == 0 {
            sink.events.push(EventKind::Indebted { lineage: self.key.clone(), reservation });
        }
        self.debt += amount;
    }
}
