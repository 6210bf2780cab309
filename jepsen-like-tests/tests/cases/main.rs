//! Field cases that need a cluster: each a small input behind a fault that people met with other
//! limiters. They run on the simulated cluster; the numbers are those of the list of cases.

mod admission;
mod failure;
mod identity;
mod time;

use jepsen_like_tests::drive::call_once;
use jepsen_like_tests::history::{Call, Operation, Outcome};
use jepsen_like_tests::sim::{Scenario, Sim};
use openraft_rt::AsyncRuntime;

/// A plan with one route and the limits given.
fn plan(limits: &str) -> String {
    format!("schema: admissionBudget.v1\nroutes:\n  - name: chat.generate\nlimits:\n{limits}")
}

fn reserve(tenant: &str, unit: &str, amount: u64) -> Call {
    Call::Reserve {
        tenant: tenant.into(),
        user: None,
        route: "chat.generate".into(),
        amounts: [(unit.to_owned(), amount)].into(),
        minimum: Default::default(),
        key: None,
    }
}

fn settle(unit: &str, amount: u64) -> Call {
    Call::Settle { operation: "op".into(), actual: [(unit.to_owned(), amount)].into(), estimated: false }
}

fn start() -> Call {
    Call::Start { operation: "op".into() }
}

/// A fresh id: made now, with this random part.
fn id(scenario: &Scenario, random: u128) -> String {
    use jepsen_like_tests::drive::Door;
    holdfast_ledger::ReservationId::from_parts(scenario.door.wall_ms(), random).to_string()
}

/// Makes the calls at the same time, each through a client of its own, and returns them ended.
async fn all_at_once(scenario: &Scenario, calls: Vec<(String, Call)>) -> Vec<Operation> {
    let mut tasks = Vec::new();
    for (client, (id, call)) in (1u32..).zip(calls) {
        let (mut door, recorder) = (scenario.another_door(client), scenario.recorder.clone());
        tasks.push(Sim::spawn(async move { call_once(client, &mut door, &recorder, id, call).await }));
    }
    let mut ended = Vec::new();
    for task in tasks {
        match task.await {
            Ok(operation) => ended.push(operation),
            Err(error) => panic!("a client's task died: {error}"),
        }
    }
    ended
}

fn admitted(operations: &[Operation]) -> usize {
    let unclear = operations.iter().find(|op| !matches!(op.outcome, Outcome::Ok | Outcome::Rejected));
    assert_eq!(unclear, None, "without faults every call is decided");
    operations.iter().filter(|op| op.outcome == Outcome::Ok).count()
}

/// Everything that the scenario saw holds together.
async fn assert_sound(scenario: &mut Scenario) {
    let findings = scenario.judge().await;
    assert!(findings.is_empty(), "{findings:#?}");
}
