//! The machines: disks, clocks and the nodes that run on them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_node::raft::memory::MemoryNetwork;
use holdfast_node::raft::{
    FoundingMember, NodeHandle, NodeParts, Offload, RaftSettings, StartError, StartMode, SyncDrive, start,
};
use holdfast_node::storage::log::LogConfig;
use holdfast_node::storage::sim_disk::Loss;
use holdfast_node::storage::{Disk, SimDisk};
use openraft_rt::{AsyncRuntime, Instant, WatchReceiver};
use openraft_rt_sim::SimInstant;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::Sim;
use super::clock::{SimClock, since_us};
use super::lazy_disk::lazy_disk;
use super::links::SimLinks;
use super::tap::{Applied, Tap};
use crate::applied::NodeApplied;
use crate::evidence::{LeaderSeen, NodeAudit};
use crate::seed;

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The log reports what it wrote as durable before it is.
    AckBeforeSync,
    /// A restarted leader resumes its term.
    LeaderRestore,
    /// Linearizable reads are answered by the leader's lease.
    LeaseRead,
}

/// How the machines are.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// How many.
    pub nodes: u64,
    /// Raft's settings on each.
    pub settings: RaftSettings,
    /// The bug, if there is to be one.
    pub mutant: Option<Mutant>,
}

impl Default for WorldOptions {
    fn default() -> Self {
        let settings =
            RaftSettings { snapshot_commands: 400, snapshot_entries_kept: 20, ..RaftSettings::for_tests() };
        WorldOptions { nodes: 3, settings, mutant: None }
    }
}

struct Machine {
    disk: SimDisk,
    clock: Arc<SimClock>,
    sync_us: Arc<AtomicU64>,
    applied: Applied,
    life: u64,
    founded: bool,
    handle: Option<NodeHandle<Sim>>,
}

/// All machines and the network between them. Clones share it.
#[derive(Clone)]
pub struct World {
    machines: Arc<Mutex<BTreeMap<u64, Machine>>>,
    network: MemoryNetwork<Sim>,
    links: Arc<SimLinks>,
    leaders: Arc<Mutex<Vec<LeaderSeen>>>,
    mishaps: Arc<Mutex<Vec<String>>>,
    began: SimInstant,
    options: Arc<WorldOptions>,
    rng: Arc<Mutex<ChaCha8Rng>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The address by which clients and nodes name a node.
pub(super) fn address(node: u64) -> String {
    format!("node-{node}:1")
}

/// The node behind an [`address`].
pub(super) fn node_at(address: &str) -> Option<u64> {
    address.strip_prefix("node-")?.split(':').next()?.parse().ok()
}

impl World {
    /// Machines that are not started yet. Must be made on the simulation's runtime.
    pub fn new(seed: u64, options: WorldOptions) -> World {
        let links = Arc::new(SimLinks::new(seed::stream(seed, "links", 0)));
        let began = SimInstant::now();
        let mut rng = seed::stream(seed, "world", 0);
        let machine = |rng: &mut ChaCha8Rng| Machine {
            disk: SimDisk::new(),
            clock: Arc::new(SimClock::new(began)),
            sync_us: Arc::new(AtomicU64::new(rng.random_range(200..3_000))),
            applied: Applied::default(),
            life: 0,
            founded: false,
            handle: None,
        };
        let machines = (1..=options.nodes).map(|node| (node, machine(&mut rng))).collect();
        World {
            machines: Arc::new(Mutex::new(machines)),
            network: MemoryNetwork::new(links.clone()),
            links,
            leaders: Arc::default(),
            mishaps: Arc::default(),
            began,
            options: Arc::new(options),
            rng: Arc::new(Mutex::new(rng)),
        }
    }

    /// The nodes' ids.
    pub fn nodes(&self) -> Vec<u64> {
        (1..=self.options.nodes).collect()
    }

    /// The links.
    pub fn links(&self) -> &SimLinks {
        &self.links
    }

    /// Virtual microseconds since the beginning.
    pub fn now_us(&self) -> u64 {
        since_us(self.began)
    }

