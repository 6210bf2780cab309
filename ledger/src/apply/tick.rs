//! Tick: an entry without callers, so that due timer work gets its entry.

use crate::answer::Answer;
use crate::book::Book;

impl Book {
    /// The work itself was done when the entry began, as with every entry; this says how much it was.
    pub(super) fn apply_tick(&mut self) -> Answer {
        let work = self.derived.work;
        let more = self.next_timer_ms().is_some_and(|due| due <= self.header.clock_ms);
        Answer::Ticked { expired: work.expired, unknown: work.unknown, forgotten: work.forgotten, more }
    }
}
