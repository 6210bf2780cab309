//! What a plan needs of the proposer: bounds of its calendars.

use std::sync::Arc;

use holdfast_ledger::command::PublishPlan;
use holdfast_ledger::ids::ActorName;
use holdfast_ledger::{Answer, Command, Plan, Refusal};
use holdfast_node::propose::{Answered, ProposeError};
use holdfast_node::raft::cluster::BEGIN_MS;

use crate::harness::{SOON, Sim, converged, founded, put_acked, run, soon};

const DAY_MS: u64 = 24 * 3_600_000;

fn document(zone: &str) -> String {
    format!(
        "schema: admissionBudget.v1\nroutes:\n  - name: chat\nlimits:\n  daily:\n    scope: tenant\n    unit: requests\n    \
         period: {{ limit: 10, every: day, zone: {zone} }}\n"
    )
}

async fn publish(sim: &Sim, node: u64, zone: &str) -> Result<Answered, ProposeError> {
    let document = document(zone);
    let plan = Arc::new(Plan::parse(&document).unwrap());
    let actor = ActorName::new("test").unwrap();
    let command = Command::PublishPlan(PublishPlan {
        expected_generation: None,
        force: false,
        document: document.into(),
        plan,
        actor,
    });
    sim.node(node).unwrap().propose(&[command], soon(SOON)).await
}

fn known_until(sim: &Sim, node: u64) -> Option<u64> {
    sim.node(node).unwrap().replica().read(|book| book.calendars().next().and_then(|(_, known)| known))
}

#[test]
fn the_entry_that_publishes_a_plan_brings_its_bounds_and_the_leader_extends_them() {
    run(1, async {
        let (sim, _, leader) = founded(1).await;
        let answered = publish(&sim, leader, "Asia/Tokyo").await.unwrap();
        assert!(matches!(answered.answers[..], [Answer::Published { generation: 1, changed: true }]));
        let known = known_until(&sim, leader).unwrap();
        assert!(known >= BEGIN_MS + DAY_MS, "this day and the next are covered");
        // Nobody asks for anything, and ten days go by on every clock.
        for id in 1..=3 {
            sim.clock(id).set_offset_ms(10 * DAY_MS as i64);
        }
        let extended = |sim: &Sim| {
            let Some(leader) = sim.leader() else { return false };
            let now_ms = sim.node(leader).unwrap().now_ms();
            now_ms > known && known_until(sim, leader).is_some_and(|until| until > now_ms + DAY_MS)
        };
        sim.wait_for("the leader extends the bounds", std::time::Duration::from_secs(120), extended)
            .await
            .unwrap();
        converged(&sim).await;
    });
}

#[test]
fn an_unknown_zone_is_refused_by_name_before_the_log() {
    run(2, async {
        let (sim, _, leader) = founded(2).await;
        match publish(&sim, leader, "Mars/Olympus").await {
            Err(ProposeError::Invalid { problem, .. }) => {
                assert!(problem.contains("Mars/Olympus"), "{problem}")
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(sim.node(leader).unwrap().replica().revision(), 0);
    });
}

/// Can only come from a bug or a damaged proposer: every node sees the same, refuses it, and goes on.
#[test]
fn a_plan_in_the_log_that_nobody_can_read_is_refused_by_all_and_changes_nothing() {
    run(3, async {
        let (sim, _, leader) = founded(3).await;
        publish(&sim, leader, "Asia/Tokyo").await.unwrap();
        let plan = Arc::new(Plan::parse(&document("Asia/Tokyo")).unwrap());
        let command = Command::PublishPlan(PublishPlan {
            expected_generation: None,
            force: false,
            document: "schema: from.another.world".into(),
            plan,
            actor: ActorName::new("test").unwrap(),
        });
        let answered = sim.node(leader).unwrap().propose(&[command], soon(SOON)).await.unwrap();
        let [Answer::Refused(Refusal::Invalid { field: "document", problem })] = &answered.answers[..] else {
            panic!("{answered:?}")
        };
        assert!(problem.contains("schema"), "{problem}");
        put_acked(&sim, 1).await;
        assert_eq!(converged(&sim).await, 3);
        for (_, node) in sim.nodes() {
            assert_eq!(node.replica().generation(), 1);
            assert_eq!(node.status().fatal, None);
        }
    });
}