    /// The clock of a machine.
    pub fn clock(&self, node: u64) -> Arc<SimClock> {
        lock(&self.machines)[&node].clock.clone()
    }

    /// Sets how long a sync takes on a machine.
    pub fn set_sync(&self, node: u64, takes: Duration) {
        lock(&self.machines)[&node].sync_us.store(takes.as_micros() as u64, Ordering::Relaxed);
    }

    /// Notes something that is wrong and no checker sees.
    pub fn mishap(&self, what: impl Into<String>) {
        lock(&self.mishaps).push(what.into());
    }

    /// The mishaps so far.
    pub fn mishaps(&self) -> Vec<String> {
        lock(&self.mishaps).clone()
    }

    /// Everybody who was seen to lead.
    pub fn leaders_seen(&self) -> Vec<LeaderSeen> {
        lock(&self.leaders).clone()
    }

    /// What every node applied.
    pub fn applied(&self) -> Vec<NodeApplied> {
        let machines = lock(&self.machines);
        machines
            .iter()
            .map(|(node, machine)| NodeApplied { node: *node, entries: lock(&machine.applied).clone() })
            .collect()
    }

    /// The running node and which of its lives this is.
    pub fn handle(&self, node: u64) -> Option<(u64, NodeHandle<Sim>)> {
        let machines = lock(&self.machines);
        let machine = machines.get(&node)?;
        Some((machine.life, machine.handle.clone()?))
    }

    /// Which life a node is in, if it runs.
    pub fn life(&self, node: u64) -> Option<u64> {
        self.handle(node).map(|(life, _)| life)
    }

    /// The node that seems to lead, in the newest term where several do.
    pub fn leader(&self) -> Option<u64> {
        let leads = |node: &u64| {
            let (_, handle) = self.handle(*node)?;
            handle.seems_to_lead().then(|| (handle.status().term, *node))
        };
        self.nodes().iter().filter_map(leads).max().map(|(_, node)| node)
    }

    /// Starts a node; the first time as a founder.
    pub async fn boot(&self, node: u64) -> Result<(), StartError> {
        let parts = self.parts(node);
        let handle = start::<Sim>(parts).await?;
        self.network.serve(node, handle.peer_server());
        let life = {
            let mut machines = lock(&self.machines);
            let Some(machine) = machines.get_mut(&node) else { return Ok(()) };
            machine.life += 1;
            machine.founded = true;
            machine.handle = Some(handle.clone());
            machine.life
        };
        drop(Sim::spawn(self.clone().watch_leader(node, handle.clone())));
        drop(Sim::spawn(self.clone().watch_fatal(node, life, handle)));
        Ok(())
    }

    fn parts(&self, node: u64) -> NodeParts {
        let machines = lock(&self.machines);
        let machine = &machines[&node];
        let disk: Arc<dyn Disk> = Arc::new(machine.disk.clone());
        let mut settings = self.options.settings.clone();
        settings.unsafe_leader_restore = self.options.mutant == Some(Mutant::LeaderRestore);
        settings.unsafe_lease_reads = self.options.mutant == Some(Mutant::LeaseRead);
        let sync_us = machine.sync_us.clone();
        NodeParts {
            cluster_id: "simulated".into(),
            node_id: node,
            peer_address: address(node),
            client_address: address(node),
            http_address: String::new(),
            mode: if machine.founded { StartMode::Normal } else { StartMode::Bootstrap(self.founders()) },
            settings,
            log: LogConfig { segment_bytes: 64 << 10, ..LogConfig::default() },
            disk: match self.options.mutant {
                Some(Mutant::AckBeforeSync) => Arc::new(lazy_disk(disk)),
                _ => disk,
            },
            transport: self.network.plug_in(node),
            clock: machine.clock.clone(),
            effects: Box::new(Tap(machine.applied.clone())),
            offload: Offload::Inline,
            sync: SyncDrive::Task(Arc::new(move || Duration::from_micros(sync_us.load(Ordering::Relaxed)))),
        }
    }

