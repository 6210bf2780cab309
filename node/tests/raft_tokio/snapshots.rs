//! Snapshots between members, under load: sent, cancelled, given up, sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use holdfast_node::raft::RaftSettings;
use holdfast_node::raft::host::TokioNode;
use tokio::task::JoinHandle;

use crate::harness::{Cluster, mark, put, until};

/// Marks that make a snapshot of several blocks on the wire (256 KiB each).
const FILL_ROUNDS: u128 = 60;
const FILL_BATCH: u128 = 1_000;

/// Parts after which a transfer is held: the head and one block.
const HELD_AFTER: usize = 2;

fn settings() -> RaftSettings {
    RaftSettings { snapshot_entries_kept: 2, ..RaftSettings::default() }
}

/// Writers that go on until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    writers: Vec<JoinHandle<u64>>,
}

impl Load {
    fn start(nodes: &[TokioNode]) -> Load {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = |writer: u128| {
            let (nodes, stop, acknowledged) = (nodes.to_vec(), stop.clone(), acknowledged.clone());
            tokio::spawn(async move {
                let mut last = 0;
                for n in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let number = 1_000_000 * (writer + 1) + n;
                    last = put(&nodes, &[mark(number)]).await.first_revision;
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                last
            })
        };
        let writers = (0..4).map(writer).collect();
        Load { stop, acknowledged, writers }
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// The highest revision that was acknowledged.
    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        let mut highest = 0;
        for writer in self.writers {
            highest = highest.max(writer.await.unwrap());
        }
        highest
    }
}

/// A cluster whose node `behind` is stopped, with a large book and logs that no longer reach back to it.
async fn with_one_behind(settings: RaftSettings) -> (Cluster, u64, u64) {
    let mut cluster = Cluster::found(settings).await;
    put(&cluster.nodes(), &[mark(1)]).await;
    cluster.converged(1).await;
    let leader = cluster.leader().await;
    let behind = (1..=3).find(|id| *id != leader).unwrap();
    cluster.stop(behind).await;
    let left = cluster.nodes();
    for round in 0..FILL_ROUNDS {
        let marks: Vec<_> = (0..FILL_BATCH).map(|n| mark(1_000 + round * FILL_BATCH + n)).collect();
        put(&left, &marks).await;
    }
    cluster.converged(1 + (FILL_ROUNDS * FILL_BATCH) as u64).await;
    let applied = left.iter().map(|node| node.status().applied_index.unwrap()).min().unwrap();
    for node in &left {
        node.begin_snapshot().await;
    }
    let purged = |node: &TokioNode| node.status().purged_index.is_some_and(|purged| purged + 5 >= applied);
    until("logs are purged", || left.iter().all(purged).then_some(())).await;
    let leader = cluster.leader().await;
    (cluster, leader, behind)
}

/// The member that was behind has a snapshot, and everything since, and nothing half received.
async fn caught_up(cluster: &Cluster, behind: u64) {
    let node = cluster.node(behind);
    until("a snapshot is installed", || (node.status().counters.snapshots_installed > 0).then_some(())).await;
    let last = put(&cluster.nodes(), &[mark(2)]).await.first_revision;
    cluster.converged(last).await;
    until("nothing half received is left", || (cluster.unfinished_snapshots(behind) == 0).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_behind_a_purged_log_catches_up_under_load() {
    let (mut cluster, leader, behind) = with_one_behind(settings()).await;
    let load = Load::start(&cluster.nodes());
    until("the load runs", || (load.acknowledged() > 20).then_some(())).await;
    cluster.start(behind).await;
    let node = cluster.node(behind);
    until("a snapshot is installed", || (node.status().counters.snapshots_installed > 0).then_some(())).await;
    assert!(cluster.gate(leader).begun() > 0, "it came from the leader");
    let before = load.acknowledged();
    until("the load goes on", || (load.acknowledged() > before + 20).then_some(())).await;
    // What was acknowledged after the snapshot reaches it as entries, while more comes.
    let target = cluster.node(leader).replica().revision();
    until("it has caught up", || (node.replica().revision() >= target).then_some(())).await;
    let last = load.stop().await;
    cluster.converged(last).await;
    assert_eq!(cluster.unfinished_snapshots(behind), 0);
    drop(node);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_one_no_longer_stops_sending_and_the_next_one_sends() {
    let (mut cluster, leader, behind) = with_one_behind(settings()).await;
    let gate = cluster.gate(leader).clone();
    gate.hold_after(HELD_AFTER);
    cluster.start(behind).await;
    until("a transfer is in its middle", || (gate.held() > 0).then_some(())).await;
    let next = (1..=3).find(|id| *id != leader && *id != behind).unwrap();
    assert_eq!(cluster.node(leader).transfer_leader(Some(next)).await, Some(next));
    until("the old leader has let the transfer go", || (gate.ended() == gate.begun()).then_some(())).await;
    caught_up(&cluster, behind).await;
    gate.open();
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_dies_in_the_middle_is_replaced() {
    let (mut cluster, leader, behind) = with_one_behind(settings()).await;
    let gate = cluster.gate(leader).clone();
    gate.hold_after(HELD_AFTER);
    cluster.start(behind).await;
    until("a transfer is in its middle", || (gate.held() > 0).then_some(())).await;
    // As a crash would: no hand-over, the connections just end. The other two are a quorum, but the one
    // that is behind must get its snapshot from the one that is left.
    cluster.node(leader).abandon().await;
    cluster.stop(leader).await;
    caught_up(&cluster, behind).await;
    gate.open();
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_that_does_not_move_is_given_up_and_begun_anew() {
    let idle = RaftSettings { snapshot_idle: Duration::from_millis(300), ..settings() };
    let (mut cluster, leader, behind) = with_one_behind(idle).await;
    let gate = cluster.gate(leader).clone();
    gate.hold_after(HELD_AFTER);
    cluster.start(behind).await;
    until("two transfers got stuck, one after the other", || (gate.held() > 1).then_some(())).await;
    assert!(gate.ended() > 0, "the first one was not given up");
    gate.open();
    caught_up(&cluster, behind).await;
    cluster.stop_all().await;
}
