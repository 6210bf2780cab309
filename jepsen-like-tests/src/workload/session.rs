//! One client's state machine.

use std::collections::VecDeque;

use holdfast_ledger::ReservationId;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plan::{ROUTE, SLOTS_WANTED, TOKENS_MAX};
use crate::history::{Answered, Call, FrozenSubject, Operation, Outcome, ReceiptFacts, Words};

/// How a session's calls are distributed.
#[derive(Clone, Debug)]
pub struct Mix {
    /// The tenants; the first is the hot one.
    pub tenants: Vec<String>,
    /// Users of each tenant.
    pub users: u32,
    /// Of a hundred reservations, how many are on the hot tenant.
    pub hot_percent: u32,
}

/// A client: says what to call next, and is told how it ended. It has one call open at a time,
/// and follows every reservation to its end, unless told to [`Session::wind_down`].
pub struct Session {
    rng: ChaCha8Rng,
    mix: Mix,
    todo: VecDeque<(String, Call)>,
    /// Whom it froze, and how many reservations it makes before it lifts that.
    frozen: Option<(FrozenSubject, u32)>,
    winding_down: bool,
}

impl Session {
    /// A client that draws from `rng`.
    pub fn new(rng: ChaCha8Rng, mix: Mix) -> Self {
        Session { rng, mix, todo: VecDeque::new(), frozen: None, winding_down: false }
    }

    /// Makes no new reservations from now on; what is open is still followed to its end.
    pub fn wind_down(&mut self) {
        self.winding_down = true;
    }

    /// The next call and the id that it concerns; `None` once it has wound down.
    pub fn next_call(&mut self, now_ms: u64) -> Option<(String, Call)> {
        if let Some(next) = self.todo.pop_front() {
            return Some(next);
        }
        match &mut self.frozen {
            Some((_, left)) if *left > 0 && !self.winding_down => *left -= 1,
            Some((subject, _)) => return Some((String::new(), Call::Unfreeze { subject: subject.clone() })),
            None => {}
        }
        (!self.winding_down).then(|| self.new_work(now_ms))
    }

    /// A new reservation; seldom somebody is frozen instead.
    fn new_work(&mut self, now_ms: u64) -> (String, Call) {
        let is_hot = self.mix.tenants.len() == 1 || self.rng.random_range(0..100) < self.mix.hot_percent;
        let tenant = if is_hot { 0 } else { self.rng.random_range(1..self.mix.tenants.len()) };
        let tenant = self.mix.tenants[tenant].clone();
        let user = Some(format!("user-{}", self.rng.random_range(0..self.mix.users.max(1))));
        let route = ROUTE.to_owned();
        if self.frozen.is_none() && self.rng.random_range(0..200) == 0 {
            let subject = FrozenSubject { tenant, user, route };
            self.frozen = Some((subject.clone(), self.rng.random_range(1..8)));
            return (String::new(), Call::Freeze { subject });
        }
        let id = self.new_id(now_ms);
        let mut amounts: Words = [("tokens".to_owned(), self.rng.random_range(1..=TOKENS_MAX))].into();
        let mut minimum = Words::new();
        // Slots are what there is too little of.
        if self.rng.random_range(0..100) < 15 {
            amounts.insert("slots".to_owned(), SLOTS_WANTED);
            minimum.insert("slots".to_owned(), 1);
        }
        let key = (self.rng.random_range(0..100) < 20).then(|| format!("key-{id}"));
        (id, Call::Reserve { tenant, user, route, amounts, minimum, key })
    }

    fn new_id(&mut self, now_ms: u64) -> String {
        ReservationId::from_parts(now_ms, self.rng.random::<u128>()).to_string()
    }

    /// How the call ended that [`Session::next_call`] gave last.
    pub fn observe(&mut self, operation: &Operation) {
        if let Call::Freeze { .. } | Call::Unfreeze { .. } = operation.call {
            return self.after_operators(operation);
        }
        match operation.outcome {
            Outcome::Ok => self.follow_up(operation),
            // The reservation stands as it did, so the call is still to be made. A new
            // reservation that could not be made is forgotten: nothing was promised.
            Outcome::Unavailable if matches!(operation.call, Call::Reserve { .. }) => {}
            Outcome::Unavailable => self.again(operation),
            Outcome::Unknown => self.after_unknown(operation),
            Outcome::Rejected => self.after_refusal(operation),
        }
    }

    /// A freeze that may stand is lifted in the end, by as many calls as it takes.
    fn after_operators(&mut self, operation: &Operation) {
        let is_lifted = matches!(operation.call, Call::Unfreeze { .. }) && operation.outcome == Outcome::Ok;
        let never_was = matches!(operation.call, Call::Freeze { .. })
            && matches!(operation.outcome, Outcome::Unavailable | Outcome::Rejected);
        if is_lifted || never_was {
            self.frozen = None;
        }
    }

