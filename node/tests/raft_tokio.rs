//! Three nodes in one process on the machine's runtime, network and disks.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_ledger::command::Release;
use holdfast_ledger::{Command, ReservationId};
use holdfast_node::clock::RealClock;
use holdfast_node::raft::grpc::GrpcTransport;
use holdfast_node::raft::host::{RaftThread, TokioNode, bind};
use holdfast_node::raft::{FoundingMember, NodeParts, Offload, RaftSettings, StartMode, SyncDrive};
use holdfast_node::replica::NoEffects;
use holdfast_node::storage::RealDisk;
use holdfast_node::storage::log::LogConfig;
use openraft_rt::Instant as _;
use openraft_rt_tokio::TokioInstant;

/// Generous: the machine may be busy. Nothing here measures.
const SOON: Duration = Duration::from_secs(60);

fn parts(id: u64, founders: &[FoundingMember], mode: StartMode, data: &Path) -> NodeParts {
    let me = founders.iter().find(|f| f.node_id == id).unwrap();
    NodeParts {
        cluster_id: "smoke".into(),
        node_id: id,
        peer_address: me.peer_address.clone(),
        client_address: me.client_address.clone(),
        http_address: String::new(),
        mode,
        settings: RaftSettings::default(),
        log: LogConfig::default(),
        disk: Arc::new(RealDisk::new(data.join(id.to_string())).unwrap()),
        transport: Arc::new(GrpcTransport),
        clock: Arc::new(RealClock),
        effects: Box::new(NoEffects),
        offload: Offload::Threads,
        sync: SyncDrive::Thread,
    }
}

fn mark(n: u128) -> Command {
    Command::Release(Release { id: ReservationId::from_parts(1, n) })
}

async fn leader(nodes: &[TokioNode]) -> TokioNode {
    let began = Instant::now();
    loop {
        if let Some(node) = nodes.iter().find(|n| n.seems_to_lead()) {
            return node.clone();
        }
        assert!(began.elapsed() < SOON, "no leader within {SOON:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn put(nodes: &[TokioNode], n: u128) -> u64 {
    let began = Instant::now();
    loop {
        let deadline = TokioInstant::now() + Duration::from_secs(5);
        match leader(nodes).await.propose(&[mark(n)], deadline).await {
            Ok(answered) => return answered.first_revision,
            Err(error) => assert!(began.elapsed() < SOON, "mark {n} within {SOON:?}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_over_grpc_and_disks_keep_what_they_acknowledge() {
    let data = tempfile::tempdir().unwrap();
    let listeners: Vec<_> = (0..3).map(|_| bind("127.0.0.1:0".parse().unwrap()).unwrap()).collect();
    let founders: Vec<_> = (1..=3u64)
        .zip(&listeners)
        .map(|(node_id, listener)| FoundingMember {
            node_id,
            peer_address: listener.local_addr().unwrap().to_string(),
            client_address: format!("127.0.0.1:{node_id}"),
            http_address: String::new(),
        })
        .collect();
    let addresses: Vec<_> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
    let (mut nodes, mut threads) = (Vec::new(), Vec::new());
    for (id, listener) in (1..=3).zip(listeners) {
        let mode = StartMode::Bootstrap(founders.clone());
        let (node, thread) =
            RaftThread::start(parts(id, &founders, mode, data.path()), listener).await.unwrap();
        nodes.push(node);
        threads.push(thread);
    }
    let mut last = 0;
    for n in 1..=50 {
        last = put(&nodes, n).await;
    }
    assert!(last >= 50);
    let leading = leader(&nodes).await;
    let read = leading.read(TokioInstant::now() + SOON, |book| book.revision()).await.unwrap();
    assert!(read >= last);
    for thread in threads {
        tokio::task::spawn_blocking(move || thread.stop()).await.unwrap().unwrap();
    }
    drop(nodes);

    // All of them come back from their disks.
    let (mut nodes, mut threads) = (Vec::new(), Vec::new());
    for (id, address) in (1..=3).zip(addresses) {
        let listener = bind(address).unwrap();
        let (node, thread) =
            RaftThread::start(parts(id, &founders, StartMode::Normal, data.path()), listener).await.unwrap();
        nodes.push(node);
        threads.push(thread);
    }
    assert!(put(&nodes, 1_000).await > last, "acknowledged commands are gone");
    for thread in threads {
        tokio::task::spawn_blocking(move || thread.stop()).await.unwrap().unwrap();
    }
}
