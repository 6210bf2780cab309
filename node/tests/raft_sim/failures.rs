//! Disks that fail, and the bug that must be found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_node::propose::ProposeError;
use holdfast_node::raft::{NoLeader, StartMode};
use holdfast_node::storage::sim_disk::Loss;
use openraft_rt::AsyncRuntime;
use openraft_rt_sim::SimRuntime;

use crate::harness::{SOON, Sim, converged, founded, of, put, put_acked, run, settled};
use crate::restarts::quick_leader_restart;

#[test]
fn a_sync_error_fails_the_node_by_name_and_the_others_go_on() {
    run(1, async {
        let (sim, _, leader) = founded(1).await;
        put_acked(&sim, 1).await;
        sim.disk(leader).fail_next_sync();
        // What was under way may have been committed by the others; what comes after is certainly refused.
        let _ = put(&sim, leader, 2).await;
        let failed = |sim: &Sim| {
            sim.node(leader).unwrap().status().fatal.is_some_and(|why| why.contains("the log has failed"))
        };
        sim.wait_for("the node fails", SOON, failed).await.unwrap();
        assert_eq!(put(&sim, leader, 3).await, Err(ProposeError::Stopping));
        let other = |sim: &Sim| sim.nodes().any(|(id, node)| id != leader && node.seems_to_lead());
        sim.wait_for("another leads", SOON, other).await.unwrap();
    });
}

#[test]
fn without_a_quorum_no_leader_is_known_neither_to_it_nor_to_others() {
    run(1, async {
        let (mut sim, wires, leader) = founded(1).await;
        // A follower alone: the leader is dead, and nobody can be elected.
        let last = leader % 3 + 1;
        for dead in (1..=3).filter(|id| *id != last) {
            sim.crash(dead, Loss::All, dead).await;
        }
        let nobody = |sim: &Sim| {
            let node = sim.node(last).unwrap();
            node.leader().is_none() && node.status().leader.is_none()
        };
        sim.wait_for("the follower no longer names the dead", SOON, nobody).await.unwrap();
        let why = sim.node(last).unwrap().known_leader().unwrap_err();
        assert!(matches!(why, NoLeader::Silent { node_id, .. } if node_id == leader), "{why}");
        assert_eq!(put(&sim, last, 1).await, Err(ProposeError::NotLeader(None)));

        for dead in (1..=3).filter(|id| *id != last) {
            sim.start(dead, StartMode::Normal).await.unwrap();
        }
        let leader = settled(&sim).await;
        // A leader alone: it goes on to lead, but nothing that it takes in can be committed.
        wires.isolate(leader, &[1, 2, 3]);
        let nobody = |sim: &Sim| sim.node(leader).unwrap().leader().is_none();
        sim.wait_for("the leader no longer names itself", SOON, nobody).await.unwrap();
        let node = sim.node(leader).unwrap();
        assert!(matches!(node.known_leader(), Err(NoLeader::NoQuorum { .. })) || !node.seems_to_lead());
        wires.heal();
        settled(&sim).await;
    });
}

#[test]
fn a_node_that_is_its_own_quorum_knows_that_it_leads() {
    run(2, async {
        let (mut sim, _) = of(&[1], 2);
        sim.found().await.unwrap();
        assert_eq!(settled(&sim).await, 1);
        SimRuntime::sleep(SOON).await;
        assert!(sim.node(1).unwrap().known_leader().is_ok_and(|leader| leader.node_id == 1));
    });
}

#[test]
fn restoring_leadership_without_an_election_is_caught() {
    let found = (0..20).filter(|seed| {
        let scenario = || run(*seed, quick_leader_restart(*seed, true));
        // The books may also differ so much that something panics: caught as well.
        !matches!(catch_unwind(AssertUnwindSafe(scenario)), Ok(Ok(())))
    });
    assert!(found.count() > 0, "the scenario does not see the bug that it is there for");
}

#[test]
fn a_crash_of_each_node_in_turn_loses_nothing() {
    for seed in 0..5 {
        run(seed, async move {
            let (mut sim, _, _) = founded(seed).await;
            let mut acked = 0;
            for round in 0..6u64 {
                for n in 0..10 {
                    put_acked(&sim, round * 100 + n).await;
                    acked += 1;
                }
                let victim = round % 3 + 1;
                sim.crash(victim, [Loss::All, Loss::Suffix, Loss::Random][(seed % 3) as usize], seed + round)
                    .await;
                put_acked(&sim, round * 100 + 50).await;
                acked += 1;
                sim.start(victim, StartMode::Normal).await.unwrap();
            }
            assert!(converged(&sim).await >= acked);
        });
    }
}
