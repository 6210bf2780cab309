//! Orderly stops: leadership is handed over first, and nobody waits for those who are gone. Times are virtual.

use std::time::Duration;

use holdfast_node::raft::RaftSettings;
use holdfast_node::storage::sim_disk::Loss;
use openraft_rt::AsyncRuntime;
use openraft_rt_sim::SimRuntime;

use crate::harness::{Now, converged, founded, put_acked, run};

fn since(began: Now) -> Duration {
    use openraft_rt::Instant;
    Now::now().saturating_duration_since(began)
}

fn now() -> Now {
    use openraft_rt::Instant;
    Now::now()
}

#[test]
fn a_stopping_leader_hands_over_to_a_member_that_is_there() {
    run(11, async {
        let (mut sim, _, leader) = founded(11).await;
        for n in 1..=3 {
            put_acked(&sim, n).await;
        }
        converged(&sim).await;
        // The lowest of the others would be picked if they were equal.
        let dead = (1..=3).find(|id| *id != leader).unwrap();
        let alive = (1..=3).rfind(|id| *id != leader).unwrap();
        sim.crash(dead, Loss::Nothing, 1).await;
        SimRuntime::sleep(Duration::from_millis(500)).await;
        assert_eq!(sim.node(leader).unwrap().transfer_leader(None).await, Some(alive));
    });
}

#[test]
fn a_stopping_leader_is_followed_by_another_at_once() {
    for seed in 0..10 {
        run(seed, async move {
            let (mut sim, _, leader) = founded(seed).await;
            put_acked(&sim, 1).await;
            converged(&sim).await;
            let began = now();
            sim.stop(leader).await;
            let next = sim.leader().expect("another one leads when the old leader has stopped");
            assert_ne!(next, leader);
            let (took, silence) = (since(began), RaftSettings::for_tests().election_min);
            assert!(took < silence, "{took:?}: nobody noticed a silence of {silence:?}, it was handed over");
            put_acked(&sim, 2).await;
        });
    }
}

#[test]
fn a_leader_that_is_left_alone_does_not_wait_for_anybody_to_take_over() {
    run(12, async {
        let (mut sim, _, leader) = founded(12).await;
        put_acked(&sim, 1).await;
        converged(&sim).await;
        for id in (1..=3).filter(|id| *id != leader) {
            sim.stop(id).await;
        }
        let began = now();
        sim.stop(leader).await;
        let took = since(began);
        assert!(took <= RaftSettings::for_tests().election_max, "{took:?} although nobody was there");
    });
}

#[test]
fn all_nodes_stop_together_within_an_election() {
    for seed in 0..10 {
        run(seed, async move {
            let (sim, _, _) = founded(seed).await;
            put_acked(&sim, 1).await;
            converged(&sim).await;
            let nodes: Vec<_> = sim.nodes().map(|(_, node)| node.clone()).collect();
            let began = now();
            futures_util::future::join_all(nodes.iter().map(|node| node.shutdown())).await;
            let took = since(began);
            assert!(took <= RaftSettings::for_tests().election_max * 2, "{took:?}");
        });
    }
}
