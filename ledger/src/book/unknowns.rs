//! The reservations whose usage nobody knows, for those who have to find out.

use std::ops::Bound;

use crate::answer::State;
use crate::book::{Book, Found};
use crate::ids::{ReservationId, TenantId};
use crate::query::UnknownUsage;

impl Book {
    /// Reservations whose usage is unknown at max(book time, `at_ms`), oldest first, at most `most` of them:
    /// those behind a place, the (since when, id) of the last one seen. `tenant`: only this one's.
    pub fn unknowns(
        &self,
        tenant: Option<&TenantId>,
        after: Option<(u64, ReservationId)>,
        at_ms: u64,
        most: usize,
    ) -> Vec<UnknownUsage> {
        let now_ms = at_ms.max(self.header.clock_ms);
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        let of_tenant = |slot: u32| {
            tenant.is_none_or(|tenant| self.reservations.get(slot).hold.subject.tenant == *tenant)
        };
        let stored = self.derived.unknown.range((begin, Bound::Unbounded)).filter_map(|(since_ms, id)| {
            match self.find(*id) {
                Some(Found::Reservation(slot)) => Some((*since_ms, *id, slot)),
                _ => None,
            }
        });
        let mut found: Vec<_> = stored.filter(|(.., slot)| of_tenant(*slot)).take(most).collect();
        // Those whose deadline has passed and whose timer no entry has served yet.
        let overdue = self.derived.reservation_timers.due_by(now_ms).filter_map(|(due_ms, slot)| {
            let row = self.reservations.find(slot)?;
            (row.state == State::Started && row.expires_at_ms == due_ms).then_some((due_ms, row.id, slot))
        });
        found.extend(overdue.filter(|(since_ms, id, slot)| {
            after.is_none_or(|after| (*since_ms, *id) > after) && of_tenant(*slot)
        }));
        found.sort_unstable();
        found.dedup();
        found.truncate(most);
        let usage = |(since_ms, _, slot)| UnknownUsage {
            since_ms,
            receipt: self.reservations.get(slot).receipt(now_ms),
        };
        found.into_iter().map(usage).collect()
    }
}