    fn founders(&self) -> Vec<FoundingMember> {
        let founder = |node| FoundingMember {
            node_id: node,
            peer_address: address(node),
            client_address: address(node),
            http_address: String::new(),
        };
        self.nodes().into_iter().map(founder).collect()
    }

    async fn watch_leader(self, node: u64, handle: NodeHandle<Sim>) {
        let mut changes = handle.watch_leader();
        drop(handle);
        loop {
            let view = *changes.borrow_watched();
            if let Some(view) = view.filter(|view| view.is_me) {
                lock(&self.leaders).push(LeaderSeen { term: view.term, node });
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// A node that fails by itself is a finding, unless its power is gone.
    async fn watch_fatal(self, node: u64, life: u64, handle: NodeHandle<Sim>) {
        let mut changes = handle.watch_fatal();
        drop(handle);
        loop {
            let why = changes.borrow_watched().clone();
            if let Some(why) = why {
                let powered = !lock(&self.machines)[&node].disk.is_down();
                if powered && self.life(node) == Some(life) {
                    self.mishap(format!("node {node} failed by itself: {why}"));
                }
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Takes a machine's power away in the middle of one of its next writes, or now if it writes nothing.
    pub async fn crash_in_a_write(&self, node: u64, loss: Loss) {
        let disk = lock(&self.machines)[&node].disk.clone();
        let (nth, effect) = {
            let mut rng = lock(&self.rng);
            (rng.random_range(1..12), rng.random_bool(0.5))
        };
        disk.crash_at(nth, effect);
        let give_up = SimInstant::now() + Duration::from_millis(200);
        while !disk.is_down() && SimInstant::now() < give_up {
            Sim::sleep(Duration::from_micros(500)).await;
        }
        self.crash(node, loss).await;
    }

    /// Takes a machine's power away: what was not synced is lost as `loss` says.
    pub async fn crash(&self, node: u64, loss: Loss) {
        let (disk, handle) = {
            let mut machines = lock(&self.machines);
            let Some(machine) = machines.get_mut(&node) else { return };
            (machine.disk.clone(), machine.handle.take())
        };
        disk.crash();
        self.network.unplug(node);
        if let Some(handle) = handle {
            handle.abandon().await;
        }
        let seed = lock(&self.rng).random();
        disk.reboot(loss, seed);
    }

    /// Stops a node in order.
    pub async fn stop(&self, node: u64) {
        let handle = lock(&self.machines).get_mut(&node).and_then(|machine| machine.handle.take());
        if let Some(handle) = handle {
            handle.shutdown().await;
        }
        self.network.unplug(node);
    }

    /// Starts a node if it is down. One that will not start is a finding.
    pub async fn ensure_up(&self, node: u64) {
        if self.handle(node).is_none()
            && let Err(error) = self.boot(node).await
        {
            self.mishap(format!("node {node} does not start: {error}"));
        }
    }

    /// The audits of all nodes that run.
    pub fn audits(&self) -> Vec<NodeAudit> {
        let audit = |node: &u64| {
            let (_, handle) = self.handle(*node)?;
            let report = handle.replica().read(|book| book.audit());
            Some(NodeAudit {
                node: *node,
                revision: report.revision,
                digest: format!("{:032x}", report.digest),
                violations: report.violations.iter().map(|violation| format!("{violation:?}")).collect(),
            })
        };
        self.nodes().iter().filter_map(audit).collect()
    }

    /// Waits until `done`, for at most `patience` of virtual time. False if it did not come true.
    pub async fn wait_until(&self, patience: Duration, mut done: impl FnMut() -> bool) -> bool {
        let give_up = SimInstant::now() + patience;
        while !done() {
            if SimInstant::now() >= give_up {
                return false;
            }
            Sim::sleep(Duration::from_millis(5)).await;
        }
        true
    }

    /// Whether all nodes run and have applied the same.
    pub fn has_converged(&self) -> bool {
        let applied = |node: &u64| Some(self.handle(*node)?.1.status().applied_index);
        let seen: Vec<_> = self.nodes().iter().map(applied).collect();
        seen.iter().all(|index| index.is_some() && *index == seen[0])
    }
}
