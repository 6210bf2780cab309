//! The configuration of one node: a plain struct, passed in.
//!
//! A value comes from, in this order: a flag, the environment (`HOLDFAST_…`), the file, the default.
//! Loading reports every problem at once with the key named, and repairs nothing. What each key means
//! to an operator is written in `docs/configuration.md`; `scripts/holdfast.toml` holds the defaults.

mod address;
mod env;
mod filter;
mod load;
mod validate;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use address::Address;
pub use load::{Layer, Problem, env_name, keys, load};

/// Everything that a node is told before it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// The cluster's name. Peers and data directories of another cluster are refused.
    pub cluster_id: String,
    /// This node's id in the cluster, from 1. Never used again after the node's disk is gone.
    pub node_id: u64,
    /// Where everything this node stores lies; made if it is absent.
    pub data_dir: PathBuf,
    /// What is logged: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,openraft=warn`.
    pub log_level: String,
    /// Where clients reach the node (gRPC).
    pub client: Listen,
    /// Where the other members reach the node (gRPC).
    pub peer: Listen,
    /// Where probes, Prometheus and browsers reach the node (HTTP).
    pub http: Listen,
    /// The members that `--bootstrap` founds the cluster with. Afterwards the membership in the log decides.
    pub members: Vec<Member>,
    /// Raft's timing.
    pub raft: RaftTiming,
    /// The sizes of the log's files.
    pub storage: StorageSizes,
    /// When a snapshot is taken.
    pub snapshot: SnapshotPolicy,
    /// How much may wait or be under way.
    pub queue: QueueBounds,
    /// The index of what has ended.
    pub history: HistoryPolicy,
    /// Sending events to tenants' webhooks.
    pub webhooks: WebhookPolicy,
}

/// One port: where the node listens, and which address it tells others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// `host:port`; port 0 takes a free one.
    pub listen: String,
    /// `host:port` that others use; empty: the address that was bound.
    pub advertise: String,
}

/// A founding member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its node id.
    pub id: u64,
    /// `host:port` of its peer port.
    pub peer: String,
    /// `host:port` of its client port.
    pub client: String,
    /// `host:port` of its HTTP port; empty: unknown.
    #[serde(default)]
    pub http: String,
}

/// Raft's timing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaftTiming {
    /// How often a leader says that it is alive, ms.
    pub heartbeat_ms: u64,
    /// Shortest silence after which a follower stands for election, ms.
    pub election_ms_min: u64,
    /// Longest such silence, ms; each node draws between the two.
    pub election_ms_max: u64,
    /// How far a leader's stamps may lie from the median of the members' clocks before it hands over, ms.
    pub clock_bound_ms: u64,
}

/// The sizes of the log's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageSizes {
    /// A new segment of the log is begun past this size, bytes.
    pub segment_bytes: u64,
    /// Newest part of the log that is also kept in memory for replication and apply, bytes.
    pub log_cache_bytes: u64,
}

/// When a snapshot is taken: at whichever comes first since the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPolicy {
    /// Bytes of log.
    pub log_bytes: u64,
    /// Commands.
    pub commands: u64,
    /// Log entries kept behind a snapshot, so that a slow follower need not be sent the whole of it.
    pub entries_kept: u64,
}

/// How much may wait or be under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueBounds {
    /// Commands that wait to be proposed; one more is refused as OVERLOADED.
    pub commands_max: u64,
    /// Log entries under way at a time.
    pub entries_under_way_max: u64,
    /// Commands of one batched stream that are not answered yet; past it the node stops reading that stream.
    pub stream_commands_max: u64,
    /// Connections of clients; one more is told OVERLOADED and closed.
    pub connections_max: u64,
    /// Commands of one connection's batched streams that are not answered yet, or whose answers the client does
    /// not read; more are refused as OVERLOADED.
    pub connection_commands_max: u64,
    /// Largest message of a client, bytes.
    pub message_bytes_max: u64,
    /// Deadline of a call that names none, ms.
    pub deadline_ms: u64,
}

/// The index of what has ended, for `holdfast history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryPolicy {
    /// Whether it is written at all.
    pub enabled: bool,
    /// How long ended reservations and events are kept there, ms.
    pub retention_ms: u64,
    /// Records that wait to be written there; past it records are left out and counted, never waited for.
    pub queue_max: u64,
}

/// Sending events to tenants' webhooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookPolicy {
    /// Whether this node sends any while it leads.
    pub enabled: bool,
    /// How long one delivery may take, ms.
    pub deadline_ms: u64,
}

impl Default for NodeConfig {
    fn default() -> Self {
        NodeConfig {
            cluster_id: "holdfast".into(),
            node_id: 1,
            data_dir: "holdfast-data".into(),
            log_level: "info".into(),
            client: Listen::on("127.0.0.1:7401"),
            peer: Listen::on("127.0.0.1:7421"),
            http: Listen::on("127.0.0.1:7441"),
            members: Vec::new(),
            raft: RaftTiming::default(),
            storage: StorageSizes::default(),
            snapshot: SnapshotPolicy::default(),
            queue: QueueBounds::default(),
            history: HistoryPolicy::default(),
            webhooks: WebhookPolicy::default(),
        }
    }
}

impl Listen {
    fn on(listen: &str) -> Self {
        Listen { listen: listen.into(), advertise: String::new() }
    }
}

impl Default for RaftTiming {
    fn default() -> Self {
        RaftTiming { heartbeat_ms: 100, election_ms_min: 500, election_ms_max: 1_000, clock_bound_ms: 500 }
    }
}

impl Default for StorageSizes {
    fn default() -> Self {
        StorageSizes { segment_bytes: 64 << 20, log_cache_bytes: 64 << 20 }
    }
}

impl Default for SnapshotPolicy {
    fn default() -> Self {
        SnapshotPolicy { log_bytes: 256 << 20, commands: 2_000_000, entries_kept: 1_000 }
    }
}

impl Default for QueueBounds {
    fn default() -> Self {
        QueueBounds {
            commands_max: 65_536,
            entries_under_way_max: 4,
            stream_commands_max: 16_384,
            connections_max: 512,
            connection_commands_max: 32_768,
            message_bytes_max: 4 << 20,
            deadline_ms: 5_000,
        }
    }
}

impl Default for HistoryPolicy {
    fn default() -> Self {
        HistoryPolicy { enabled: true, retention_ms: 30 * 24 * 3_600_000, queue_max: 65_536 }
    }
}

impl Default for WebhookPolicy {
    fn default() -> Self {
        WebhookPolicy { enabled: true, deadline_ms: 10_000 }
    }
}

impl NodeConfig {
    /// Everything that is wrong with the values; empty: nothing. Repairs nothing.
    pub fn validate(&self) -> Vec<Problem> {
        validate::validate(self, validate::Unjudged::default())
    }

    /// The effective configuration as one line for the log. It holds no secrets: no key of it is one.
    pub fn one_line(&self) -> String {
        match toml::Table::try_from(self) {
            Ok(table) => load::flatten(&table)
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => format!("(cannot be shown: {error})"),
        }
    }
}
