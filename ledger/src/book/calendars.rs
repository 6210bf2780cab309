//! The bounds of accounting epochs. Those of a time zone come from the leader with the entries; those of
//! plain seconds are arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::book::Book;
use crate::book::small::hash_calendar;
use crate::command::EpochBounds;
use crate::plan::{Calendar, Period};

impl Book {
    /// Drops bounds that nothing which is kept can ask for: of a lineage, those before its running epoch; of one that
    /// was never seen, those before the oldest plan, where its replay would begin. And calendars that no plan which is
    /// kept has, and no lineage.
    pub(crate) fn prune_calendars(&mut self) {
        let plans = self.generations.plans.iter().map(|plan| &plan.published);
        let oldest_ms = plans.clone().map(|plan| plan.published_at_ms).min().unwrap_or(0);
        let mut used: BTreeSet<Arc<Calendar>> = plans.flat_map(|plan| plan.plan.calendars()).collect();
        let mut needed_ms = oldest_ms;
        for (_, lineage) in self.lineages.iter() {
            used.extend(lineage.calendar().cloned());
            // A rule that changed may have left an epoch that ends within one of its calendar.
            needed_ms = needed_ms.min(lineage.replayed_ms).min(lineage.epoch_end_ms.unwrap_or(u64::MAX));
        }
        let mut sum = self.small_sum;
        self.calendars.rows.retain(|calendar, bounds_ms| {
            sum = sum.wrapping_sub(hash_calendar(calendar, bounds_ms));
            // The epoch that the instant lies in is whole.
            let first = bounds_ms.partition_point(|bound| *bound <= needed_ms).saturating_sub(1);
            if first > 0 {
                Arc::make_mut(bounds_ms).drain(..first);
            }
            let kept = used.contains(calendar);
            if kept {
                sum = sum.wrapping_add(hash_calendar(calendar, bounds_ms));
            }
            kept
        });
        self.small_sum = sum;
    }
}

/// A calendar's bounds are not known at a time that was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Uncovered;

/// An epoch: its start and, unless it lasts for ever, its end.
pub(crate) type Epoch = (u64, Option<u64>);

/// The known bounds by calendar.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendars {
    pub(crate) rows: BTreeMap<Arc<Calendar>, Arc<Vec<u64>>>,
}

impl Calendars {
    /// Takes bounds in that continue what is known (or begin it). Anything else is ignored. True: something was new.
    pub(crate) fn extend(&mut self, from_leader: &EpochBounds) -> bool {
        let bounds = &from_leader.bounds_ms;
        let ordered = bounds.len() >= 2 && bounds.windows(2).all(|pair| pair[0] < pair[1]);
        if !ordered || !from_leader.calendar.period.wants_bounds() {
            return false;
        }
        let Some(known) = self.rows.get_mut(&from_leader.calendar) else {
            self.rows.insert(Arc::clone(&from_leader.calendar), Arc::new(bounds.clone()));
            return true;
        };
        let Some(last) = known.last().copied() else { return false };
        match bounds.iter().position(|bound| *bound == last) {
            Some(place) if place + 1 < bounds.len() => {
                Arc::make_mut(known).extend_from_slice(&bounds[place + 1..]);
                true
            }
            _ => false,
        }
    }

    /// The epoch that an instant lies in.
    pub(crate) fn epoch_at(&self, calendar: &Arc<Calendar>, at_ms: u64) -> Result<Epoch, Uncovered> {
        match calendar.period {
            Period::Lifetime => Ok((0, None)),
            Period::Seconds(seconds) => {
                let length = seconds_ms(seconds);
                let start = at_ms / length * length;
                Ok((start, Some(start.saturating_add(length))))
            }
            _ => {
                let bounds = self.rows.get(calendar).ok_or(Uncovered)?;
                match bounds.partition_point(|bound| *bound <= at_ms) {
                    0 => Err(Uncovered),
                    next => match bounds.get(next) {
                        Some(end) => Ok((bounds[next - 1], Some(*end))),
                        None => Err(Uncovered),
                    },
                }
            }
        }
    }

    /// The first instant from `at_ms` on that lies in a known epoch.
    pub(crate) fn first_known_ms(&self, calendar: &Arc<Calendar>, at_ms: u64) -> Result<u64, Uncovered> {
        if !calendar.period.wants_bounds() {
            return Ok(at_ms);
        }
        let first = self.rows.get(calendar).and_then(|bounds| bounds.first()).ok_or(Uncovered)?;
        Ok(at_ms.max(*first))
    }

    /// The end of the epoch that begins at or runs over an instant.
    pub(crate) fn end_after(&self, calendar: &Arc<Calendar>, at_ms: u64) -> Result<Option<u64>, Uncovered> {
        self.epoch_at(calendar, at_ms).map(|(_, end)| end)
    }

    /// How many epochs end after `from_ms`, which is a bound, and no later than `until_ms`; and the last of those ends.
    pub(crate) fn ends_between(
        &self,
        calendar: &Arc<Calendar>,
        from_ms: u64,
        until_ms: u64,
    ) -> Result<(u64, u64), Uncovered> {
        match calendar.period {
            Period::Lifetime => Ok((0, from_ms)),
            Period::Seconds(seconds) => {
                let length = seconds_ms(seconds);
                let count = (until_ms / length).saturating_sub(from_ms / length);
                Ok((count, if count == 0 { from_ms } else { until_ms / length * length }))
            }
            _ => {
                let bounds = self.rows.get(calendar).ok_or(Uncovered)?;
                let first = bounds.partition_point(|bound| *bound <= from_ms);
                let last = bounds.partition_point(|bound| *bound <= until_ms);
                let count = last.saturating_sub(first);
                Ok((count as u64, if count == 0 { from_ms } else { bounds[last - 1] }))
            }
        }
    }

    /// The end of the n-th epoch after the one that ends at `end_ms`, as far as it is known. n = 0: `end_ms` itself.
    pub(crate) fn later_end_ms(&self, calendar: &Arc<Calendar>, end_ms: u64, n: u128) -> Option<u64> {
        let n = u64::try_from(n).ok()?;
        match calendar.period {
            Period::Lifetime => (n == 0).then_some(end_ms),
            _ if n == 0 => Some(end_ms),
            // The running epoch may be the last of another calendar, and end anywhere between two bounds of this one.
            Period::Seconds(seconds) => {
                let length_ms = seconds_ms(seconds);
                (end_ms / length_ms).checked_add(n)?.checked_mul(length_ms)
            }
            _ => {
                let bounds = self.rows.get(calendar)?;
                let first = bounds.partition_point(|bound| *bound <= end_ms);
                bounds.get(first.checked_add(usize::try_from(n).ok()?.checked_sub(1)?)?).copied()
            }
        }
    }

    /// Until when a calendar is known, ms.
    pub(crate) fn known_until_ms(&self, calendar: &Arc<Calendar>) -> Option<u64> {
        self.rows.get(calendar).and_then(|bounds| bounds.last().copied())
    }
}

fn seconds_ms(seconds: u32) -> u64 {
    u64::from(seconds.max(1)) * 1000
}
