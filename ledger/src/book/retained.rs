//! What a frozen book still knows of the past, and from which revision on that is everything: for a history
//! index that lost it. The book itself never reads this.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::book::BookSnapshot;
use crate::book::reservation::Kept;
use crate::event::{Effect, Event};
use crate::limits::{ID_AHEAD_MS, ID_WINDOW_MS_MIN, PLANS_KEPT_MIN};

/// Ended reservations that are remembered and events that are kept, oldest first. Statements are not among
/// them: they do not say which revision archived them.
#[derive(Debug)]
pub struct Retained<'a> {
    /// Every reservation that ended and every event from this revision on is here.
    pub complete_from_revision: u64,
    found: std::collections::btree_map::IntoValues<Place, What<'a>>,
}

/// By revision, then ended reservations by id, then events by sequence.
type Place = (u64, u8, u128);

#[derive(Debug)]
enum What<'a> {
    Ended(&'a Kept),
    Corrected(&'a Kept),
    Event(&'a Arc<Event>),
}

impl BookSnapshot {
    /// The newest `records_max` of them.
    pub fn retained(&self, records_max: usize) -> Retained<'_> {
        let mut found = BTreeMap::new();
        let mut complete_from_revision = self.events_from_revision().max(self.ended_from_revision());
        let events = self.events.iter().map(|event| {
            let place = (event.revision, 1, u128::from(event.sequence));
            (place, What::Event(event))
        });
        let ended = self.reservations.iter().filter_map(|(_, kept)| {
            let ended = kept.ended.as_ref()?;
            Some(((ended.revision, 0, kept.id.0), What::Ended(kept)))
        });
        let corrected = self.reservations.iter().filter_map(|(_, kept)| {
            let correction = kept.estimate()?.correction.as_ref()?;
            Some(((correction.revision, 0, kept.id.0), What::Corrected(kept)))
        });
        for (place, what) in events.chain(ended).chain(corrected) {
            found.insert(place, what);
            if found.len() > records_max
                && let Some(((revision, ..), _)) = found.pop_first()
            {
                complete_from_revision = complete_from_revision.max(revision + 1);
            }
        }
        Retained { complete_from_revision, found: found.into_values() }
    }

    /// Every event from this revision on is kept.
    fn events_from_revision(&self) -> u64 {
        let header = self.header();
        match self.events.front() {
            Some(oldest) if oldest.sequence > 1 => oldest.revision + 1,
            None if header.event_sequence > 0 => header.revision + 1,
            _ => 1,
        }
    }

    /// Every reservation that ended from this revision on is remembered.
    fn ended_from_revision(&self) -> u64 {
        let Some(forgotten_ms) = self.forgotten_until_ms() else { return 1 };
        // What is known to have happened after that, at which revision: revisions and times grow together.
        let rows = self.reservations.iter().flat_map(|(_, kept)| {
            let ended = kept.ended.as_ref().map(|ended| (ended.at_ms, ended.revision + 1));
            [Some((kept.reserved_at_ms, kept.reserved_revision)), ended]
        });
        // Timer work, an event of it or an end, has the revision of the command before, which may be far older.
        let events = self.events.iter().map(|event| (event.at_ms, event.revision + 1));
        let since = rows.flatten().chain(events).filter(|(at_ms, _)| *at_ms > forgotten_ms);
        since.map(|(_, revision)| revision).min().unwrap_or(self.header().revision + 1)
    }

    /// Reservations that ended after this may not have been forgotten, ms; `None`: none ever was.
    /// One is remembered for the id window of the plan in force at its end, and [`ID_AHEAD_MS`].
    fn forgotten_until_ms(&self) -> Option<u64> {
        let before =
            |window_ms: u64| self.header().clock_ms.checked_sub(window_ms.saturating_add(ID_AHEAD_MS));
        // Before these, plans may be missing.
        let newest = &self.plans[self.plans.len().saturating_sub(PLANS_KEPT_MIN)..];
        let since_ms = newest.first()?.published.published_at_ms;
        let window_ms = newest.iter().map(|plan| plan.published.plan.id_window_ms).min()?;
        let under_these = before(window_ms).filter(|until_ms| *until_ms >= since_ms);
        if self.plans.len() < PLANS_KEPT_MIN {
            return under_these;
        }
        // One that is missing may have had the shortest window of all.
        let under_older = before(ID_WINDOW_MS_MIN).map(|until_ms| until_ms.min(since_ms));
        under_these.max(under_older)
    }
}

impl Iterator for Retained<'_> {
    type Item = Effect;

    fn next(&mut self) -> Option<Effect> {
        Some(match self.found.next()? {
            // Its state is final, whatever the time.
            What::Ended(kept) => Effect::Ended(Arc::new(kept.receipt_at_end())),
            What::Corrected(kept) => Effect::Ended(Arc::new(kept.receipt(0))),
            What::Event(event) => Effect::Event(Arc::clone(event)),
        })
    }
}
