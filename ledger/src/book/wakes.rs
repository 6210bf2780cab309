//! When time alone will have something to tell of a lineage: a debt that it repays, a boost that it ends. Most lineages have
//! neither, and cost nothing here.

use std::collections::{BTreeMap, BTreeSet};

use crate::book::Book;
use crate::book::judge::accrued_at;
use crate::limits::WAKES_PER_ENTRY_MAX;
use crate::record::{LimitKind, Lineage};

/// The time of those that a new rule only could wake.
const NEVER_MS: u64 = u64::MAX;

/// Lineages by the time at which they are to be looked at. Derived: it follows from the rows and the generation.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    by_time: BTreeSet<(u64, u32)>,
    times: BTreeMap<u32, u64>,
}

impl Wakes {
    /// Puts a lineage at a time, or takes it out.
    fn set(&mut self, slot: u32, at_ms: Option<u64>) {
        let before = match at_ms {
            Some(at_ms) => self.times.insert(slot, at_ms),
            None => self.times.remove(&slot),
        };
        if before == at_ms {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, slot));
        }
        if let Some(at_ms) = at_ms {
            self.by_time.insert((at_ms, slot));
        }
    }

    /// When the first one is to be looked at, ms.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.by_time.first().map(|(at_ms, _)| *at_ms).filter(|at_ms| *at_ms != NEVER_MS)
    }
}

impl Lineage {
    /// Whether time alone may have something to tell of it.
    pub(crate) fn may_wake(&self) -> bool {
        self.debt > 0 || self.operated.is_some()
    }

    /// When time alone changes something that is told, if nothing happens before, ms; `None`: no rule could bring that about.
    fn wake_ms(&self, generation: u64) -> Option<u64> {
        if !self.may_wake() {
            return None;
        }
        if self.seen_generation != generation {
            // Under a rule that it has not seen: to be looked at now.
            return Some(0);
        }
        let repaid_ms = match self.kind {
            _ if self.debt == 0 || self.rule.is_none() => None,
            LimitKind::Bucket => accrued_at(self, 0, self.replayed_ms),
            LimitKind::Total => self.epoch_end_ms,
            LimitKind::Concurrency => None,
        };
        let first_ms = [repaid_ms, self.next_boost_end_ms()].into_iter().flatten().min();
        Some(first_ms.unwrap_or(NEVER_MS))
    }
}

impl Book {
    /// Notes when a lineage, as it is now, is to be looked at.
    pub(crate) fn schedule_wake(&mut self, slot: u32) {
        let generation = self.header.generation;
        let at_ms = self.lineages.find(slot).and_then(|row| row.wake_ms(generation));
        self.derived.wakes.set(slot, at_ms);
    }

    /// A generation has come: each of them may be under another rule.
    pub(crate) fn schedule_wakes_anew(&mut self) {
        let slots: Vec<u32> = self.derived.wakes.times.keys().copied().collect();
        slots.into_iter().for_each(|slot| self.schedule_wake(slot));
    }

    /// Of a book that was restored.
    pub(crate) fn find_wakes(&mut self) {
        let slots = self.lineages.iter().filter(|(_, row)| row.may_wake()).map(|(slot, _)| slot);
        let slots: Vec<u32> = slots.collect();
        slots.into_iter().for_each(|slot| self.schedule_wake(slot));
    }

    /// Brings the lineages up to date that are to be looked at by now, a bounded number of them, in the order of
    /// (time, slot).
    pub(crate) fn wake_lineages(&mut self, now_ms: u64) {
        let due = self.derived.wakes.by_time.range(..=(now_ms, u32::MAX)).take(WAKES_PER_ENTRY_MAX);
        let due: Vec<u32> = due.map(|(_, slot)| *slot).collect();
        for slot in due {
            // Where the leader owes bounds of epochs, it waits for them.
            if self.touch(slot).is_ok() {
                self.assert_touched();
            }
        }
    }
}
