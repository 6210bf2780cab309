//! Snapshots: purging, catching up by one, restarting from one.

use holdfast_node::raft::StartMode;
use holdfast_node::storage::sim_disk::Loss;

use crate::harness::{SOON, Sim, converged, founded, put_acked, run, settled};

/// Lets every node take a snapshot of what it has applied and purge its log behind it.
pub async fn snapshot_all(sim: &Sim) {
    let applied = sim.nodes().map(|(_, node)| node.status().applied_index.unwrap()).min().unwrap();
    for (_, node) in sim.nodes() {
        node.begin_snapshot().await;
    }
    let purged = |sim: &Sim| {
        sim.nodes().all(|(_, node)| node.status().purged_index.is_some_and(|purged| purged + 5 >= applied))
    };
    sim.wait_for("snapshots, and logs purged behind them", SOON, purged).await.unwrap();
}

async fn founded_keeping_little(seed: u64) -> Sim {
    let (mut sim, _) = crate::harness::three(seed);
    sim.settings_mut().snapshot_entries_kept = 2;
    sim.found().await.unwrap();
    settled(&sim).await;
    sim
}

#[test]
fn a_follower_behind_a_purged_log_gets_a_snapshot() {
    for seed in 0..5 {
        run(seed, async move {
            let mut sim = founded_keeping_little(seed).await;
            let leader = settled(&sim).await;
            let behind = (1..=3).find(|id| *id != leader).unwrap();
            put_acked(&sim, 1).await;
            sim.crash(behind, Loss::All, seed).await;
            for n in 2..=60 {
                put_acked(&sim, n).await;
            }
            snapshot_all(&sim).await;
            sim.start(behind, StartMode::Normal).await.unwrap();
            assert_eq!(converged(&sim).await, 60);
            assert!(sim.node(behind).unwrap().status().counters.snapshots_installed >= 1);
            // What comes after the snapshot arrives as entries again.
            put_acked(&sim, 61).await;
            assert_eq!(converged(&sim).await, 61);
        });
    }
}

#[test]
fn all_restart_from_snapshots_and_the_log_behind_them() {
    run(1, async {
        let mut sim = founded_keeping_little(1).await;
        for n in 1..=40 {
            put_acked(&sim, n).await;
        }
        converged(&sim).await;
        snapshot_all(&sim).await;
        for n in 41..=50 {
            put_acked(&sim, n).await;
        }
        for id in 1..=3 {
            sim.crash(id, Loss::All, id).await;
        }
        for id in 1..=3 {
            sim.start(id, StartMode::Normal).await.unwrap();
        }
        settled(&sim).await;
        put_acked(&sim, 51).await;
        assert_eq!(converged(&sim).await, 51);
    });
}

#[test]
fn a_snapshot_is_due_by_commands() {
    run(2, async {
        let (mut sim, _) = crate::harness::three(2);
        sim.settings_mut().snapshot_commands = 20;
        sim.found().await.unwrap();
        settled(&sim).await;
        for n in 1..=25 {
            put_acked(&sim, n).await;
        }
        let built = |sim: &Sim| sim.nodes().all(|(_, node)| node.status().counters.snapshots_built >= 1);
        sim.wait_for("a snapshot on each node", SOON, built).await.unwrap();
    });
}

#[test]
fn a_founded_cluster_needs_no_snapshot() {
    run(3, async {
        let (sim, _, leader) = founded(3).await;
        put_acked(&sim, 1).await;
        assert_eq!(sim.node(leader).unwrap().status().snapshot_index, None);
    });
}
