//! Timer work: expiry, usage deadlines, forgetting; a bounded amount of it with each entry.

use std::sync::Arc;

use crate::answer::{Receipt, State};
use crate::book::derived::TimerWork;
use crate::book::{Book, Uncovered};
use crate::event::Effect;
use crate::ids::ReservationId;
use crate::limits::{CORRECTION_WINDOW_MS, DROPS_PER_ENTRY_MAX, ID_AHEAD_MS, TIMERS_PER_ENTRY_MAX};
use crate::mutants;
use crate::record::Ended;
use crate::unit::Amounts;

/// Stale timers that are passed over in search of the next live one.
const STALE_LOOK_MAX: usize = 10_000;

impl Book {
    /// Serves due timers, in the order of (due time, reservation id), then lineages that time alone has something to tell
    /// of, then forgets tombstones, adjustments, events, statements and lineages.
    pub(crate) fn do_timer_work(&mut self) {
        self.derived.work = TimerWork::default();
        let now_ms = self.header.clock_ms;
        self.derived.paths.age(now_ms);
        let reservations = &self.reservations;
        let due = self.derived.reservation_timers.take_due(now_ms, TIMERS_PER_ENTRY_MAX, |slot, due_ms| {
            reservations.find(slot).filter(|row| row.due_ms() == Some(due_ms)).map(|row| row.id)
        });
        let mut due = due.into_iter();
        while let Some(slot) = due.next() {
            if self.reservations.get(slot).ended.is_some() {
                // Forgetting moves no amounts: there is nothing to check.
                self.derived.work.forgotten += u32::from(self.forget(slot));
                continue;
            }
            if self.serve(slot).is_err() {
                // The leader owes bounds of epochs: this timer and the rest wait for them.
                for slot in std::iter::once(slot).chain(due) {
                    self.schedule_reservation(slot);
                }
                break;
            }
            self.assert_touched();
        }
        self.wake_lineages(now_ms);
        self.forget_tombstones(now_ms);
        self.forget_adjustments(now_ms);
        self.forget_events(now_ms);
        self.forget_statements(now_ms);
        self.drop_due_lineages(now_ms, DROPS_PER_ENTRY_MAX);
        self.assert_touched();
    }