    /// Looks the id up. One who has a key may ask for the same again under another id first, as one who
    /// has lost the id would.
    fn after_unknown(&mut self, operation: &Operation) {
        self.todo.push_front((operation.id.clone(), Call::Get));
        if let (Call::Reserve { key: Some(_), .. }, Ok(id)) =
            (&operation.call, operation.id.parse::<ReservationId>())
            && !self.winding_down
        {
            let id = self.new_id(id.time_ms());
            self.todo.push_front((id, operation.call.clone()));
        }
    }

    fn again(&mut self, operation: &Operation) {
        self.todo.push_front((operation.id.clone(), operation.call.clone()));
    }

    fn after_refusal(&mut self, operation: &Operation) {
        match operation.call {
            // Nothing stands under the id; a reserve that may still be on its way must find a tombstone.
            Call::Get => self.todo.push_front((operation.id.clone(), Call::Release)),
            // Not in the state that was thought: look, and go on from there.
            Call::Start { .. }
            | Call::Settle { .. }
            | Call::ReportUnknown { .. }
            | Call::Resolve { .. }
            | Call::Release => self.look_again_unless_gone(operation),
            _ => {}
        }
    }

    fn look_again_unless_gone(&mut self, operation: &Operation) {
        let is_gone = operation.code.as_deref() == Some("NOT_FOUND");
        if !is_gone {
            self.todo.push_front((operation.id.clone(), Call::Get));
        }
    }

    fn follow_up(&mut self, operation: &Operation) {
        let id = || operation.about().to_owned();
        let receipt = match &operation.answered {
            Some(Answered::Receipt(receipt)) => receipt,
            Some(Answered::Absent) => return self.todo.push_front((id(), Call::Release)),
            _ => return,
        };
        match receipt.state.as_str() {
            "RESERVED" => {
                let next = match self.rng.random_range(0..100) {
                    0..5 => operation.call.clone(),
                    5..10 => Call::Get,
                    10..25 => Call::Release,
                    _ => Call::Start { operation: format!("op-{}", receipt.id) },
                };
                self.todo.push_back((id(), next));
            }
            "EXPIRING" => self.todo.push_back((id(), Call::Release)),
            "STARTED" | "USAGE_UNKNOWN" => {
                let next = match self.rng.random_range(0..100) {
                    0..5 => Call::Get,
                    5..10 => Call::ReportUnknown { operation: receipt.operation.clone().unwrap_or_default() },
                    _ => end_of(receipt),
                };
                self.todo.push_back((id(), next));
            }
            "SETTLED" | "SETTLED_WITH_DEBT" if is_to_correct(receipt) => {
                let operation = receipt.operation.clone().unwrap_or_default();
                self.todo.push_back((id(), Call::Correct { operation, actual: actual_of(receipt) }));
            }
            _ => self.after_the_end(operation),
        }
    }

    /// Now and then an ended reservation is read or ended again: it must give the same receipt.
    fn after_the_end(&mut self, operation: &Operation) {
        let is_first_end = matches!(
            operation.call,
            Call::Settle { .. } | Call::Correct { .. } | Call::Resolve { .. } | Call::Release
        );
        if is_first_end && !self.winding_down {
            match self.rng.random_range(0..100) {
                0..3 => self.again(operation),
                3..6 => self.todo.push_back((operation.id.clone(), Call::Get)),
                _ => {}
            }
        }
    }
}

/// How an operation ends. That, and what it used, follows from its id, so that a repeat says the same.
fn end_of(receipt: &ReceiptFacts) -> Call {
    let (operation, actual) = (receipt.operation.clone().unwrap_or_default(), actual_of(receipt));
    match (mix_of(&receipt.id) % 8, receipt.state.as_str()) {
        // Its executor does not know yet. What is not said is taken as held.
        (0, "STARTED") => Call::Settle { operation, actual: Words::new(), estimated: true },
        // Its executor never came back.
        (1..4, "USAGE_UNKNOWN") => Call::Resolve { actual },
        _ => Call::Settle { operation, actual, estimated: false },
    }
}

fn is_to_correct(receipt: &ReceiptFacts) -> bool {
    receipt.extras.estimated && receipt.extras.corrected.is_none()
}

/// Between nothing and a fifth more than was held.
fn actual_of(receipt: &ReceiptFacts) -> Words {
    let reserved = receipt.reserved.get("tokens").copied().unwrap_or(0);
    [("tokens".to_owned(), mix_of(&receipt.id) % (reserved + reserved / 5 + 1))].into()
}

