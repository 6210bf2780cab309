//! Disks that fail, and the bug that must be found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast_node::propose::ProposeError;

use crate::harness::{SOON, Sim, converged, founded, put, put_acked, run};
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
    use holdfast_node::raft::StartMode;
    use holdfast_node::storage::sim_disk::Loss;
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
