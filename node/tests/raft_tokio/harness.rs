//! A cluster over gRPC and real disks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_ledger::command::Release;
use holdfast_ledger::{Command, ReservationId};
use holdfast_node::clock::{Clock, RealClock};
use holdfast_node::propose::{Answered, ProposeError};
use holdfast_node::raft::host::{RaftThread, TokioNode, bind};
use holdfast_node::raft::{FoundingMember, NodeParts, Offload, RaftSettings, StartMode, SyncDrive};
use holdfast_node::replica::NoEffects;
use holdfast_node::storage::RealDisk;
use holdfast_node::storage::log::LogConfig;
use openraft_rt::Instant as _;
use openraft_rt_tokio::TokioInstant;

use crate::gate::{Gate, GatedTransport};

/// Generous: the machine may be busy. Nothing here measures.
pub const SOON: Duration = Duration::from_secs(60);

pub const CLUSTER_ID: &str = "smoke";

struct Running {
    node: TokioNode,
    thread: RaftThread,
}

/// Three seats, each with its directory, its port, and a gate that its snapshots go out through.
pub struct Cluster {
    directory: tempfile::TempDir,
    founders: Vec<FoundingMember>,
    settings: RaftSettings,
    gates: Vec<Arc<Gate>>,
    seats: Vec<Option<Running>>,
}

impl Cluster {
    pub async fn found(settings: RaftSettings) -> Cluster {
        let listeners: Vec<_> = (0..3).map(|_| bind("127.0.0.1:0".parse().unwrap()).unwrap()).collect();
        let founder = |(node_id, listener): (u64, &std::net::TcpListener)| FoundingMember {
            node_id,
            peer_address: listener.local_addr().unwrap().to_string(),
            client_address: format!("127.0.0.1:{node_id}"),
            http_address: String::new(),
        };
        let mut cluster = Cluster {
            directory: tempfile::tempdir().unwrap(),
            founders: (1..=3).zip(&listeners).map(founder).collect(),
            settings,
            gates: (0..3).map(|_| Arc::default()).collect(),
            seats: (0..3).map(|_| None).collect(),
        };
        for (id, listener) in (1..=3).zip(listeners) {
            cluster.start_on(id, StartMode::Bootstrap(cluster.founders.clone()), listener).await;
        }
        cluster
    }

    async fn start_on(&mut self, id: u64, mode: StartMode, listener: std::net::TcpListener) {
        let me = &self.founders[id as usize - 1];
        let parts = NodeParts {
            cluster_id: CLUSTER_ID.into(),
            node_id: id,
            peer_address: me.peer_address.clone(),
            client_address: me.client_address.clone(),
            http_address: String::new(),
            mode,
            settings: self.settings.clone(),
            log: LogConfig::default(),
            disk: Arc::new(RealDisk::new(self.directory_of(id)).unwrap()),
            transport: Arc::new(GatedTransport::new(self.gate(id).clone())),
            clock: Arc::new(RealClock),
            effects: Box::new(NoEffects),
            offload: Offload::Threads,
            sync: SyncDrive::Thread,
        };
        let (node, thread) = RaftThread::start(parts, listener).await.unwrap();
        self.seats[id as usize - 1] = Some(Running { node, thread });
    }

    /// Starts a stopped node again on its directory and port.
    pub async fn start(&mut self, id: u64) {
        let listener = bind(self.peer_address(id).parse().unwrap()).unwrap();
        self.start_on(id, StartMode::Normal, listener).await;
    }

    /// Stops a node in order and frees its port.
    pub async fn stop(&mut self, id: u64) {
        let Some(running) = self.seats[id as usize - 1].take() else { return };
        tokio::task::spawn_blocking(move || running.thread.stop()).await.unwrap().unwrap();
    }

    pub async fn stop_all(&mut self) {
        for id in 1..=3 {
            self.stop(id).await;
        }
    }

    pub fn directory_of(&self, id: u64) -> PathBuf {
        self.directory.path().join(id.to_string())
    }

    pub fn peer_address(&self, id: u64) -> String {
        self.founders[id as usize - 1].peer_address.clone()
    }

    pub fn gate(&self, id: u64) -> &Arc<Gate> {
        &self.gates[id as usize - 1]
    }

    pub fn node(&self, id: u64) -> TokioNode {
        self.seats[id as usize - 1].as_ref().unwrap().node.clone()
    }

    pub fn nodes(&self) -> Vec<TokioNode> {
        self.seats.iter().flatten().map(|running| running.node.clone()).collect()
    }

    pub async fn leader(&self) -> u64 {
        let nodes = self.nodes();
        let leading = || nodes.iter().find(|node| node.seems_to_lead()).map(|n| n.identity().node_id);
        until("a node leads", leading).await
    }

    /// Files of unfinished snapshots in a node's directory.
    pub fn unfinished_snapshots(&self, id: u64) -> usize {
        let entries = std::fs::read_dir(self.directory_of(id).join("snapshots")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "tmp")).count()
    }

    /// Waits until all running nodes hold the same book, at this revision or a later one.
    pub async fn converged(&self, revision_min: u64) {
        let nodes = self.nodes();
        let same = || {
            let of = |node: &TokioNode| node.replica().read(|book| (book.revision(), book.digest()));
            let first = of(&nodes[0]);
            (first.0 >= revision_min && nodes.iter().all(|node| of(node) == first)).then_some(())
        };
        until("all nodes hold the same book", same).await;
    }
}

/// A command that leaves a trace under its number: a release of an id never seen makes a tombstone.
pub fn mark(n: u128) -> Command {
    Command::Release(Release { id: ReservationId::from_parts(RealClock.now_ms(), n) })
}

/// Proposes commands at whoever leads until they are acknowledged.
pub async fn put(nodes: &[TokioNode], commands: &[Command]) -> Answered {
    let began = Instant::now();
    loop {
        let deadline = TokioInstant::now() + Duration::from_secs(5);
        let outcome = match nodes.iter().find(|node| node.seems_to_lead()) {
            Some(leader) => leader.propose(commands, deadline).await,
            None => Err(ProposeError::NotLeader(None)),
        };
        match outcome {
            Ok(answered) => return answered,
            Err(error) => assert!(began.elapsed() < SOON, "not acknowledged within {SOON:?}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Looks until there is something to see.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < SOON, "not within {SOON:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
