//! Time on one lineage: refill, and the roll from epoch to epoch.

use std::sync::Arc;

use crate::book::calendars::{Calendars, Uncovered};
use crate::book::lineage::credit::Source;
use crate::book::lineage::operated::Bucket;
use crate::book::lineage::{Sink, statement};
use crate::event::EventKind;
use crate::mutants;
use crate::plan::{Calendar, Rule};
use crate::record::{Account, Columns, Lineage};

impl Lineage {
    /// Brings the lineage to an instant under the rule it has. At one instant epochs end before boosts do.
    pub(crate) fn advance(
        &mut self,
        until_ms: u64,
        calendars: &Calendars,
        sink: &mut Sink,
    ) -> Result<(), Uncovered> {
        while let Some(end_ms) = self.next_boost_end_ms().filter(|end_ms| *end_ms <= until_ms) {
            self.pass(end_ms, calendars, sink)?;
            self.end_boosts(end_ms, sink);
        }
        self.pass(until_ms, calendars, sink)
    }

    /// Passes a stretch of time in which no boost ends, but at its end.
    fn pass(&mut self, until_ms: u64, calendars: &Calendars, sink: &mut Sink) -> Result<(), Uncovered> {
        if self.epoch_end_ms.is_some_and(|end| end <= until_ms) {
            self.roll_until(until_ms, calendars, sink)?;
        }
        if let Some(bucket) = self.bucket() {
            self.refill(until_ms, bucket, sink);
        }
        self.replayed_ms = self.replayed_ms.max(until_ms);
        Ok(())
    }

    fn refill(&mut self, until_ms: u64, bucket: Bucket, sink: &mut Sink) {
        let Bucket { amount, per_ms, burst } = bucket;
        let elapsed = until_ms.saturating_sub(self.replayed_ms);
        if elapsed == 0 {
            return;
        }
        let (gain, remainder) = accrue(elapsed, amount, per_ms, self.refill_remainder);
        self.refill_remainder = if mutants::on("fractions-are-lost") { 0 } else { remainder };
        if gain > 0 {
            self.credit(gain, Source::Refill, sink);
        }
        if self.current.columns.available >= u128::from(burst) {
            // A full bucket does not save up fractions.
            self.refill_remainder = 0;
        }
    }

    /// Rolls over every epoch that ends by `until_ms`.
    fn roll_until(&mut self, until_ms: u64, calendars: &Calendars, sink: &mut Sink) -> Result<(), Uncovered> {
        let (Some(end_ms), Some(calendar)) = (self.epoch_end_ms, self.calendar().cloned()) else {
            return Ok(());
        };
        let (more, last_ms) = calendars.ends_between(&calendar, end_ms, until_ms)?;
        let final_end = calendars.end_after(&calendar, until_ms)?;
        let next_end = if more == 0 { final_end } else { calendars.end_after(&calendar, end_ms)? };
        self.roll(end_ms, next_end, sink);
        if more > 1 {
            self.skip(u128::from(more - 1), sink);
        }
        if more > 0 {
            self.roll(last_ms, final_end, sink);
        }
        Ok(())
    }

    /// The calendar of the rule in force.
    pub(crate) fn calendar(&self) -> Option<&Arc<Calendar>> {
        match &self.rule {
            Some(Rule::Period { calendar, .. }) => Some(calendar),
            Some(Rule::Unlimited { calendar }) => calendar.as_ref(),
            _ => None,
        }
    }

    /// Ends the running epoch and opens the next one.
    fn roll(&mut self, start_ms: u64, end_ms: Option<u64>, sink: &mut Sink) {
        let (limit, carry_over, carry_debt) = self.period();
        let limited = limit.is_some();
        if (!carry_debt || mutants::on("debt-dies-with-its-epoch")) && self.debt > 0 {
            let amount = self.debt;
            self.current.columns.forgiven += amount;
            self.current.columns.overdraft_repaid += amount;
            self.debt = 0;
            sink.events.push(EventKind::Forgiven { lineage: self.key.clone(), amount });
        }
        let most = if mutants::on("all-goes-over") { u128::MAX } else { u128::from(carry_over) };
        let carried = self.current.columns.available.min(most);
        self.retire_available(carried);
        self.close_current(start_ms, sink);
        self.begin_epoch(carried, Some(start_ms), end_ms);
        // The epoch is not given what ends as it begins.
        self.forget_boosts(start_ms, sink);
        if limited {
            self.credit(self.limit().unwrap_or(0), Source::Grant, sink);
        }
    }

    fn period(&self) -> (Option<u128>, u64, bool) {
        match &self.rule {
            Some(Rule::Period { carry_over, carry_debt, .. }) => (self.limit(), *carry_over, *carry_debt),
            _ => (None, 0, true),
        }
    }

