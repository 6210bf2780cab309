//! Forgetting: ended reservations and tombstones once their ids are under the floor, closed accounts once
//! nothing refers to them, lineages once they are as good as new. This keeps memory bounded.

use crate::book::judge::accrued_at;
use crate::book::lineage::{Sink, statement};
use crate::book::{Book, Counted, Found, Uncovered, open_lineage};
use crate::limits::{DROP_AGAIN_MS, ID_AHEAD_MS, TIMERS_PER_ENTRY_MAX};
use crate::plan::Rule;
use crate::record::{Leg, LimitKind, Lineage};

impl Book {
    /// Forgets an ended reservation. False: its id could still be taken for a new one, so it is kept a while longer.
    pub(crate) fn forget(&mut self, slot: u32) -> bool {
        let id = self.reservations.get(slot).id;
        if id.time_ms() >= self.header.id_floor_ms {
            let at_ms = self.remember_longer_ms(id.time_ms());
            if let Some(ended) = self.reservations.get_mut(slot).ended.as_mut() {
                ended.forget_at_ms = at_ms;
            }
            self.schedule_reservation(slot);
            return false;
        }
        self.derived.remove_id(id, Found::Reservation(slot));
        self.derived.keys.remove(&self.reservations, slot);
        let row = self.reservations.remove(slot);
        self.derived.tally.leave(row.state);
        for leg in row.legs() {
            self.forget_leg(leg);
        }
        true
    }

    /// The id window has grown since the reservation ended, so that the floor has not passed its id yet.
    pub(crate) fn remember_longer_ms(&self, id_time_ms: u64) -> u64 {
        let due_ms = id_time_ms.saturating_add(self.id_window_ms()).saturating_add(ID_AHEAD_MS);
        due_ms.max(self.header.clock_ms.saturating_add(1))
    }

    fn forget_leg(&mut self, leg: &Leg) {
        let row = self.lineages.get_mut(leg.lineage);
        row.legs -= 1;
        let last = row.legs == 0;
        if row.current.number == leg.account {
            row.current.legs -= 1;
        } else {
            self.forget_closed_leg(leg);
        }
        if last {
            self.schedule_drop(leg.lineage);
        }
    }

    /// Looks at a lineage again, once it may be as a never seen one, unless it has legs.
    pub(crate) fn schedule_drop(&mut self, slot: u32) {
        let now_ms = self.header.clock_ms;
        let row = self.lineages.get_mut(slot);
        if row.legs > 0 {
            return;
        }
        let at_ms = drop_time_ms(row, now_ms);
        row.drop_at_ms = Some(at_ms);
        self.derived.lineage_timers.schedule(at_ms, slot);
    }

    /// Archives the closed account if this was the last leg on it.
    fn forget_closed_leg(&mut self, leg: &Leg) {
        let Some(slot) = self.derived.closed_slot(&self.closed, leg.lineage, leg.account) else {
            panic!("a remembered leg has no account {} in lineage {}", leg.account, leg.lineage);
        };
        let account = &mut self.closed.get_mut(slot).account;
        account.legs -= 1;
        if account.legs > 0 {
            return;
        }
        self.derived.remove_closed(&self.closed, leg.lineage, leg.account, slot);
        let closed = self.closed.remove(slot);
        self.count_account(leg.lineage, Counted::Out);
        let row = self.lineages.get_mut(leg.lineage);
        let of_epoch = row.is_of_epoch(leg.account);
        row.archive(&closed.account, of_epoch, self.header.clock_ms, &mut self.derived.sink);
        self.put_away(leg.lineage);
    }

    pub(crate) fn forget_tombstones(&mut self, now_ms: u64) {
        let tombstones = &self.tombstones;
        let due = self.derived.tombstone_timers.take_due(now_ms, TIMERS_PER_ENTRY_MAX, |slot, due_ms| {
            tombstones.find(slot).filter(|row| row.forget_at_ms == due_ms).map(|row| row.id)
        });
        for slot in due {
            let id = self.tombstones.get(slot).id;
            if id.time_ms() >= self.header.id_floor_ms {
                let at_ms = self.remember_longer_ms(id.time_ms());
                self.tombstones.get_mut(slot).forget_at_ms = at_ms;
                self.derived.tombstone_timers.schedule(at_ms, slot);
                continue;
            }
            self.derived.remove_id(id, Found::Tombstone(slot));
            self.tombstones.remove(slot);
            self.derived.work.forgotten += 1;
        }
    }

