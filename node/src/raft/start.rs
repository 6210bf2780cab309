//! Starting a node: identity, log, snapshot, replica, Raft, in this order, each refusing by name.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use openraft::StorageHelper;
use openraft_rt::{AsyncRuntime, Instant, Mutex as _, Watch};
use rand::RngExt;

use super::found::{Founding, FoundingMember};
use super::handle::NodeHandle;
use super::identity::{DiskId, Identity, IdentityError, load_or_create};
use super::leadership::Leadership;
use super::limits::{CLOCK_SAMPLE_HEARTBEATS, LEADER_SILENCE_ELECTIONS};
use super::log_store::LogStore;
use super::metrics::{Metrics, micros};
use super::network::Network;
use super::peers::PeerServer;
use super::reads::Reads;
use super::settings::RaftSettings;
use super::shared::{Patience, RaftNode, Shared};
use super::snapshot::{Offload, SnapshotFiles};
use super::state_machine::StateMachine;
use super::sync::{SyncDrive, Syncing};
use super::transport::Transport;
use super::types::{GROUP, Member, NodeId};
use super::watch::{watch_core, watch_snapshots};
use crate::clock::{Clock, ClockBounds, StampClock};
use crate::propose::{Batcher, Proposer};
use crate::replica::{EffectSink, Replica};
use crate::storage::log::{Log, LogConfig, LogOpenError};
use crate::storage::snapshot::{SnapshotError, SnapshotStore};
use crate::storage::{Disk, SyncedBy};
use crate::timers::Timers;

/// How a node comes to its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// It has been part of it: the data directory must know it.
    Normal,
    /// It founds the cluster with these members, itself among them. Ignored once it is founded.
    Bootstrap(Vec<FoundingMember>),
    /// It is new and waits to be added; these members (peer addresses) are asked whether its id is free.
    Join(Vec<String>),
}

/// Everything a node is made of.
pub struct NodeParts {
    /// The cluster's name.
    pub cluster_id: String,
    /// This node's id.
    pub node_id: NodeId,
    /// `host:port` that the other members reach it at.
    pub peer_address: String,
    /// `host:port` that clients reach it at.
    pub client_address: String,
    /// `host:port` that browsers and probes reach it at.
    pub http_address: String,
    /// How it comes to its cluster.
    pub mode: StartMode,
    /// Raft's settings.
    pub settings: RaftSettings,
    /// How the log is kept.
    pub log: LogConfig,
    /// The data directory.
    pub disk: Arc<dyn Disk>,
    /// The network.
    pub transport: Arc<dyn Transport>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Takes what has ended.
    pub effects: Box<dyn EffectSink>,
    /// Where long work on snapshots runs.
    pub offload: Offload,
    /// Who syncs the log.
    pub sync: SyncDrive,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory is not this node's.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The log does not open.
    #[error(transparent)]
    Log(#[from] LogOpenError),
    /// The snapshots do not open.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The disk failed.
    #[error("the data directory: {0}")]
    Io(#[from] std::io::Error),
    /// The settings contradict each other.
    #[error("the Raft settings: {0}")]
    Settings(String),
    /// What is stored cannot be brought to a state to start from.
    #[error("the stored state: {0}")]
    State(String),
    /// The membership has this node id on another disk.
    #[error(
        "node {node_id} of the cluster lives on disk {member}, but this data directory is disk {here}: \
         its data is not the member's. Replace the member under a new id"
    )]
    OtherDisk {
        /// The node id.
        node_id: NodeId,
        /// The disk in the membership.
        member: DiskId,
        /// The disk here.
        here: DiskId,
    },
    /// The founding members do not include this node.
    #[error("node {0} is not among the founding members")]
    NotAFounder(NodeId),
}

