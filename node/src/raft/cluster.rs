//! A whole cluster in one process on simulated disks, clocks and network: for tests and the simulator.
//!
//! The nodes are the real ones; only what they stand on is simulated. On a deterministic runtime the same
//! seed gives the same run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use openraft_rt::{AsyncRuntime, Instant};

use super::found::FoundingMember;
use super::handle::NodeHandle;
use super::memory::{Links, MemoryNetwork, address_of};
use super::settings::RaftSettings;
use super::snapshot::Offload;
use super::start::{NodeParts, StartError, StartMode, start};
use super::sync::SyncDrive;
use super::types::NodeId;
use crate::clock::Clock;
use crate::replica::NoEffects;
use crate::storage::SimDisk;
use crate::storage::log::LogConfig;
use crate::storage::sim_disk::Loss;

/// Where every simulated clock begins: 2026-11-30T00:00:00Z, ms.
pub const BEGIN_MS: u64 = 1_796_083_200_000;

/// A wall clock on the runtime's time, with an error of its own.
pub struct SimClock<R: AsyncRuntime> {
    began: R::Instant,
    offset_ms: AtomicI64,
    /// Parts per million that it runs too fast.
    drift_ppm: AtomicI64,
}

impl<R: AsyncRuntime> SimClock<R> {
    /// A right clock.
    pub fn new(began: R::Instant) -> Self {
        SimClock { began, offset_ms: AtomicI64::new(0), drift_ppm: AtomicI64::new(0) }
    }

    /// Makes it wrong by this much from now on.
    pub fn set_offset_ms(&self, offset_ms: i64) {
        self.offset_ms.store(offset_ms, Ordering::SeqCst);
    }

    /// Lets it run too fast (or slow) since its beginning.
    pub fn set_drift_ppm(&self, drift_ppm: i64) {
        self.drift_ppm.store(drift_ppm, Ordering::SeqCst);
    }
}

impl<R: AsyncRuntime> Clock for SimClock<R> {
    fn now_ms(&self) -> u64 {
        let elapsed_ms = R::Instant::now().saturating_duration_since(self.began).as_millis() as i64;
        let drift_ms = elapsed_ms.saturating_mul(self.drift_ppm.load(Ordering::SeqCst)) / 1_000_000;
        let off_ms =
            self.offset_ms.load(Ordering::SeqCst).saturating_add(drift_ms).saturating_add(elapsed_ms);
        BEGIN_MS.saturating_add_signed(off_ms)
    }
}

/// What one node stands on, and the node while it runs.
struct Seat<R: AsyncRuntime> {
    disk: SimDisk,
    clock: Arc<SimClock<R>>,
    node: Option<NodeHandle<R>>,
}

/// The nodes of one process.
pub struct Cluster<R: AsyncRuntime> {
    network: MemoryNetwork<R>,
    settings: RaftSettings,
    log: LogConfig,
    sync_latency: Arc<dyn Fn(NodeId) -> Duration + Send + Sync>,
    founders: Vec<FoundingMember>,
    seats: BTreeMap<NodeId, Seat<R>>,
    began: R::Instant,
}

/// The cluster's name in every test.
pub const CLUSTER_ID: &str = "sim";

impl<R: AsyncRuntime> Cluster<R> {
    /// A cluster to be founded by `ids`. Nothing runs yet.
    pub fn new(
        ids: &[NodeId],
        settings: RaftSettings,
        links: Arc<dyn Links>,
        sync_latency: Arc<dyn Fn(NodeId) -> Duration + Send + Sync>,
    ) -> Self {
        let founder = |id: &NodeId| FoundingMember {
            node_id: *id,
            peer_address: address_of(*id),
            client_address: format!("client-{id}:1"),
            http_address: String::new(),
        };
        let mut cluster = Cluster {
            network: MemoryNetwork::new(links),
            settings,
            log: LogConfig { segment_bytes: 1 << 20, ..LogConfig::default() },
            sync_latency,
            founders: ids.iter().map(founder).collect(),
            seats: BTreeMap::new(),
            began: R::Instant::now(),
        };
        for id in ids {
            cluster.add_seat(*id);
        }
        cluster
    }

    /// A place for one more node, with an empty disk and a right clock.
    pub fn add_seat(&mut self, id: NodeId) {
        let clock = Arc::new(SimClock::new(self.began));
        self.seats.insert(id, Seat { disk: SimDisk::new(), clock, node: None });
    }

