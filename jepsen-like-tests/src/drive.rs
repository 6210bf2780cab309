//! Drives one client: asks its session for calls, makes them through a door, writes down what came of it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::history::{Answered, Call, Operation, Outcome};
use crate::workload::Session;

/// How one call ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// As its caller knows it.
    pub outcome: Outcome,
    /// The error's word.
    pub code: Option<String>,
    /// The revision in the answer.
    pub revision: Option<u64>,
    /// What the answer said.
    pub answered: Option<Answered>,
}

/// A way into the cluster, on real or on virtual time.
pub trait Door {
    /// Makes the call about the reservation `id`, retrying by itself with the same id for as long as it sees fit.
    fn call(&mut self, id: &str, call: &Call) -> impl Future<Output = Ended>;
    /// Waits a little after a call that could not be made.
    fn pause(&mut self) -> impl Future<Output = ()>;
    /// What a client does between two calls; nothing, unless the run is to have fewer calls.
    fn think(&mut self) -> impl Future<Output = ()> {
        std::future::ready(())
    }
    /// Microseconds since the run began, on the clock that all clients share.
    fn now_us(&self) -> u64;
    /// Milliseconds since the Unix epoch, for new ids.
    fn wall_ms(&self) -> u64;
}

/// Where all clients of a run write their operations down, in the order of return.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<Operation>>>);

impl Recorder {
    /// Writes one down.
    pub fn push(&self, operation: Operation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there are none yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at all of them.
    pub fn read<T>(&self, look: impl FnOnce(&[Operation]) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes one call and writes it down.
pub async fn call_once<D: Door>(
    client: u32,
    door: &mut D,
    recorder: &Recorder,
    id: String,
    call: Call,
) -> Operation {
    let invoked_us = door.now_us();
    let ended = door.call(&id, &call).await;
    let operation = Operation {
        client,
        id,
        call,
        invoked_us,
        returned_us: Some(door.now_us()),
        outcome: ended.outcome,
        code: ended.code,
        revision: ended.revision,
        digest: None,
        answered: ended.answered,
    };
    recorder.push(operation.clone());
    operation
}

/// Drives a session until it has wound down; `is_winding_down` is asked before every call, and
/// `is_over` ends it at once with whatever is open.
pub async fn drive<D: Door>(
    client: u32,
    mut session: Session,
    mut door: D,
    recorder: Recorder,
    is_winding_down: impl Fn() -> bool,
    is_over: impl Fn() -> bool,
) {
    loop {
        if is_winding_down() {
            session.wind_down();
        }
        if is_over() {
            return;
        }
        let Some((id, call)) = session.next_call(door.wall_ms()) else { return };
        let operation = call_once(client, &mut door, &recorder, id, call).await;
        session.observe(&operation);
        if matches!(operation.outcome, Outcome::Unavailable | Outcome::Unknown | Outcome::Rejected) {
            door.pause().await;
        }
        door.think().await;
    }
}
