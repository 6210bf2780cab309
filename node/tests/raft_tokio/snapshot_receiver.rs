//! What a member does with senders of snapshots that are wrong, hang, or go away.

use std::time::Duration;

use bytes::Bytes;
use holdfast_node::raft::{Identity, RaftSettings};
use holdfast_proto::v1;
use holdfast_proto::v1::install_snapshot_request::Part;
use holdfast_proto::v1::raft_client::RaftClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::harness::{CLUSTER_ID, Cluster, mark, put, until};

/// Bytes that a made-up snapshot is said to have.
const ANNOUNCED_BYTES: u64 = 1 << 20;

fn wire(identity: &Identity) -> v1::Identity {
    v1::Identity {
        cluster_id: identity.cluster_id.clone(),
        node_id: identity.node_id,
        disk_id: Bytes::copy_from_slice(&identity.disk_id.to_bytes()),
    }
}

fn membership() -> v1::Membership {
    let node = |id| v1::MembershipNode { id, disk_id: vec![1; 16].into(), ..v1::MembershipNode::default() };
    v1::Membership { configs: vec![v1::VoterSet { ids: vec![1, 2, 3] }], nodes: [1, 2, 3].map(node).into() }
}

fn head(from: v1::Identity, to: v1::Identity) -> v1::InstallSnapshotRequest {
    let head = v1::SnapshotHead {
        envelope: Some(v1::Envelope { group: 0, from: Some(from), to: Some(to) }),
        vote: Some(v1::BallotVote { term: 1, node_id: 1, committed: true }),
        last_log_id: Some(v1::LogId { term: 1, index: 1_000_000 }),
        membership: Some(membership()),
        bytes: ANNOUNCED_BYTES,
        crc32c: 7,
        ..v1::SnapshotHead::default()
    };
    v1::InstallSnapshotRequest { part: Some(Part::Head(head)) }
}

fn block(offset: u64, bytes: usize) -> v1::InstallSnapshotRequest {
    let block = v1::SnapshotBlock { offset, bytes: vec![0xa5; bytes].into() };
    v1::InstallSnapshotRequest { part: Some(Part::Block(block)) }
}

/// A sender that says what it is given and no more, and keeps the stream open.
struct Sender {
    parts: mpsc::Sender<v1::InstallSnapshotRequest>,
    answer: tokio::task::JoinHandle<Result<(), Status>>,
}

async fn sender(address: &str) -> Sender {
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut client = RaftClient::new(channel);
    let (parts, sent) = mpsc::channel(8);
    let answer =
        tokio::spawn(async move { client.install_snapshot(ReceiverStream::new(sent)).await.map(drop) });
    Sender { parts, answer }
}

/// A cluster with its leader and one follower to send to.
async fn cluster(settings: RaftSettings) -> (Cluster, Identity, Identity) {
    let cluster = Cluster::found(settings).await;
    let last = put(&cluster.nodes(), &[mark(1)]).await.first_revision;
    cluster.converged(last).await;
    let leader = cluster.leader().await;
    let follower = (1..=3).find(|id| *id != leader).unwrap();
    let identity = |id| cluster.node(id).identity().clone();
    let (leader, follower) = (identity(leader), identity(follower));
    (cluster, leader, follower)
}

