//! Events: numbered, kept for a while in the book, and handed to the history index.

use std::sync::Arc;

use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_128;

use crate::answer::Tier;
use crate::book::Book;
use crate::book::adjustments::write_receipt;
use crate::book::bytes::RowBytes;
use crate::book::judge::{ratio, tier_of};
use crate::book::lineage::write_key;
use crate::book::small::write_scope;
use crate::event::{Effect, Event, EventKind};
use crate::ids::UserId;
use crate::limits::{EVENTS_KEPT_MAX, EVENTS_KEPT_MS, TIMERS_PER_ENTRY_MAX};
use crate::plan::Level;
use crate::record::Lane;

impl Book {
    pub(crate) fn push_event(&mut self, kind: EventKind) {
        self.header.event_sequence += 1;
        let event = Arc::new(Event {
            sequence: self.header.event_sequence,
            at_ms: self.header.clock_ms,
            revision: self.header.revision,
            kind,
        });
        self.small_sum = self.small_sum.wrapping_add(hash_event(&event));
        self.events.push_back(Arc::clone(&event));
        self.derived.effects.push(Effect::Event(event));
        while self.events.len() > EVENTS_KEPT_MAX {
            self.forget_oldest_event();
        }
    }

    fn forget_oldest_event(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.small_sum = self.small_sum.wrapping_sub(hash_event(&oldest));
        }
    }

    /// Forgets events that have been kept for as long as the plan says.
    pub(crate) fn forget_events(&mut self, now_ms: u64) {
        for _ in 0..TIMERS_PER_ENTRY_MAX {
            if self.oldest_event_due_ms().is_none_or(|due_ms| due_ms > now_ms) {
                return;
            }
            self.forget_oldest_event();
        }
    }

    /// When the oldest event has been kept for as long as the plan says, ms.
    pub(crate) fn oldest_event_due_ms(&self) -> Option<u64> {
        let kept_ms = self.plan().map_or(EVENTS_KEPT_MS, |plan| plan.plan.events_kept_ms);
        self.events.front().map(|event| event.at_ms.saturating_add(kept_ms))
    }

    /// The number of the first event that is kept; of the next one, if none is.
    pub fn first_event(&self) -> u64 {
        self.events.front().map_or(self.header.event_sequence + 1, |event| event.sequence)
    }

    /// The number of the last event there was; 0: none yet.
    pub fn last_event(&self) -> u64 {
        self.header.event_sequence
    }

    /// The events that are kept from a number on, in order. Their numbers are dense.
    pub fn events_from(&self, sequence: u64) -> impl Iterator<Item = &Arc<Event>> {
        let passed = usize::try_from(sequence.saturating_sub(self.first_event())).unwrap_or(usize::MAX);
        self.events.range(passed.min(self.events.len())..)
    }

    /// Announces the thresholds that a lineage has reached, each once per epoch.
    pub(crate) fn announce_crossings(&mut self, slot: u32) {
        let Some(row) = self.lineages.find(slot) else { return };
        let Some(ladder) = row.ladder else { return };
        let steps =
            [(ladder.alert_percent, Tier::DegradedLight), (ladder.degrade_percent, Tier::DegradedHeavy)];
        let all = steps.iter().fold(0, |all, (percent, _)| all | bit(*percent));
        if row.crossed & all == all {
            return;
        }
        let Some(ratio) = ratio(row, 0) else { return };
        let reached = tier_of(&ladder, ratio);
        let fresh =
            steps.into_iter().filter(|(percent, tier)| *tier <= reached && row.crossed & bit(*percent) == 0);
        let fresh: SmallVec<[(u8, Tier); 2]> = fresh.collect();
        let (lineage, epoch_start_ms) = (Arc::clone(&row.key), row.current.epoch_start_ms);
        for (percent, tier) in fresh {
            self.lineages.get_mut(slot).crossed |= bit(percent);
            let lineage = Arc::clone(&lineage);
            self.push_event(EventKind::Crossed { lineage, epoch_start_ms, percent, tier });
        }
    }
}