    /// Drops lineages without legs that are as a never seen one would be.
    pub(crate) fn drop_due_lineages(&mut self, now_ms: u64, most: usize) {
        let lineages = &self.lineages;
        let due = self.derived.lineage_timers.take_due(now_ms, most, |slot, due_ms| {
            lineages.find(slot).filter(|row| row.drop_at_ms == Some(due_ms)).map(|_| slot)
        });
        for slot in due {
            if self.touch(slot).is_ok() && self.is_as_new(slot).unwrap_or(false) {
                self.state_current(slot);
                let key = self.lineages.get(slot).key.clone();
                self.derived.remove_lineage(&self.lineages, &key, slot);
                self.count_account(slot, Counted::Out);
                self.lineages.remove(slot);
                continue;
            }
            let row = self.lineages.get(slot);
            let mut at_ms = drop_time_ms(row, now_ms);
            if at_ms <= now_ms {
                let epoch_end_ms = row.epoch_end_ms.filter(|end| *end > now_ms);
                at_ms = epoch_end_ms.unwrap_or(now_ms.saturating_add(DROP_AGAIN_MS));
            }
            self.lineages.get_mut(slot).drop_at_ms = Some(at_ms);
            self.derived.lineage_timers.schedule(at_ms, slot);
        }
    }

    /// What was used in the epoch of the current account outlives the lineage: one whose limit is withdrawn ends
    /// with that account. Accounts without epochs come and go and have no statement.
    fn state_current(&mut self, slot: u32) {
        let row = self.lineages.get(slot);
        if row.current.epoch_start_ms.is_some() {
            let told = statement(row, &row.current, self.header.clock_ms);
            self.derived.sink.statements.extend(told);
            self.put_away(slot);
        }
    }

    /// Whether nobody could tell a lineage from one that was never seen.
    fn is_as_new(&self, slot: u32) -> Result<bool, Uncovered> {
        let row = self.lineages.get(slot);
        if row.debt > 0 || row.legs > 0 || row.operated.is_some() {
            return Ok(false);
        }
        if row.rule.is_none() {
            // Withdrawn: what was used counts until its epoch ends, should the limit come back.
            return Ok(row.epoch_end_ms.is_none_or(|end| end <= self.header.clock_ms)
                && !matches!(row.kind, LimitKind::Total if row.epoch_end_ms.is_none() && row.used() > 0));
        }
        let (now_ms, generation) = (self.header.clock_ms, self.header.generation);
        let fresh = open_lineage(&row.key, row.unit, now_ms, generation, &self.generations, &self.calendars)?;
        let Some(fresh) = fresh else { return Ok(false) };
        let same_balance = row.current.columns.available == fresh.current.columns.available;
        Ok(match row.kind {
            LimitKind::Bucket => same_balance && is_full(row),
            LimitKind::Concurrency => same_balance && row.held() == 0,
            LimitKind::Total => {
                let untouched = row.used() == 0 && row.epoch_debt() == 0 && row.earlier_repaid == 0;
                same_balance
                    && untouched
                    && row.carried_in == fresh.carried_in
                    && row.epoch_end_ms == fresh.epoch_end_ms
                    && row.crossed == 0
            }
        })
    }

    /// Touches every lineage, so that no generation but the one in force is needed to bring one up to date.
    pub(crate) fn touch_all(&mut self) {
        let slots: Vec<u32> = self.lineages.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            // One whose bounds are not known yet keeps what it has, and is replayed with what is kept then.
            let _ = self.touch(slot);
            self.assert_touched();
        }
        self.derived.sink = Sink::default();
    }
}

fn is_full(row: &Lineage) -> bool {
    match row.rule {
        Some(Rule::Bucket { burst, .. }) => row.current.columns.available == u128::from(burst),
        _ => true,
    }
}

/// When it is worth looking whether a lineage without legs may be dropped.
fn drop_time_ms(row: &Lineage, now_ms: u64) -> u64 {
    let again_ms = now_ms.saturating_add(DROP_AGAIN_MS);
    match (&row.rule, row.kind) {
        (Some(Rule::Bucket { burst, .. }), _) => {
            accrued_at(row, u128::from(*burst), row.replayed_ms).unwrap_or(again_ms)
        }
        (_, LimitKind::Total) if row.used() > 0 || row.debt > 0 || row.earlier_repaid > 0 => {
            row.epoch_end_ms.unwrap_or(again_ms)
        }
        _ if row.debt > 0 => again_ms,
        _ => now_ms,
    }
}
