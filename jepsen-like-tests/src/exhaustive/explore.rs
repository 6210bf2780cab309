//! All orders of a script's steps.

use std::collections::HashMap;

use holdfast_ledger::command::EntryHeader;
use holdfast_ledger::{Book, Command};

use super::canonical;
use super::outcome::{Outcomes, word};
use super::script::{BEGIN_MS, Script};
use crate::interleave::tally::Tally;

/// What came of a script.
#[derive(Debug, Default)]
pub struct Explored {
    /// Orders of the steps, all of them.
    pub orders: u64,
    /// States that were followed for them.
    pub states: u64,
    /// What does not hold, with an order of clients that shows it. The first few.
    pub failures: Vec<String>,
}

/// Failures of one script that are kept.
const FAILURES_MAX: usize = 3;

/// A state that some orders of the first steps lead to.
struct State {
    book: Book,
    tally: Tally,
    outcomes: Outcomes,
    /// How many orders lead here.
    orders: u64,
    /// One of them: the clients in order.
    order: Vec<u8>,
}

/// Follows every order of a script's steps.
pub fn explore(script: &Script) -> Explored {
    let mut explored = Explored::default();
    let mut layer = vec![begin(script)];
    let steps: usize = script.clients.iter().map(Vec::len).sum();
    for _ in 0..steps {
        let mut next: HashMap<(u128, Outcomes), State> = HashMap::new();
        for state in &mut layer {
            explored.states += 1;
            for client in 0..script.clients.len() {
                let Some(mut after) = take(script, state, client, &mut explored) else { continue };
                match next.entry((canonical::hash(&mut after.book), after.outcomes.clone())) {
                    std::collections::hash_map::Entry::Occupied(mut known) => {
                        known.get_mut().orders += after.orders;
                    }
                    std::collections::hash_map::Entry::Vacant(place) => {
                        place.insert(after);
                    }
                }
            }
        }
        layer = next.into_values().collect();
        // The order of a map is nobody's.
        layer.sort_by(|a, b| a.order.cmp(&b.order));
    }
    judge(script, &mut layer, &mut explored);
    explored
}

/// The first plan is in force.
fn begin(script: &Script) -> State {
    let outcomes = Outcomes(script.clients.iter().map(|_| Vec::new()).collect());
    let mut state =
        State { book: Book::new(), tally: Tally::new(script.family), outcomes, orders: 1, order: Vec::new() };
    let publish = super::script::publish(0).command(script.family);
    apply(&mut state, &publish, BEGIN_MS);
    state
}

fn apply(state: &mut State, command: &Command, stamp_ms: u64) -> &'static str {
    let (index, term) = (state.book.applied().0 + 1, 1);
    let header = EntryHeader { index, term, stamp_ms, epoch_bounds: Vec::new() };
    let answers = state.book.apply_entry(&header, std::slice::from_ref(command));
    let revision = state.book.revision();
    state.tally.begin_entry(stamp_ms);
    let Some(answer) = answers.first() else { return "nothing" };
    state.tally.observe(command, answer, revision);
    word(answer, revision)
}

/// The state after a client's next step; `None`: it has none, or something does not hold.
fn take(script: &Script, state: &mut State, client: usize, explored: &mut Explored) -> Option<State> {
    let step = script.clients[client].get(state.outcomes.0[client].len())?;
    let book = match Book::restore(state.book.snapshot().records()) {
        Ok(book) => book,
        Err(error) => {
            explored.fail(&state.order, || format!("its snapshot is refused: {error}"));
            return None;
        }
    };
    let mut after = State {
        book,
        tally: state.tally.clone(),
        outcomes: state.outcomes.clone(),
        orders: state.orders,
        order: state.order.clone(),
    };
    after.order.push(client as u8);
    let stamp_ms = after.book.clock_ms() + step.wait_ms;
    let outcome = apply(&mut after, &step.command(script.family), stamp_ms);
    after.outcomes.0[client].push(outcome);
    if let Some(found) = after.tally.found().first() {
        explored.fail(&after.order, || found.to_string());
        return None;
    }
    Some(after)
}

/// What must hold at every end, and what must happen at some.
fn judge(script: &Script, layer: &mut [State], explored: &mut Explored) {
    let mut seen = vec![false; script.sometimes.len()];
    for state in layer {
        explored.orders += state.orders;
        for (words, claim) in &script.always {
            if !claim(&state.outcomes) {
                explored.fail(&state.order, || format!("not always: {words}: {:?}", state.outcomes.0));
            }
        }
        for ((_, claim), seen) in script.sometimes.iter().zip(&mut seen) {
            *seen |= claim(&state.outcomes);
        }
        let audit = state.book.audit();
        if let Some(violation) = audit.violations.first() {
            explored.fail(&state.order, || violation.to_string());
        }
        state.tally.compare_quotas(&state.book);
        if let Some(found) = state.tally.found().first() {
            explored.fail(&state.order, || found.to_string());
        }
    }
    for ((words, _), _) in script.sometimes.iter().zip(seen).filter(|(_, seen)| !seen) {
        explored.failures.push(format!("never: {words}"));
    }
    let expected = orders_of(script);
    if explored.failures.is_empty() && explored.orders != expected {
        explored.failures.push(format!("{} orders were followed of {expected}", explored.orders));
    }
}

/// The number of orders: of twelve steps in four threes, 369 600.
fn orders_of(script: &Script) -> u64 {
    let mut orders = 1u64;
    let mut placed = 0u64;
    for client in &script.clients {
        for step in 1..=client.len() as u64 {
            placed += 1;
            orders = orders * placed / step;
        }
    }
    orders
}

impl Explored {
    fn fail(&mut self, order: &[u8], what: impl FnOnce() -> String) {
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(format!("clients in the order {order:?}: {}", what()));
        }
    }
}
