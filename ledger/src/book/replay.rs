//! The touch: bringing a lineage from where it stands to now, through every roll, refill and changed rule
//! that was passed over, in time order. The state at an instant so depends on the book's history only,
//! never on which lineages were touched in between.

use std::sync::Arc;

use crate::book::calendars::{Calendars, Uncovered};
use crate::book::generations::Generations;
use crate::book::lineage::Sink;
use crate::plan::Rule;
use crate::record::{Lineage, LineageKey};
use crate::unit::Unit;

impl Lineage {
    /// Whether a touch would change anything.
    pub(crate) fn is_behind(&self, now_ms: u64, generation: u64) -> bool {
        self.seen_generation != generation
            || self.epoch_end_ms.is_some_and(|end| end <= now_ms && self.rule.is_some())
            || (self.replayed_ms < now_ms && matches!(self.rule, Some(Rule::Bucket { .. })))
            || self.next_boost_end_ms().is_some_and(|end| end <= now_ms)
    }

    /// Brings the lineage to now. On an error it is left half way: replay a copy where that matters.
    pub(crate) fn replay(
        &mut self,
        now_ms: u64,
        generation: u64,
        generations: &Generations,
        calendars: &Calendars,
        sink: &mut Sink,
    ) -> Result<(), Uncovered> {
        if self.seen_generation != generation {
            for change in generations.changes_after(&self.key, self.seen_generation) {
                self.advance(change.at_ms, calendars, sink)?;
                self.change(&change, calendars, sink)?;
            }
            self.seen_generation = generation;
        }
        self.advance(now_ms, calendars, sink)
    }

    /// Whether replaying to now cannot fail halfway: nothing but a bucket's refill is due.
    pub(crate) fn replays_simply(&self, now_ms: u64, generation: u64) -> bool {
        self.seen_generation == generation && self.epoch_end_ms.is_none_or(|end| end > now_ms)
    }
}

/// A lineage that was never seen, as it stands now: as if it had been there, untouched, since its limit came
/// into force. `None`: no plan that is kept has the limit.
pub(crate) fn open_lineage(
    key: &Arc<LineageKey>,
    unit: Unit,
    now_ms: u64,
    generation: u64,
    generations: &Generations,
    calendars: &Calendars,
) -> Result<Option<Lineage>, Uncovered> {
    let mut sink = Sink::default();
    let changes = generations.changes_after(key, 0);
    let Some(first) = changes.iter().position(|change| change.terms.is_some()) else { return Ok(None) };
    let Some(terms) = changes[first].terms.clone() else { return Ok(None) };
    let at_ms = changes[first].at_ms;
    // A key of its own, by which paths tell this row from an earlier one of the same lineage.
    let key = Arc::new(LineageKey::clone(key));
    let mut lineage =
        Lineage::open(key, unit, changes[first].generation, at_ms, terms, calendars, &mut sink)?;
    lineage.replay(now_ms, generation, generations, calendars, &mut sink)?;
    Ok(Some(lineage))
}