/// Starts a node. Its peers reach it once the caller serves [`NodeHandle::peer_server`].
///
/// Must run on the runtime that Raft shall run on.
pub async fn start<R: AsyncRuntime>(parts: NodeParts) -> Result<NodeHandle<R>, StartError> {
    let NodeParts { cluster_id, node_id, peer_address, client_address, http_address, mode, settings, .. } =
        parts;
    let NodeParts { log: log_config, disk, transport, clock, effects, offload, sync, .. } = parts;
    let config = settings.to_openraft(&cluster_id).map_err(|e| StartError::Settings(e.to_string()))?;
    if let StartMode::Bootstrap(members) = &mode
        && !members.iter().any(|m| m.node_id == node_id)
    {
        return Err(StartError::NotAFounder(node_id));
    }
    let may_create = mode != StartMode::Normal;
    let draw = || DiskId(R::thread_rng().random());
    let identity = load_or_create(disk.as_ref(), &cluster_id, node_id, may_create, draw)?;
    tracing::info!("this is {identity}");

    let metrics = Arc::new(Metrics::new(ticker::<R>()));
    let timing = metrics.clone();
    let timed = Arc::new(SyncedBy::new(disk.clone(), move |_, file| {
        let began = timing.begin();
        let result = file.sync();
        timing.sync_us.record(timing.since(began));
        result
    }));
    let (log, worker) = Log::open(timed, LogConfig { group: GROUP, ..log_config })?;
    let syncing = Syncing::<R>::start(&log, worker, &sync)?;
    let files = Arc::new(SnapshotFiles::open(SnapshotStore::open(disk.clone())?)?);
    let replica = Arc::new(Replica::new(effects));
    let bounds = ClockBounds {
        off_ms_max: settings.clock_bound_ms,
        sample_age_max: settings.heartbeat * CLOCK_SAMPLE_HEARTBEATS,
    };
    let clock = Arc::new(StampClock::<R>::new(clock, bounds));
    let patience = Patience {
        heartbeat: settings.heartbeat,
        leader_silence: settings.election_max * LEADER_SILENCE_ELECTIONS,
        append_idle: settings.election_max.max(Duration::from_millis(500)),
        snapshot_idle: settings.snapshot_idle,
    };
    let shared = Arc::new(Shared::new(identity.clone(), patience, clock, replica.clone(), metrics.clone()));

    let mut store = LogStore::<R>::new(log.clone());
    let mut machine = StateMachine::<R>::new(replica, files.clone(), offload.clone(), metrics.clone());
    // Restores the snapshot and replays the log; openraft's own start then finds it done.
    let state = StorageHelper::new(&mut store, &mut machine).with_id(node_id).get_initial_state().await;
    let state = state.map_err(|e| StartError::State(e.to_string()))?;
    let membership = state.membership_state.effective().clone();
    check_own_disk(&identity, membership.get_node(&node_id))?;
    let is_new = membership.log_id().is_none();

    let network = Network { shared: shared.clone(), transport: transport.clone() };
    let raft = RaftNode::<R>::build(node_id, config, network, store, machine).await;
    let raft = raft.map_err(|e| StartError::State(e.to_string()))?;
    let _ = shared.raft.set(raft.clone());
    raft.run();

    let me = Member { peer_address, client_address, http_address, disk_id: identity.disk_id };
    let peers = PeerServer { shared: shared.clone(), files, me: me.clone(), offload };
    let leadership = Leadership::new(shared.clone(), raft.clone());
    let (proposer, queue) = Proposer::new(settings.queue_commands_max);
    let batcher = Batcher::new(leadership.clone(), queue, metrics.clone(), settings.entries_under_way_max);
    let timers = Timers::new(leadership.clone(), proposer.clone());
    let reads = Reads::start(leadership.clone(), &settings, metrics.clone());
    let (leader_tx, leader_rx) = R::Watch::channel(None);
    let mut tasks = vec![
        R::spawn(shared.until_stop(batcher.run())),
        R::spawn(shared.until_stop(timers.run())),
        R::spawn(watch_core(shared.clone(), raft.clone(), log.clone(), leader_tx, metrics.clone())),
        R::spawn(shared.until_stop(watch_snapshots(
            raft.clone(),
            shared.clone(),
            metrics.clone(),
            settings.clone(),
        ))),
    ];
    if is_new {
        let founding = Founding { shared: shared.clone(), raft: raft.clone(), transport, me };
        tasks.push(R::spawn(shared.until_stop(founding.run(mode))));
    }
    Ok(NodeHandle::new(super::handle::Inner {
        shared,
        raft,
        leadership,
        proposer,
        reads,
        peers,
        metrics,
        log,
        leader_rx,
        tasks: R::Mutex::new(Some(tasks)),
        syncing: R::Mutex::new(Some(syncing)),
        handed_over: AtomicBool::new(false),
    }))
}

fn check_own_disk(identity: &Identity, member: Option<&Member>) -> Result<(), StartError> {
    match member {
        Some(member) if member.disk_id != identity.disk_id => Err(StartError::OtherDisk {
            node_id: identity.node_id,
            member: member.disk_id,
            here: identity.disk_id,
        }),
        _ => Ok(()),
    }
}

fn ticker<R: AsyncRuntime>() -> super::metrics::Ticker {
    let began = R::Instant::now();
    Box::new(move || micros(R::Instant::now().saturating_duration_since(began)))
}