/// A threshold in [`crate::record::Lineage::crossed`].
fn bit(percent: u8) -> u128 {
    1 << percent.min(127)
}

pub(crate) fn hash_event(event: &Event) -> u128 {
    let mut out = RowBytes::default();
    out.put_u8(5);
    out.put_u64(event.sequence);
    out.put_u64(event.at_ms);
    out.put_u64(event.revision);
    write_kind(&event.kind, &mut out);
    xxh3_128(out.as_slice())
}

fn write_kind(kind: &EventKind, out: &mut RowBytes) {
    match kind {
        EventKind::Crossed { lineage, epoch_start_ms, percent, tier } => {
            out.put_u8(1);
            write_key(lineage, out);
            out.put_option(*epoch_start_ms);
            out.put_u8(*percent);
            out.put_u8(*tier as u8);
        }
        EventKind::Indebted { lineage, reservation } => {
            out.put_u8(2);
            write_key(lineage, out);
            out.put_u128(reservation.map_or(0, |reservation| reservation.0));
        }
        EventKind::Repaid { lineage } => {
            out.put_u8(3);
            write_key(lineage, out);
        }
        EventKind::Forgiven { lineage, amount } => {
            out.put_u8(4);
            write_key(lineage, out);
            out.put_u128(*amount);
        }
        EventKind::BoostEnded { lineage, boost } => {
            out.put_u8(12);
            write_key(lineage, out);
            out.put_u128(boost.0);
        }
        EventKind::Breached { reservation, scope, lane, unit, limit, frozen } => {
            out.put_u8(5);
            out.put_u128(reservation.0);
            write_scope(scope, out);
            out.put_u8(*unit as u8);
            out.put_optional_text(limit.as_ref().map(|limit| limit.as_str()));
            write_level(*frozen, out);
            out.put_u8(u8::from(*lane == Lane::Shadow));
        }
        EventKind::Unfrozen { scope, actor, reason } => {
            out.put_u8(6);
            write_scope(scope, out);
            out.put_text(actor.as_str());
            out.put_text(reason);
        }
        EventKind::UnknownResolved { reservation, tenant, user, route, actor, reason } => {
            out.put_u8(10);
            out.put_u128(reservation.0);
            out.put_text(tenant.as_str());
            out.put_optional_text(user.as_ref().map(UserId::as_str));
            out.put_text(route.as_str());
            out.put_text(actor.as_str());
            out.put_text(reason);
        }
        EventKind::Frozen { scope, actor, reason } => {
            out.put_u8(11);
            write_scope(scope, out);
            out.put_text(actor.as_str());
            out.put_text(reason);
        }
        EventKind::Adjusted(receipt) => {
            out.put_u8(9);
            write_receipt(receipt, out);
        }
        EventKind::PlanPublished { generation, forced, actor } => {
            out.put_u8(7);
            out.put_u64(*generation);
            out.put_u8(u8::from(*forced));
            out.put_text(actor.as_str());
        }
        EventKind::RolledBack { generation, restored, first, actor } => {
            out.put_u8(20);
            out.put_u64(*generation);
            out.put_u64(*restored);
            out.put_u64(*first);
            out.put_text(actor.as_str());
        }
        EventKind::WebhookSet { tenant, removed, actor } => {
            out.put_u8(25);
            out.put_text(tenant.as_str());
            out.put_u8(u8::from(*removed));
            out.put_text(actor.as_str());
        }
        EventKind::TenantSet { generation, tenant, actor } => {
            out.put_u8(8);
            out.put_u64(*generation);
            out.put_text(tenant.as_str());
            out.put_text(actor.as_str());
        }
    }
}

fn write_level(level: Level, out: &mut RowBytes) {
    out.put_u8(level as u8);
}