fn mix_of(id: &str) -> u64 {
    id.bytes().fold(17u64, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture;
    use crate::seed;

    fn session() -> Session {
        let mix = Mix { tenants: super::super::tenant_names(3), users: 2, hot_percent: 50 };
        Session::new(seed::stream(1, "session", 0), mix)
    }

    #[test]
    fn an_unknown_reserve_is_looked_up_and_closed() {
        let mut session = session();
        let (id, call) = session.next_call(fixture::AT_MS).unwrap();
        let Call::Reserve { tenant, user, route, amounts, minimum, key: _ } = call else { panic!() };
        let call = Call::Reserve { tenant, user, route, amounts, minimum, key: None };
        let mut operation = fixture::reserve(1, 0, 10, 7);
        (operation.id, operation.call) = (id.clone(), call);
        (operation.outcome, operation.answered) = (Outcome::Unknown, None);
        session.observe(&operation);
        let (asked, call) = session.next_call(fixture::AT_MS).unwrap();
        assert_eq!((asked, &call), (id, &Call::Get));
        operation.call = call;
        (operation.outcome, operation.answered) = (Outcome::Ok, Some(Answered::Absent));
        session.observe(&operation);
        assert_eq!(session.next_call(fixture::AT_MS).unwrap().1, Call::Release);
    }

    #[test]
    fn a_session_winds_down_with_nothing_open() {
        let mut session = session();
        session.next_call(fixture::AT_MS).unwrap();
        session.wind_down();
        let mut operation = fixture::reserve(1, 0, 10, 7);
        session.observe(&operation);
        let mut steps = 0;
        while let Some((_, call)) = session.next_call(fixture::AT_MS) {
            steps += 1;
            assert!(steps < 100, "does not end");
            let state = match call {
                Call::Settle { .. } | Call::Resolve { .. } => "SETTLED",
                Call::ReportUnknown { .. } => "USAGE_UNKNOWN",
                Call::Release => "RELEASED",
                Call::Start { .. } => "STARTED",
                _ => operation.receipt().unwrap().state.as_str(),
            }
            .to_owned();
            operation.call = call;
            fixture::receipt_mut(&mut operation).state = state;
            session.observe(&operation);
        }
        assert!(operation.receipt().unwrap().rank() == 3);
    }

    #[test]
    fn an_unknown_reserve_with_a_key_is_asked_for_again_under_another_id() {
        let mut session = session();
        let mut operation = fixture::reserve(1, 0, 10, 7);
        if let Call::Reserve { key, .. } = &mut operation.call {
            *key = Some("k".into());
        }
        (operation.outcome, operation.answered) = (Outcome::Unknown, None);
        session.observe(&operation);
        let (again, call) = session.next_call(fixture::AT_MS).unwrap();
        assert_ne!(again, operation.id);
        assert_eq!(call, operation.call);
        // The key stood for the first id: that one is followed, and looked up as well.
        let mut answered = fixture::reserve(1, 20, 30, 7);
        (answered.id, answered.call) = (again, call);
        session.observe(&answered);
        let next: Vec<_> = std::iter::from_fn(|| session.todo.pop_front()).collect();
        assert_eq!(next.len(), 2);
        assert!(next.iter().all(|(id, _)| *id == operation.id), "{next:?}");
    }

    #[test]
    fn an_estimate_is_corrected() {
        let mut session = session();
        session.wind_down();
        let mut operation = fixture::reserve(1, 0, 10, 7);
        let receipt = fixture::receipt_mut(&mut operation);
        (receipt.state, receipt.extras.estimated) = ("SETTLED".to_owned(), true);
        session.observe(&operation);
        let (_, call) = session.next_call(fixture::AT_MS).unwrap();
        let Call::Correct { actual, .. } = call else { panic!("{call:?}") };
        fixture::receipt_mut(&mut operation).extras.corrected = Some(actual);
        session.observe(&operation);
        assert_eq!(session.next_call(fixture::AT_MS), None);
    }

    #[test]
    fn whom_it_froze_it_lets_go_in_the_end() {
        let mut session = session();
        let subject = FrozenSubject { tenant: "hot".into(), user: None, route: ROUTE.into() };
        session.frozen = Some((subject.clone(), 5));
        session.wind_down();
        let (id, call) = session.next_call(fixture::AT_MS).unwrap();
        assert_eq!(call, Call::Unfreeze { subject });
        let mut operation = fixture::reserve(1, 0, 10, 7);
        (operation.id, operation.call, operation.outcome) = (id, call, Outcome::Unknown);
        session.observe(&operation);
        assert!(session.next_call(fixture::AT_MS).is_some(), "it may still stand");
        operation.outcome = Outcome::Ok;
        session.observe(&operation);
        assert_eq!(session.next_call(fixture::AT_MS), None);
    }
}