    /// The settings that nodes are started with from now on.
    pub fn settings_mut(&mut self) -> &mut RaftSettings {
        &mut self.settings
    }

    /// A node's disk.
    pub fn disk(&self, id: NodeId) -> &SimDisk {
        &self.seats[&id].disk
    }

    /// Puts another disk into a node's place, for example an empty one.
    pub fn replace_disk(&mut self, id: NodeId, disk: SimDisk) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.disk = disk;
        }
    }

    /// A node's wall clock.
    pub fn clock(&self, id: NodeId) -> &Arc<SimClock<R>> {
        &self.seats[&id].clock
    }

    /// The network.
    pub fn network(&self) -> &MemoryNetwork<R> {
        &self.network
    }

    /// A node that runs.
    pub fn node(&self, id: NodeId) -> Option<&NodeHandle<R>> {
        self.seats.get(&id)?.node.as_ref()
    }

    /// The nodes that run.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &NodeHandle<R>)> {
        self.seats.iter().filter_map(|(id, seat)| Some((*id, seat.node.as_ref()?)))
    }

    /// How a founder is started the first time.
    pub fn bootstrap(&self) -> StartMode {
        StartMode::Bootstrap(self.founders.clone())
    }

    /// Everything that a node is made of, on its seat.
    pub fn parts(&self, id: NodeId, mode: StartMode) -> NodeParts {
        let seat = &self.seats[&id];
        let of_all = self.sync_latency.clone();
        let latency = Arc::new(move || of_all(id));
        NodeParts {
            cluster_id: CLUSTER_ID.into(),
            node_id: id,
            peer_address: address_of(id),
            client_address: format!("client-{id}:1"),
            http_address: String::new(),
            mode,
            settings: self.settings.clone(),
            log: self.log.clone(),
            disk: Arc::new(seat.disk.clone()),
            transport: self.network.plug_in(id),
            clock: seat.clock.clone(),
            effects: Box::new(NoEffects),
            offload: Offload::Inline,
            sync: SyncDrive::Task(latency),
        }
    }

    /// Starts a node.
    pub async fn start(&mut self, id: NodeId, mode: StartMode) -> Result<NodeHandle<R>, StartError> {
        let parts = self.parts(id, mode);
        self.start_with(id, parts).await
    }

    /// Starts a node made of `parts`.
    pub async fn start_with(&mut self, id: NodeId, parts: NodeParts) -> Result<NodeHandle<R>, StartError> {
        let node = start::<R>(parts).await?;
        self.network.serve(id, node.peer_server());
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.node = Some(node.clone());
        }
        Ok(node)
    }

    /// Founds the cluster with all its seats.
    pub async fn found(&mut self) -> Result<(), StartError> {
        let ids: Vec<NodeId> = self.seats.keys().copied().collect();
        for id in ids {
            self.start(id, self.bootstrap()).await?;
        }
        Ok(())
    }

    /// The power of a node goes: nothing more leaves it, and what was not synced is lost as `loss` says.
    pub async fn crash(&mut self, id: NodeId, loss: Loss, seed: u64) {
        self.network.unplug(id);
        let Some(seat) = self.seats.get_mut(&id) else { return };
        seat.disk.crash();
        if let Some(node) = seat.node.take() {
            node.abandon().await;
        }
        seat.disk.reboot(loss, seed);
    }

    /// Stops a node in order.
    pub async fn stop(&mut self, id: NodeId) {
        let node = self.seats.get_mut(&id).and_then(|seat| seat.node.take());
        if let Some(node) = node {
            node.shutdown().await;
        }
        self.network.unplug(id);
    }

    /// The node that most others follow in the newest term, if it says that it leads.
    pub fn leader(&self) -> Option<NodeId> {
        let leading = self.nodes().filter(|(_, node)| node.seems_to_lead());
        leading.max_by_key(|(_, node)| node.status().term).map(|(id, _)| id)
    }

    /// Waits until `condition` holds, looking every few ms of the runtime's time.
    ///
    /// # Errors
    /// It did not within `within`; the error says what was waited for.
    pub async fn wait_for(
        &self,
        what: &str,
        within: Duration,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<(), String> {
        let give_up = R::Instant::now() + within;
        while !condition(self) {
            if R::Instant::now() >= give_up {
                return Err(format!("not within {within:?}: {what}"));
            }
            R::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}