    /// Empties `available` into the successor and, what it does not take, into nothing.
    pub(crate) fn retire_available(&mut self, carried: u128) {
        let columns = &mut self.current.columns;
        columns.carried_forward += carried;
        columns.forfeited += columns.available - carried;
        columns.available = 0;
    }

    /// Puts the current account away. The caller opens another one at once.
    pub(crate) fn close_current(&mut self, at_ms: u64, sink: &mut Sink) {
        let next = Account {
            number: self.current.number + 1,
            generation: self.current.generation,
            epoch_start_ms: self.current.epoch_start_ms,
            columns: Columns::default(),
            legs: 0,
        };
        let closed = std::mem::replace(&mut self.current, next);
        self.past_used += closed.columns.used();
        self.past_debt += closed.columns.debt();
        if closed.legs > 0 {
            sink.closed.push(closed);
        } else {
            self.archive(&closed, true, at_ms, sink);
        }
    }

    /// Keeps of an account what outlives it. `of_epoch`: it belongs to the running epoch.
    pub(crate) fn archive(&mut self, account: &Account, of_epoch: bool, at_ms: u64, sink: &mut Sink) {
        self.archived_debt += account.columns.debt();
        if of_epoch {
            self.archived_used += account.columns.used();
        }
        sink.statements.extend(statement(self, account, at_ms));
    }

    /// Starts an epoch on the account that has just been opened.
    pub(crate) fn begin_epoch(&mut self, carried: u128, start_ms: Option<u64>, end_ms: Option<u64>) {
        self.epoch_first = self.current.number;
        self.past_used = 0;
        self.past_debt = 0;
        self.archived_used = 0;
        self.earlier_repaid = 0;
        self.crossed = 0;
        self.carried_in = carried;
        if self.operated.is_some() && !mutants::on("grants-outlive-their-epoch") {
            // Boosts outlive the epoch, other grants do not.
            self.operate(|operated| operated.net = 0);
        }
        self.epoch_end_ms = end_ms;
        self.current.epoch_start_ms = start_ms;
        self.current.columns.opening = carried;
        self.current.columns.available = carried;
    }

    /// Passes over `rolls` epochs in which nothing happens, in one step. The account that is current
    /// afterwards stands for the last of them; the grants and repayments of the ones before are summed.
    fn skip(&mut self, rolls: u128, sink: &mut Sink) {
        let (limit, carry_over, _) = self.period();
        let Some(limit) = limit else { return };
        let (debt, available) = (self.debt, self.current.columns.available);
        let repaid_before = debt.min(limit * (rolls - 1));
        let repaid_last = (debt - repaid_before).min(limit);
        let carried = carried_after(debt, available, limit, u128::from(carry_over), rolls);
        let start_ms = self.current.epoch_start_ms;

        self.retire_available(0);
        self.close_current(start_ms.unwrap_or(0), sink);
        self.archived_debt -= repaid_before as i128;
        self.debt -= repaid_before;
        self.begin_epoch(carried, start_ms, self.epoch_end_ms);
        self.credit(limit, Source::Grant, sink);
        debug_assert_eq!(self.earlier_repaid, repaid_last);
        if repaid_before > 0 && self.debt == 0 && repaid_last == 0 {
            sink.events.push(EventKind::Repaid { lineage: self.key.clone() });
        }
    }
}

/// Units accrued in `elapsed` ms, and the remainder in parts of `per_ms`.
pub(crate) fn accrue(elapsed_ms: u64, amount: u64, per_ms: u64, remainder: u64) -> (u128, u64) {
    let per_ms = per_ms.max(1);
    let small = elapsed_ms.checked_mul(amount).and_then(|product| product.checked_add(remainder));
    match small {
        Some(accrued) => (u128::from(accrued / per_ms), accrued % per_ms),
        None => {
            let accrued = u128::from(elapsed_ms) * u128::from(amount) + u128::from(remainder);
            (accrued / u128::from(per_ms), (accrued % u128::from(per_ms)) as u64)
        }
    }
}

/// What is carried into the n-th of n idle epochs, from an epoch that ends with `debt` and `available` (one of them is 0).
///
/// While there is debt nothing is left to carry. It is gone in epoch p = ⌈debt / limit⌉, and from then on the
/// carried amount grows by the limit each epoch, up to `carry_over`.
pub(crate) fn carried_after(debt: u128, available: u128, limit: u128, carry_over: u128, rolls: u128) -> u128 {
    if debt > 0 && limit == 0 {
        return 0;
    }
    let cleared = if debt == 0 { 0 } else { debt.div_ceil(limit) };
    if rolls <= cleared {
        return 0;
    }
    let left = if debt == 0 { available } else { cleared * limit - debt };
    left.min(carry_over).saturating_add((rolls - cleared - 1).saturating_mul(limit)).min(carry_over)
}
