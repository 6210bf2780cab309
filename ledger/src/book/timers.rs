//! Timers in order of their due time. Derived from the rows: an entry whose row no longer has that due
//! time is stale and skipped, so that cancelling costs nothing.

use std::collections::BTreeMap;

/// Stale entries that are tolerated before the timers are cleaned, on top of one per live row.
const STALE_SLACK: usize = 4_096;

/// Slots by due time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    buckets: BTreeMap<u64, Vec<u32>>,
    entries: usize,
}

impl Timers {
    pub(crate) fn schedule(&mut self, due_ms: u64, slot: u32) {
        self.buckets.entry(due_ms).or_default().push(slot);
        self.entries += 1;
    }

    /// The earliest due time of a live entry, looking at `most` entries; that of the last one looked at if none was live.
    pub(crate) fn next_live_ms(&self, most: usize, is_live: impl Fn(u32, u64) -> bool) -> Option<u64> {
        let mut looked = 0;
        for (due_ms, slots) in &self.buckets {
            looked += slots.len();
            if looked > most || slots.iter().any(|slot| is_live(*slot, *due_ms)) {
                return Some(*due_ms);
            }
        }
        None
    }

    /// Entries that are due by an instant, stale ones included, by due time.
    pub(crate) fn due_by(&self, now_ms: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        let due = self.buckets.range(..=now_ms);
        due.flat_map(|(due_ms, slots)| slots.iter().map(move |slot| (*due_ms, *slot)))
    }

    /// Takes up to `most` slots that are due, in the order (due time, key). `key` gives a row's place among
    /// those of the same due time, or `None` if the slot's row is not due then.
    pub(crate) fn take_due<K: Ord>(
        &mut self,
        now_ms: u64,
        most: usize,
        key: impl Fn(u32, u64) -> Option<K>,
    ) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(bucket) = self.buckets.first_entry().filter(|bucket| *bucket.key() <= now_ms) else {
                break;
            };
            let due_ms = *bucket.key();
            let slots = bucket.remove();
            self.entries -= slots.len();
            let mut live: Vec<(K, u32)> =
                slots.into_iter().filter_map(|slot| key(slot, due_ms).map(|key| (key, slot))).collect();
            live.sort_unstable();
            live.dedup_by_key(|(_, slot)| *slot);
            let rest = live.split_off(live.len().min(most - taken.len()));
            taken.extend(live.into_iter().map(|(_, slot)| slot));
            if !rest.is_empty() {
                self.entries += rest.len();
                self.buckets.insert(due_ms, rest.into_iter().map(|(_, slot)| slot).collect());
            }
        }
        taken
    }

    /// Drops stale entries once they outnumber the live ones.
    pub(crate) fn clean(&mut self, rows: usize, is_live: impl Fn(u32, u64) -> bool) {
        if self.entries <= 2 * rows + STALE_SLACK {
            return;
        }
        let mut entries = 0;
        self.buckets.retain(|due_ms, slots| {
            slots.retain(|slot| is_live(*slot, *due_ms));
            slots.sort_unstable();
            slots.dedup();
            slots.shrink_to_fit();
            entries += slots.len();
            !slots.is_empty()
        });
        self.entries = entries;
    }
}
