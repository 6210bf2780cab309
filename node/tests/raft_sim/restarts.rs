//! Power loss, quick restarts, wiped disks, strangers.

use std::time::Duration;

use holdfast_node::raft::cluster::CLUSTER_ID;
use holdfast_node::raft::{StartError, StartMode};
use holdfast_node::storage::identity::Identity;
use holdfast_node::storage::sim_disk::Loss;
use holdfast_node::storage::{Disk, SimDisk};
use openraft_rt::AsyncRuntime;
use openraft_rt_sim::SimRuntime;

use crate::harness::{SOON, Sim, converged, founded, put, put_acked, run, settled};

#[test]
fn everything_acknowledged_survives_power_loss_of_all_nodes_at_once() {
    for seed in 0..10 {
        run(seed, async move {
            let (mut sim, _, _) = founded(seed).await;
            for n in 1..=40 {
                put_acked(&sim, n).await;
            }
            for id in 1..=3 {
                sim.crash(id, Loss::All, seed + id).await;
            }
            for id in 1..=3 {
                sim.start(id, StartMode::Normal).await.unwrap();
            }
            settled(&sim).await;
            put_acked(&sim, 1_000).await;
            let revision = converged(&sim).await;
            assert!(revision >= 41, "{revision} commands are left of 41");
        });
    }
}

#[test]
fn a_follower_that_was_away_catches_up() {
    run(1, async {
        let (mut sim, _, leader) = founded(1).await;
        let follower = (1..=3).find(|id| *id != leader).unwrap();
        put_acked(&sim, 1).await;
        sim.crash(follower, Loss::All, 3).await;
        for n in 2..=30 {
            put_acked(&sim, n).await;
        }
        sim.start(follower, StartMode::Normal).await.unwrap();
        assert_eq!(converged(&sim).await, 30);
    });
}

/// The leader's disk is slow: the others commit what it has not synced. It loses that tail and is back
/// before anybody stands for election. With its old term restored it would give an index of that tail to
/// another command.
pub async fn quick_leader_restart(seed: u64, unsafe_restore: bool) -> Result<(), String> {
    let (mut sim, wires) = crate::harness::three(seed);
    sim.settings_mut().unsafe_leader_restore = unsafe_restore;
    sim.found().await.unwrap();
    let leader = settled(&sim).await;
    for n in 1..=5 {
        put_acked(&sim, n).await;
    }
    // From now on nothing that the leader writes becomes durable, and it does not know.
    wires.stall_syncs(leader);
    let acked = put(&sim, leader, 100).await.map_err(|e| format!("the two others did not commit: {e}"))?;
    sim.crash(leader, Loss::All, seed).await;
    wires.release_syncs(leader);
    sim.start(leader, StartMode::Normal).await.unwrap();
    let mut acknowledged = vec![(acked.index, 100)];
    for n in 200..210 {
        acknowledged.push((put_acked(&sim, n).await.index, n));
    }
    let mut indexes: Vec<u64> = acknowledged.iter().map(|(index, _)| *index).collect();
    indexes.dedup();
    if indexes.len() < acknowledged.len() {
        return Err(format!("an index was used twice: {acknowledged:?}"));
    }
    let revision = converged(&sim).await;
    if revision < 16 { Err(format!("{revision} commands are left of 16")) } else { Ok(()) }
}

#[test]
fn a_leader_that_lost_an_unsynced_tail_reuses_no_index() {
    for seed in 0..10 {
        run(seed, quick_leader_restart(seed, false)).unwrap();
    }
}

