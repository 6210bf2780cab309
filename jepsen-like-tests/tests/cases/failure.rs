//! Case 53, and the power cut of everything at once.

use holdfast_ledger::command::Command;
use holdfast_node::storage::sim_disk::Loss;
use jepsen_like_tests::drive::call_once;
use jepsen_like_tests::history::{Call, Outcome};
use jepsen_like_tests::sim::{CLIENTS_FROM, PATIENCE, Scenario, Sim, WorldOptions};
use openraft_rt::AsyncRuntime;

use crate::{assert_sound, id, plan, reserve};

const WIDE: &str =
    "  tokens:\n    scope: tenant\n    unit: tokens\n    period: { limit: 100000, every: lifetime }\n";

/// Case 53: the leader dies between the commit and its answer; the same id asked of the new leader
/// gives the original receipt.
#[test]
fn the_new_leader_gives_the_receipt_that_the_old_one_could_not_send() {
    Sim::with_seed(53).block_on(async {
        let mut scenario = Scenario::begin(53, WorldOptions::default(), &plan(WIDE)).await;
        let world = scenario.world.clone();
        let leader = world.leader().expect("a scenario begins with a leader");
        let before = world.handle(leader).expect("it runs").1.replica().revision();

        // The command reaches the leader; nothing it says reaches the client.
        let client = 7;
        world.links().cut(leader, CLIENTS_FROM + u64::from(client));
        let id = id(&scenario, 1);
        let (mut door, recorder) = (scenario.another_door(client), scenario.recorder.clone());
        let (asked, call) = (id.clone(), reserve("acme", "tokens", 40));
        let task = Sim::spawn(async move { call_once(client, &mut door, &recorder, asked, call).await });
        let is_applied =
            || world.handle(leader).is_some_and(|(_, handle)| handle.replica().revision() > before);
        assert!(world.wait_until(PATIENCE, is_applied).await, "it was never applied");
        world.crash(leader, Loss::All).await;
        let ended = task.await.expect("the client's task lives");

        assert_eq!(ended.outcome, Outcome::Ok);
        let receipt = ended.receipt().expect("a reserve is answered with a receipt");
        let original = world.applied().iter().flat_map(|node| node.entries.clone()).find_map(|entry| {
            let at = entry.commands.iter().position(
                |command| matches!(command, Command::Reserve(reserve) if reserve.id.to_string() == id),
            )?;
            Some(entry.revision_before + at as u64 + 1)
        });
        assert_eq!(Some(receipt.reserved_revision), original);
        assert!(ended.revision > original, "it was answered by a repeat");
        assert_sound(&mut scenario).await;
    });
}

/// All machines lose power at once, with everything that was not synced: what was acknowledged is there.
#[test]
fn everything_acknowledged_survives_a_power_cut_of_all_nodes() {
    Sim::with_seed(60).block_on(async {
        let mut scenario = Scenario::begin(60, WorldOptions::default(), &plan(WIDE)).await;
        let world = scenario.world.clone();
        let mut acknowledged = Vec::new();
        for round in 0..5u128 {
            for at in 0..10 {
                let id = id(&scenario, round * 100 + at);
                let made = scenario.call(&id, reserve("acme", "tokens", 10)).await;
                assert_eq!(made.outcome, Outcome::Ok);
                acknowledged.push((id, made.answered));
            }
            for node in world.nodes() {
                world.crash(node, Loss::All).await;
            }
            for node in world.nodes() {
                world.ensure_up(node).await;
            }
            for (id, answered) in &acknowledged {
                assert_eq!(scenario.call(id, Call::Get).await.answered, *answered, "round {round}");
            }
        }
        assert_sound(&mut scenario).await;
    });
}