async fn nothing_came_of_it(cluster: &Cluster, follower: u64) {
    until("nothing half received is left", || (cluster.unfinished_snapshots(follower) == 0).then_some(()))
        .await;
    assert_eq!(cluster.node(follower).status().counters.snapshots_installed, 0);
    let last = put(&cluster.nodes(), &[mark(2)]).await.first_revision;
    cluster.converged(last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_for_or_from_another_disk_is_refused_before_any_of_it_is_taken() {
    let (mut cluster, leader, follower) = cluster(RaftSettings::default()).await;
    let other_disk = |identity: &Identity| v1::Identity { disk_id: vec![9; 16].into(), ..wire(identity) };
    let other_cluster =
        |identity: &Identity| v1::Identity { cluster_id: format!("{CLUSTER_ID}-2"), ..wire(identity) };
    let address = cluster.peer_address(follower.node_id);
    for (what, from, to) in [
        ("for another disk", wire(&leader), other_disk(&follower)),
        ("from another disk", other_disk(&leader), wire(&follower)),
        ("for another node", wire(&leader), v1::Identity { node_id: 9, ..wire(&follower) }),
        ("from another cluster", other_cluster(&leader), wire(&follower)),
        ("for another cluster", wire(&leader), other_cluster(&follower)),
    ] {
        let sender = sender(&address).await;
        sender.parts.send(head(from, to)).await.unwrap();
        // The stream stays open: it is refused on the head alone.
        let refused = tokio::time::timeout(crate::harness::SOON, sender.answer).await.expect(what).unwrap();
        let refused = refused.expect_err(what);
        assert_eq!(refused.code(), Code::FailedPrecondition, "{what}: {refused}");
        assert_eq!(cluster.unfinished_snapshots(follower.node_id), 0, "{what}");
    }
    nothing_came_of_it(&cluster, follower.node_id).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_hangs_is_given_up() {
    let idle = RaftSettings { snapshot_idle: Duration::from_millis(200), ..RaftSettings::default() };
    let (mut cluster, leader, follower) = cluster(idle).await;
    let sender = sender(&cluster.peer_address(follower.node_id)).await;
    sender.parts.send(head(wire(&leader), wire(&follower))).await.unwrap();
    sender.parts.send(block(0, 1_000)).await.unwrap();
    // The connection is alive and its stream is open; only nothing comes.
    let given_up =
        tokio::time::timeout(crate::harness::SOON, sender.answer).await.expect("given up").unwrap();
    assert_eq!(given_up.unwrap_err().code(), Code::DeadlineExceeded);
    nothing_came_of_it(&cluster, follower.node_id).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_whose_connection_breaks_leaves_nothing_behind() {
    let (mut cluster, leader, follower) = cluster(RaftSettings::default()).await;
    let address = cluster.peer_address(follower.node_id);
    let (from, to) = (wire(&leader), wire(&follower));
    // On a runtime of its own, which ends with its connections as a killed process does.
    let dying = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let sending = dying.spawn(async move {
        let sender = sender(&address).await;
        sender.parts.send(head(from, to)).await.unwrap();
        sender.parts.send(block(0, 1_000)).await.unwrap();
        sender.parts
    });
    let parts = sending.await.unwrap();
    until("it has begun to receive", || (cluster.unfinished_snapshots(follower.node_id) == 1).then_some(()))
        .await;
    dying.shutdown_background();
    nothing_came_of_it(&cluster, follower.node_id).await;
    drop(parts);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_snapshot_is_refused_and_removed() {
    let (mut cluster, leader, follower) = cluster(RaftSettings::default()).await;
    let good_head = || head(wire(&leader), wire(&follower));
    let address = cluster.peer_address(follower.node_id);
    for (what, parts, code) in [
        ("no head", vec![block(0, 10)], Code::InvalidArgument),
        ("a second head", vec![good_head(), good_head()], Code::InvalidArgument),
        ("a gap", vec![good_head(), block(10, 10)], Code::Unavailable),
        ("too short", vec![good_head(), block(0, 10)], Code::Unavailable),
        ("another checksum", vec![good_head(), block(0, ANNOUNCED_BYTES as usize)], Code::Unavailable),
        (
            "too long",
            vec![good_head(), block(0, ANNOUNCED_BYTES as usize), block(ANNOUNCED_BYTES, 1)],
            Code::Unavailable,
        ),
    ] {
        let sender = sender(&address).await;
        for part in parts {
            // It may have been refused before all of it was sent.
            let _ = sender.parts.send(part).await;
        }
        drop(sender.parts);
        let refused = tokio::time::timeout(crate::harness::SOON, sender.answer).await.expect(what).unwrap();
        let refused = refused.expect_err(what);
        assert_eq!(refused.code(), code, "{what}: {refused}");
    }
    nothing_came_of_it(&cluster, follower.node_id).await;
    cluster.stop_all().await;
}
