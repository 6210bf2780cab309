//! Booking an operator's adjustment on the current account, so that the equation holds:
//! capacity moves A of C7 (`granted`, `forfeited`), usage moves U (`spent`, `corrected`).

use crate::adjust::{Adjustment, Boost, Standing};
use crate::answer::Refusal;
use crate::apply::invalid;
use crate::book::lineage::Sink;
use crate::book::lineage::credit::Source;
use crate::ids::AdjustmentId;
use crate::limits::{BOOST_MS_MAX, BOOSTS_PER_LINEAGE_MAX};
use crate::record::{LimitKind, Lineage};
use crate::unit::Unit;

impl Lineage {
    /// Books an adjustment on a lineage that was brought to now. `held_before` is what open reservations
    /// hold on earlier accounts of the epoch. On a refusal the lineage may be thrown away only.
    pub(crate) fn adjust(
        &mut self,
        id: AdjustmentId,
        what: &Adjustment,
        held_before: u128,
        now_ms: u64,
        sink: &mut Sink,
    ) -> Result<(), Refusal> {
        self.check_adjustment(what)?;
        match *what {
            Adjustment::Grant(amount) => self.grant_more(u128::from(amount), sink),
            Adjustment::Take(amount) => self.take_away(u128::from(amount))?,
            Adjustment::Charge(amount) => self.charge(u128::from(amount), sink),
            Adjustment::Correct(amount) => self.correct(u128::from(amount), held_before, sink)?,
            Adjustment::SetUsed(used) => {
                let more = i128::from(used) - self.settled_usage(held_before);
                match more >= 0 {
                    true => self.charge(more.unsigned_abs(), sink),
                    false => self.correct(more.unsigned_abs(), held_before, sink)?,
                }
            }
            Adjustment::Boost { amount, until_ms } => {
                self.begin_boost(Boost { id, amount, until_ms }, now_ms, sink)?;
            }
            Adjustment::EndBoost { boost } => self.end_boost(boost)?,
        }
        Ok(())
    }

    /// What the running epoch used, without what is held: what a correction may take off.
    pub(crate) fn settled_usage(&self, held_before: u128) -> i128 {
        self.used() - (self.held() + held_before) as i128
    }

    /// The figures that a receipt shows.
    pub(crate) fn standing(&self, held_before: u128) -> Standing {
        let clamp = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let (used, held, limit_amount) = self.figures(held_before);
        Standing {
            used: clamp(used),
            held: clamp(held),
            limit_amount: limit_amount.map(clamp),
            remaining: limit_amount.map(|_| clamp(self.current.columns.available)),
            debt: clamp(self.debt),
        }
    }

    fn check_adjustment(&self, what: &Adjustment) -> Result<(), Refusal> {
        let (field, amount) = match *what {
            Adjustment::Grant(amount) => ("grant", amount),
            Adjustment::Take(amount) => ("take", amount),
            Adjustment::Charge(amount) => ("charge", amount),
            Adjustment::Correct(amount) => ("correct", amount),
            Adjustment::Boost { amount, .. } => ("boost", amount),
            Adjustment::SetUsed(_) => ("set_used", 1),
            Adjustment::EndBoost { .. } => ("end_boost", 1),
        };
        if amount == 0 {
            return Err(invalid(field, "must be at least 1"));
        }
        let of_usage =
            matches!(what, Adjustment::Charge(_) | Adjustment::Correct(_) | Adjustment::SetUsed(_));
        if of_usage && self.unit == Unit::Slots {
            return Err(invalid(field, "slots are held and never used up"));
        }
        // Nor is it kept once the bucket is full again.
        let of_total = matches!(what, Adjustment::Correct(_) | Adjustment::SetUsed(_));
        if of_total && self.kind == LimitKind::Bucket {
            return Err(invalid(field, "a bucket's usage is no total: charge it or grant"));
        }
        if !of_usage && field != "end_boost" && self.is_unlimited() {
            return Err(invalid(field, "the limit is unlimited for this subject"));
        }
        Ok(())
    }

    /// Grows A, and mints what fits: debt first.
    fn grant_more(&mut self, amount: u128, sink: &mut Sink) {
        if self.bucket().is_none() {
            self.operate(|operated| operated.net += amount as i128);
        }
        self.credit(amount, Source::Grant, sink);
    }

    /// Shrinks A by the whole amount and forfeits what that leaves too much.
    fn take_away(&mut self, amount: u128) -> Result<(), Refusal> {
        let Some(allowance) = self.allowance() else {
            let columns = &mut self.current.columns;
            let taken = amount.min(columns.available);
            columns.available -= taken;
            columns.forfeited += taken;
            return Ok(());
        };
        if amount > allowance {
            return Err(invalid("take", format!("the limit gives {allowance} in this epoch")));
        }
        self.operate(|operated| operated.net -= amount as i128);
        self.shed();
        Ok(())
    }

    /// Books usage down: what was used too much comes back through credit.
    fn correct(&mut self, amount: u128, held_before: u128, sink: &mut Sink) -> Result<(), Refusal> {
        let used = u128::try_from(self.settled_usage(held_before)).unwrap_or(0);
        if amount > used {
            return Err(invalid("correct", format!("{used} were used in this epoch")));
        }
        self.current.columns.corrected += amount;
        self.credit(amount, Source::Refund, sink);
        Ok(())
    }

    fn begin_boost(&mut self, boost: Boost, now_ms: u64, sink: &mut Sink) -> Result<(), Refusal> {
        if boost.until_ms <= now_ms {
            return Err(invalid("boost.until_ms", format!("is not after book time, which is {now_ms}")));
        }
        if boost.until_ms - now_ms > BOOST_MS_MAX {
            return Err(invalid("boost.until_ms", format!("is more than {BOOST_MS_MAX} ms ahead")));
        }
        if self.operated.as_ref().is_some_and(|known| known.boosts.len() >= BOOSTS_PER_LINEAGE_MAX) {
            return Err(Refusal::Overloaded { ceiling: "BOOSTS_PER_LINEAGE_MAX" });
        }
        self.operate(|operated| operated.boosts.push(boost));
        if self.bucket().is_none() {
            self.credit(u128::from(boost.amount), Source::Grant, sink);
        }
        Ok(())
    }

    fn end_boost(&mut self, boost: AdjustmentId) -> Result<(), Refusal> {
        let runs = |known: &Boost| known.id == boost;
        if !self.operated.as_ref().is_some_and(|operated| operated.boosts.iter().any(runs)) {
            return Err(invalid("end_boost", "no such boost runs on this limit and subject"));
        }
        self.operate(|operated| operated.boosts.retain(|known| !runs(known)));
        self.shed();
        Ok(())
    }
}