    fn serve(&mut self, slot: u32) -> Result<(), Uncovered> {
        let state = self.reservations.get(slot).state;
        match state {
            State::Reserved => {
                self.expire(slot)?;
                self.derived.work.expired += 1;
            }
            State::Started if mutants::on("unknown-is-unused") => self.expire(slot)?,
            State::Started => {
                self.make_unknown(slot);
                self.derived.work.unknown += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// RESERVED past its hold and grace → EXPIRED; the units return.
    pub(crate) fn expire(&mut self, slot: u32) -> Result<(), Uncovered> {
        let legs = self.touch_legs(slot)?;
        if !mutants::on("expiry-keeps-the-units") {
            self.end_legs(self.reservations.get(slot).id, &legs, &Amounts::NONE);
        }
        self.end(slot, State::Expired, Amounts::NONE, Amounts::NONE);
        Ok(())
    }

    /// STARTED → USAGE_UNKNOWN; the units stay held.
    pub(crate) fn make_unknown(&mut self, slot: u32) {
        let now_ms = self.header.clock_ms;
        let row = self.reservations.get_mut(slot);
        self.derived.tally.leave(row.state);
        row.state = State::UsageUnknown;
        self.derived.tally.enter(row.state);
        // By report: now. By deadline: since then, whenever an entry came to see it.
        row.unknown_at_ms = now_ms.min(row.expires_at_ms);
        self.derived.unknown.insert((row.unknown_at_ms, row.id));
    }

    /// If the usage deadline has passed without a timer entry, the reservation is unknown from now on.
    pub(crate) fn pass_deadline(&mut self, slot: u32) {
        let row = self.reservations.get(slot);
        if row.state == State::Started && row.state_at(self.header.clock_ms) == State::UsageUnknown {
            self.make_unknown(slot);
        }
    }

    /// Ends a reservation whose legs were ended. Gives its last receipt.
    pub(crate) fn end(&mut self, slot: u32, state: State, actual: Amounts, debt: Amounts) -> Arc<Receipt> {
        let (at_ms, revision) = (self.header.clock_ms, self.header.revision);
        let mut forget_at_ms = self.forget_at_ms(self.reservations.get(slot).id);
        if self.reservations.get(slot).estimate().is_some() {
            let window_ms =
                self.route_of(slot).map_or(CORRECTION_WINDOW_MS, |route| route.correction_window_ms);
            forget_at_ms = forget_at_ms.max(at_ms.saturating_add(window_ms));
        }
        let row = self.reservations.get_mut(slot);
        self.derived.tally.leave(row.state);
        self.derived.tally.enter(state);
        row.state = state;
        row.ended = Some(Box::new(Ended { at_ms, revision, forget_at_ms, actual, debt }));
        if row.unknown_at_ms != 0 {
            self.derived.unknown.remove(&(row.unknown_at_ms, row.id));
        }
        let receipt = Arc::new(row.receipt(at_ms));
        self.derived.reservation_timers.schedule(forget_at_ms, slot);
        self.derived.effects.push(Effect::Ended(Arc::clone(&receipt)));
        receipt
    }

    /// A settled reservation was corrected: it is remembered as if it had ended now, since the correction may
    /// be repeated. Gives its last receipt.
    pub(crate) fn end_again(&mut self, slot: u32, state: State) -> Arc<Receipt> {
        let forget_at_ms = self.forget_at_ms(self.reservations.get(slot).id);
        let row = self.reservations.get_mut(slot);
        row.state = state;
        if let Some(ended) = row.ended.as_mut().filter(|ended| ended.forget_at_ms < forget_at_ms) {
            ended.forget_at_ms = forget_at_ms;
            self.derived.reservation_timers.schedule(forget_at_ms, slot);
        }
        let receipt = self.receipt_of(slot);
        self.derived.effects.push(Effect::Ended(Arc::clone(&receipt)));
        receipt
    }

    /// When what ends now may be forgotten: once its id is under the floor for certain.
    pub(crate) fn forget_at_ms(&self, id: ReservationId) -> u64 {
        let from_ms = self.header.clock_ms.max(id.time_ms());
        from_ms.saturating_add(self.id_window_ms()).saturating_add(ID_AHEAD_MS)
    }

    pub(crate) fn schedule_reservation(&mut self, slot: u32) {
        if let Some(due_ms) = self.reservations.get(slot).due_ms() {
            self.derived.reservation_timers.schedule(due_ms, slot);
        }
    }

    pub(crate) fn clean_timers(&mut self) {
        let reservations = &self.reservations;
        self.derived.reservation_timers.clean(reservations.len(), |slot, due_ms| {
            reservations.find(slot).and_then(|row| row.due_ms()) == Some(due_ms)
        });
        let lineages = &self.lineages;
        self.derived.lineage_timers.clean(lineages.len(), |slot, due_ms| {
            lineages.find(slot).and_then(|row| row.drop_at_ms) == Some(due_ms)
        });
    }

    /// When timer work is due next, ms; the leader proposes a tick at the latest then.
    pub fn next_timer_ms(&self) -> Option<u64> {
        let derived = &self.derived;
        let next = [
            derived.reservation_timers.next_live_ms(STALE_LOOK_MAX, |slot, due_ms| {
                self.reservations.find(slot).and_then(|row| row.due_ms()) == Some(due_ms)
            }),
            derived.tombstone_timers.next_live_ms(STALE_LOOK_MAX, |_, _| true),
            derived.adjustments_due.first().map(|(due_ms, _)| *due_ms),
            derived.wakes.next_ms(),
            self.oldest_event_due_ms(),
            self.oldest_statement_due_ms(),
            derived.lineage_timers.next_live_ms(STALE_LOOK_MAX, |slot, due_ms| {
                self.lineages.find(slot).and_then(|row| row.drop_at_ms) == Some(due_ms)
            }),
        ];
        next.into_iter().flatten().min()
    }
}