#[test]
fn a_wiped_disk_under_the_old_id_neither_starts_nor_votes() {
    run(1, async {
        let (mut sim, _, leader) = founded(1).await;
        put_acked(&sim, 1).await;
        let wiped = (1..=3).find(|id| *id != leader).unwrap();
        sim.crash(wiped, Loss::All, 1).await;
        sim.replace_disk(wiped, SimDisk::new());
        // Started as always it refuses.
        let refused = sim.start(wiped, StartMode::Normal).await.err().unwrap();
        assert!(matches!(refused, StartError::Identity(_)), "{refused}");
        // Told to found or to join it finds out that its id lives on another disk, and fails by name.
        for mode in
            [sim.bootstrap(), StartMode::Join(vec!["peer-1:1".into(), "peer-2:1".into(), "peer-3:1".into()])]
        {
            sim.replace_disk(wiped, SimDisk::new());
            let node = sim.start(wiped, mode).await.unwrap();
            let failed = |_: &Sim| node.status().fatal.is_some_and(|why| why.contains("another disk"));
            sim.wait_for("the wiped node fails", SOON, failed).await.unwrap();
            sim.crash(wiped, Loss::All, 2).await;
        }
        // Even while it runs it gets no vote across and gives none: without the other two nobody leads.
        sim.replace_disk(wiped, SimDisk::new());
        let other = (1..=3).find(|id| *id != leader && *id != wiped).unwrap();
        sim.crash(other, Loss::Nothing, 3).await;
        sim.start(wiped, StartMode::Join(Vec::new())).await.unwrap();
        sim.crash(leader, Loss::Nothing, 4).await;
        sim.start(other, StartMode::Normal).await.unwrap();
        SimRuntime::sleep(Duration::from_secs(5)).await;
        assert_eq!(sim.leader(), None, "a leader was elected with the vote of an empty disk");
        sim.start(leader, StartMode::Normal).await.unwrap();
        sim.wait_for("a leader", SOON, |sim| sim.leader().is_some()).await.unwrap();
        assert_eq!(put_acked(&sim, 2).await.first_revision, 2);
    });
}

#[test]
fn another_disks_data_under_a_members_id_does_not_start() {
    run(2, async {
        let (mut sim, _, _) = founded(2).await;
        put_acked(&sim, 1).await;
        converged(&sim).await;
        // The log is the member's, the identity says another disk: the file was copied or edited.
        sim.crash(3, Loss::Nothing, 1).await;
        sim.disk(3).remove("identity").unwrap();
        let forged = Identity { cluster_id: CLUSTER_ID.into(), node_id: 3, disk_id: [42; 16] };
        let aside = SimDisk::new();
        forged.create(&aside).unwrap();
        sim.disk(3).create("identity").unwrap().write_at(0, &aside.contents("identity").unwrap()).unwrap();
        let refused = sim.start(3, StartMode::Normal).await.err().unwrap();
        assert!(matches!(refused, StartError::OtherDisk { node_id: 3, .. }), "{refused}");
    });
}

#[test]
fn peers_of_another_cluster_are_refused() {
    run(3, async {
        let (mut sim, _, _) = founded(3).await;
        put_acked(&sim, 1).await;
        let term = sim.nodes().map(|(_, node)| node.status().term).max().unwrap();
        // A fourth node of another cluster that has this cluster's nodes among its founders.
        sim.add_seat(4);
        let mut parts = sim.parts(4, StartMode::Normal);
        parts.cluster_id = "elsewhere".into();
        let StartMode::Bootstrap(mut founders) = sim.bootstrap() else { unreachable!() };
        founders.push(holdfast_node::raft::FoundingMember {
            node_id: 4,
            peer_address: "peer-4:1".into(),
            client_address: String::new(),
            http_address: String::new(),
        });
        parts.mode = StartMode::Bootstrap(founders);
        let stranger = sim.start_with(4, parts).await.unwrap();
        SimRuntime::sleep(Duration::from_secs(5)).await;
        assert_eq!(stranger.status().last_index, None, "it founded a cluster with members of another");
        assert_eq!(sim.node(1).unwrap().status().term, term);
        // A directory of this cluster does not start under another name.
        sim.crash(1, Loss::Nothing, 1).await;
        let mut parts = sim.parts(1, StartMode::Normal);
        parts.cluster_id = "elsewhere".into();
        let refused = sim.start_with(1, parts).await.err().unwrap();
        assert!(refused.to_string().contains("belongs to cluster \"sim\""), "{refused}");
    });
}
