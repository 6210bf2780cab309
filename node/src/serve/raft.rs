//! Raft's thread, as the configuration wants it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::data::DataDirectory;
use super::{Addresses, Fatal, StartMode, StartOptions};
use crate::clock::RealClock;
use crate::config::NodeConfig;
use crate::raft::grpc::GrpcTransport;
use crate::raft::host::{RaftThread, TokioNode};
use crate::raft::identity::{DiskId, load_or_create};
use crate::raft::{self, FoundingMember, NodeParts, Offload, RaftSettings, StartError, SyncDrive};
use crate::recording::Recording;
use crate::replica::EffectSink;
use crate::storage::log::LogConfig;

/// Checks that the directory is this node's, or makes it so where the mode allows that: before anything
/// else is written there. Gives its disk.
pub(super) fn claim(config: &NodeConfig, mode: StartMode, data: &DataDirectory) -> Result<DiskId, Fatal> {
    let may_create = mode != StartMode::Normal;
    let disk = data.disk();
    let draw = || DiskId(rand::random());
    match load_or_create(disk.as_ref(), &config.cluster_id, config.node_id, may_create, draw) {
        Ok(identity) => Ok(identity.disk_id),
        Err(error) => Err(refused(config, &error)),
    }
}

fn refused(config: &NodeConfig, error: &dyn std::fmt::Display) -> Fatal {
    Fatal::Data { directory: config.data_dir.display().to_string(), problem: error.to_string() }
}

/// Starts Raft on its own thread and serves the peers on `listener`.
pub(super) fn start(
    config: &NodeConfig,
    options: &StartOptions,
    addresses: &Addresses,
    listener: std::net::TcpListener,
    data: &DataDirectory,
    effects: Box<dyn EffectSink>,
    on: &Handle,
) -> Result<(TokioNode, RaftThread), Fatal> {
    let parts = NodeParts {
        cluster_id: config.cluster_id.clone(),
        node_id: config.node_id,
        peer_address: addresses.peer.clone(),
        client_address: addresses.client.clone(),
        http_address: addresses.http.clone(),
        mode: raft_mode(config, options.mode, addresses),
        settings: settings(config),
        log: log(config),
        disk: data.disk(),
        transport: Arc::new(GrpcTransport),
        clock: Arc::new(RealClock),
        effects: recorded(effects, options.applied_log.as_deref())?,
        offload: Offload::Threads,
        sync: SyncDrive::Thread,
    };
    on.block_on(RaftThread::start(parts, listener)).map_err(|error| match error {
        StartError::Settings(_) | StartError::NotAFounder(_) => Fatal::Start(error.to_string()),
        _ => refused(config, &error),
    })
}

/// The sink of effects, with the applied log before it where one is asked for.
fn recorded(effects: Box<dyn EffectSink>, applied_log: Option<&Path>) -> Result<Box<dyn EffectSink>, Fatal> {
    let Some(path) = applied_log else { return Ok(effects) };
    match Recording::open(path, effects) {
        Ok(recording) => Ok(Box::new(recording)),
        Err(error) => Err(Fatal::Start(format!("the applied log {}: {error}", path.display()))),
    }
}

fn raft_mode(config: &NodeConfig, mode: StartMode, addresses: &Addresses) -> raft::StartMode {
    match mode {
        StartMode::Normal => raft::StartMode::Normal,
        StartMode::Join => {
            raft::StartMode::Join(config.members.iter().map(|member| member.peer.clone()).collect())
        }
        StartMode::Bootstrap if config.members.is_empty() => {
            raft::StartMode::Bootstrap(vec![FoundingMember {
                node_id: config.node_id,
                peer_address: addresses.peer.clone(),
                client_address: addresses.client.clone(),
                http_address: addresses.http.clone(),
            }])
        }
        StartMode::Bootstrap => {
            let founder = |member: &crate::config::Member| FoundingMember {
                node_id: member.id,
                peer_address: member.peer.clone(),
                client_address: member.client.clone(),
                http_address: member.http.clone(),
            };
            raft::StartMode::Bootstrap(config.members.iter().map(founder).collect())
        }
    }
}

fn settings(config: &NodeConfig) -> RaftSettings {
    RaftSettings {
        heartbeat: Duration::from_millis(config.raft.heartbeat_ms),
        election_min: Duration::from_millis(config.raft.election_ms_min),
        election_max: Duration::from_millis(config.raft.election_ms_max),
        clock_bound_ms: config.raft.clock_bound_ms,
        snapshot_log_bytes: config.snapshot.log_bytes,
        snapshot_commands: config.snapshot.commands,
        snapshot_entries_kept: config.snapshot.entries_kept,
        queue_commands_max: size(config.queue.commands_max),
        entries_under_way_max: size(config.queue.entries_under_way_max),
        ..RaftSettings::default()
    }
}

fn log(config: &NodeConfig) -> LogConfig {
    LogConfig {
        segment_bytes: config.storage.segment_bytes,
        cache_bytes: size(config.storage.log_cache_bytes),
        ..LogConfig::default()
    }
}

fn size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
