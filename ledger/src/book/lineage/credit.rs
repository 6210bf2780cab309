//! Every change of `available` upward: debt first, then up to the cap.

use crate::book::lineage::{Sink, take};
use crate::event::EventKind;
use crate::record::{Account, Lineage};

/// Where a credit comes from, and so what becomes of what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A bucket's rate; what does not fit is never minted.
    Refill,
    /// An epoch's grant, a bucket's first fill, an operator's grant; what does not fit is never minted.
    Grant,
    /// A changed rule.
    RuleRaise,
    /// A closed account of the same epoch.
    MovedIn,
    /// Amounts that were held or used here; what does not fit is forfeited.
    Refund,
}

impl Lineage {
    /// Credits the current account: repays the lineage's debt, then fills `available` up to the cap.
    pub(crate) fn credit(&mut self, amount: u128, source: Source, sink: &mut Sink) {
        let left = self.repay_here(amount, sink);
        let filled = left.min(self.room());
        let bucket = self.bucket();
        let columns = &mut self.current.columns;
        columns.available += filled;
        if bucket.is_some_and(|bucket| columns.available >= u128::from(bucket.burst)) {
            // A full bucket saves up no fraction, whatever filled it: burst and fraction together would pass C8.
            self.refill_remainder = 0;
        }
        let credited = amount - left + filled;
        match source {
            Source::Refill => columns.refilled += credited,
            Source::Grant => columns.granted += credited,
            Source::RuleRaise => columns.rule_raise += credited,
            Source::MovedIn => columns.moved_in += credited,
            Source::Refund => columns.forfeited += left - filled,
        }
    }

    /// Repays debt on the current account; what is left of the amount.
    fn repay_here(&mut self, amount: u128, sink: &mut Sink) -> u128 {
        if self.debt == 0 {
            return amount;
        }
        let repaid = amount.min(self.debt);
        self.earlier_repaid += repaid.min(self.earlier_debt());
        self.current.columns.overdraft_repaid += repaid;
        self.lower_debt(repaid, sink);
        amount - repaid
    }

    pub(crate) fn lower_debt(&mut self, amount: u128, sink: &mut Sink) {
        take(&mut self.debt, amount, "debt");
        if self.debt == 0 && amount > 0 {
            sink.events.push(EventKind::Repaid { lineage: self.key.clone() });
        }
    }

    /// Credits amounts that were held on a closed account: debt first, booked there; then, within the same
    /// epoch, what fits moves to the current account; the rest is forfeited there.
    pub(crate) fn credit_closed(&mut self, closed: &mut Account, amount: u128, sink: &mut Sink) {
        let same_epoch = self.is_of_epoch(closed.number);
        let repaid = amount.min(self.debt);
        if repaid > 0 {
            closed.columns.overdraft_repaid += repaid;
            if same_epoch {
                self.past_debt -= repaid as i128;
            }
            self.lower_debt(repaid, sink);
        }
        let left = amount - repaid;
        let moved = if same_epoch { left.min(self.room()) } else { 0 };
        closed.columns.carried_forward += moved;
        closed.columns.forfeited += left - moved;
        if moved > 0 {
            self.credit(moved, Source::MovedIn, sink);
        }
    }
}
