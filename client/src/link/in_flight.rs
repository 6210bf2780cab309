//! Commands that were sent and wait for their answer.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Ending, Time};

/// The unanswered commands of one stream, by correlation. A slot's number comes back under another
/// generation, so that a second answer, or one that comes too late, meets nobody.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    taken: Option<Unanswered>,
}

#[derive(Debug)]
struct Unanswered {
    time: Time,
    reply: oneshot::Sender<Ending>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether anybody still waits for an answer.
    pub(super) fn is_awaited(&self) -> bool {
        self.slots
            .iter()
            .filter_map(|slot| slot.taken.as_ref())
            .any(|unanswered| !unanswered.reply.is_closed())
    }

    /// Keeps the caller's end under a new correlation.
    pub(super) fn insert(&mut self, time: Time, reply: oneshot::Sender<Ending>) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.taken = Some(Unanswered { time, reply });
        u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// Ends the command of a correlation; `false` if there is none.
    pub(super) fn end(&mut self, correlation: u64, ending: Ending) -> bool {
        let index = correlation as u32;
        let generation = (correlation >> 32) as u32;
        match self.slots.get_mut(index as usize) {
            Some(slot) if slot.generation == generation && slot.taken.is_some() => {
                self.end_slot(index, ending);
                true
            }
            _ => false,
        }
    }

    /// Ends every command whose time is up on a stream whose member was last `heard` to decide something, and
    /// gives the next time that one may be.
    pub(super) fn expire(
        &mut self,
        now: Instant,
        heard: Instant,
        mut ending: impl FnMut() -> Ending,
    ) -> Option<Instant> {
        let mut next = None;
        for index in 0..self.slots.len() {
            match self.slots[index].taken.as_ref().map(|unanswered| unanswered.time.is_up_at(heard)) {
                Some(up) if up <= now => self.end_slot(index as u32, ending()),
                Some(up) => next = Some(next.map_or(up, |next: Instant| next.min(up))),
                None => {}
            }
        }
        next
    }

    /// Ends everything.
    pub(super) fn end_all(&mut self, mut ending: impl FnMut() -> Ending) {
        for index in 0..self.slots.len() {
            if self.slots[index].taken.is_some() {
                self.end_slot(index as u32, ending());
            }
        }
    }

    fn end_slot(&mut self, index: u32, ending: Ending) {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(unanswered) = slot.taken.take() {
            self.free.push(index);
            // A caller that has gone away needs no answer.
            let _ = unanswered.reply.send(ending);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;

    fn until(deadline: Instant) -> Time {
        Time { deadline, since: deadline, patience: Duration::from_secs(1) }
    }

    fn lost() -> Ending {
        Ending::Lost("for a test".into())
    }

    #[test]
    fn a_second_answer_meets_nobody_even_when_the_slot_is_taken_again() {
        let mut in_flight = InFlight::default();
        let now = Instant::now();
        let (first, mut first_answer) = oneshot::channel();
        let correlation = in_flight.insert(until(now), first);
        assert!(in_flight.end(correlation, lost()));
        assert!(first_answer.try_recv().is_ok());
        let (second, mut second_answer) = oneshot::channel();
        let again = in_flight.insert(until(now), second);
        assert_ne!(correlation, again);
        assert!(!in_flight.end(correlation, lost()));
        assert!(second_answer.try_recv().is_err());
        assert_eq!((in_flight.len(), in_flight.is_awaited()), (1, true));
        drop(second_answer);
        assert_eq!((in_flight.len(), in_flight.is_awaited()), (1, false));
        assert!(!in_flight.end(u64::MAX, lost()));
    }

    #[test]
    fn only_what_is_due_expires() {
        let mut in_flight = InFlight::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(5);
        let (due, mut due_answer) = oneshot::channel();
        let (early, mut early_answer) = oneshot::channel();
        in_flight.insert(until(now), due);
        in_flight.insert(until(later), early);
        assert_eq!(in_flight.expire(now, now, lost), Some(later));
        assert!(due_answer.try_recv().is_ok());
        assert!(early_answer.try_recv().is_err());
        in_flight.end_all(lost);
        assert!(early_answer.try_recv().is_ok());
        assert_eq!((in_flight.len(), in_flight.expire(now, now, lost)), (0, None));
    }

    /// Callers that wait behind thousands of others of a busy member must not all try again elsewhere.
    #[test]
    fn a_member_that_is_heard_to_decide_has_until_the_deadline() {
        let mut in_flight = InFlight::default();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let (sender, mut answer) = oneshot::channel();
        in_flight.insert(Time { deadline: at(10), since: began, patience: Duration::from_secs(2) }, sender);
        assert_eq!(in_flight.expire(at(1), began, lost), Some(at(2)));
        assert_eq!(in_flight.expire(at(2), at(1), lost), Some(at(3)), "it decided something a second ago");
        assert_eq!(in_flight.expire(at(9), at(9), lost), Some(at(10)), "never past the deadline");
        assert!(answer.try_recv().is_err());
        assert_eq!(in_flight.expire(at(9), at(7), lost), None);
        assert!(answer.try_recv().is_ok(), "it has been silent for two seconds");
    }
}
