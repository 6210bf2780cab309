//! The adjustments that are remembered, so that each is booked once however often it is asked for.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::adjust::{Adjust, Adjustment, AdjustmentReceipt, AdjustmentRow, Standing};
use crate::book::Book;
use crate::book::bytes::RowBytes;
use crate::book::lineage::write_key;
use crate::limits::{ID_AHEAD_MS, TIMERS_PER_ENTRY_MAX};

impl Book {
    /// Remembers an adjustment until its id is under the floor for certain.
    pub(crate) fn remember_adjustment(&mut self, receipt: Arc<AdjustmentReceipt>) {
        let from_ms = self.header.clock_ms.max(receipt.command.id.time_ms());
        let forget_at_ms = from_ms.saturating_add(self.id_window_ms()).saturating_add(ID_AHEAD_MS);
        self.keep_adjustment(AdjustmentRow { receipt, forget_at_ms });
    }

    /// Puts a row in. False: one with its id was there.
    pub(crate) fn keep_adjustment(&mut self, row: AdjustmentRow) -> bool {
        let id = row.receipt.command.id;
        self.small_sum = self.small_sum.wrapping_add(hash_adjustment(&row));
        self.derived.adjustments_due.insert((row.forget_at_ms, id));
        Arc::make_mut(&mut self.adjustments).insert(id, row).is_none()
    }

    /// Forgets adjustments that are due; one whose id could still be taken for a new one is kept a while longer.
    pub(crate) fn forget_adjustments(&mut self, now_ms: u64) {
        for _ in 0..TIMERS_PER_ENTRY_MAX {
            let due = self.derived.adjustments_due.first().copied();
            let Some((at_ms, id)) = due.filter(|(at_ms, _)| *at_ms <= now_ms) else { return };
            self.derived.adjustments_due.remove(&(at_ms, id));
            let Some(row) = Arc::make_mut(&mut self.adjustments).remove(&id) else { continue };
            self.small_sum = self.small_sum.wrapping_sub(hash_adjustment(&row));
            if id.time_ms() >= self.header.id_floor_ms {
                let forget_at_ms = self.remember_longer_ms(id.time_ms());
                self.keep_adjustment(AdjustmentRow { forget_at_ms, ..row });
            }
        }
    }

    /// The adjustments that are remembered, by id.
    pub fn adjustments(&self) -> impl Iterator<Item = &Arc<AdjustmentReceipt>> {
        self.adjustments.values().map(|row| &row.receipt)
    }
}

pub(crate) fn hash_adjustment(row: &AdjustmentRow) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(11);
    out.put_u64(row.forget_at_ms);
    write_receipt(&row.receipt, &mut out);
    xxh3_128(out.as_slice())
}

pub(crate) fn write_receipt(receipt: &AdjustmentReceipt, out: &mut RowBytes) {
    let AdjustmentReceipt { command, unit, at_ms, revision, generation, epoch_start_ms, before, after } =
        receipt;
    let Adjust { id, lineage, epoch_start_ms: asked, what, actor, reason } = command;
    out.put_u128(id.0);
    write_key(lineage, out);
    out.put_option(*asked);
    write_what(what, out);
    out.put_text(actor.as_str());
    out.put_text(reason);
    out.put_u8(*unit as u8);
    out.put_u64(*at_ms);
    out.put_u64(*revision);
    out.put_u64(*generation);
    out.put_option(*epoch_start_ms);
    write_standing(before, out);
    write_standing(after, out);
}

fn write_what(what: &Adjustment, out: &mut RowBytes) {
    let (tag, amount) = match *what {
        Adjustment::Grant(amount) => (1, amount),
        Adjustment::Take(amount) => (2, amount),
        Adjustment::Charge(amount) => (3, amount),
        Adjustment::Correct(amount) => (4, amount),
        Adjustment::SetUsed(amount) => (5, amount),
        Adjustment::Boost { amount, .. } => (6, amount),
        Adjustment::EndBoost { .. } => (7, 0),
    };
    out.put_u8(tag);
    out.put_u64(amount);
    match *what {
        Adjustment::Boost { until_ms, .. } => out.put_u64(until_ms),
        Adjustment::EndBoost { boost } => out.put_u128(boost.0),
        _ => {}
    }
}

fn write_standing(standing: &Standing, out: &mut RowBytes) {
    let Standing { used, held, limit_amount, remaining, debt } = standing;
    out.put_u64(*used);
    out.put_u64(*held);
    out.put_option(*limit_amount);
    out.put_option(*remaining);
    out.put_u64(*debt);
}
