//! One client's state machine.

use std::collections::VecDeque;

use holdfast_ledger::ReservationId;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::plan::{ROUTE, TOKENS_MAX};
use crate::history::{Answered, Call, Operation, Outcome};

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
    winding_down: bool,
}

impl Session {
    /// A client that draws from `rng`.
    pub fn new(rng: ChaCha8Rng, mix: Mix) -> Self {
        Session { rng, mix, todo: VecDeque::new(), winding_down: false }
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
        (!self.winding_down).then(|| self.new_reservation(now_ms))
    }

    fn new_reservation(&mut self, now_ms: u64) -> (String, Call) {
        let id = ReservationId::from_parts(now_ms, self.rng.random::<u128>());
        let is_hot = self.mix.tenants.len() == 1 || self.rng.random_range(0..100) < self.mix.hot_percent;
        let tenant = if is_hot { 0 } else { self.rng.random_range(1..self.mix.tenants.len()) };
        let call = Call::Reserve {
            tenant: self.mix.tenants[tenant].clone(),
            user: Some(format!("user-{}", self.rng.random_range(0..self.mix.users.max(1)))),
            route: ROUTE.to_owned(),
            amounts: [("tokens".to_owned(), self.rng.random_range(1..=TOKENS_MAX))].into(),
        };
        (id.to_string(), call)
    }

    /// How the call ended that [`Session::next_call`] gave last.
    pub fn observe(&mut self, operation: &Operation) {
        match operation.outcome {
            Outcome::Ok => self.follow_up(operation),
            // The reservation stands as it did, so the call is still to be made. A new
            // reservation that could not be made is forgotten: nothing was promised.
            Outcome::Unavailable if matches!(operation.call, Call::Reserve { .. }) => {}
            Outcome::Unavailable => self.again(operation),
            Outcome::Unknown => self.todo.push_front((operation.id.clone(), Call::Get)),
            Outcome::Rejected => self.after_refusal(operation),
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
            Call::Start { .. } | Call::Release => self.look_again_unless_gone(operation),
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
        let id = || operation.id.clone();
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
                    _ => Call::Start { operation: format!("op-{}", operation.id) },
                };
                self.todo.push_back((id(), next));
            }
            "EXPIRING" => self.todo.push_back((id(), Call::Release)),
            "STARTED" | "USAGE_UNKNOWN" => {
                let reserved = receipt.reserved.get("tokens").copied().unwrap_or(0);
                // What an operation used follows from its id, so that a repeat says the same.
                let actual = actual_of(&operation.id, reserved);
                let bound = receipt.operation.clone().unwrap_or_default();
                let settle =
                    Call::Settle { operation: bound, actual: [("tokens".to_owned(), actual)].into() };
                if self.rng.random_range(0..100) < 5 {
                    self.todo.push_back((id(), Call::Get));
                } else {
                    self.todo.push_back((id(), settle));
                }
            }
            _ => self.after_the_end(operation),
        }
    }

    /// Now and then an ended reservation is read or ended again: it must give the same receipt.
    fn after_the_end(&mut self, operation: &Operation) {
        let is_first_end = matches!(operation.call, Call::Settle { .. } | Call::Release);
        if is_first_end && !self.winding_down {
            match self.rng.random_range(0..100) {
                0..3 => self.todo.push_back((operation.id.clone(), operation.call.clone())),
                3..6 => self.todo.push_back((operation.id.clone(), Call::Get)),
                _ => {}
            }
        }
    }
}

/// Between nothing and a fifth more than was held.
fn actual_of(id: &str, reserved: u64) -> u64 {
    let mixed = id.bytes().fold(17u64, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    mixed % (reserved + reserved / 5 + 1)
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
                Call::Settle { .. } => "SETTLED",
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
}
