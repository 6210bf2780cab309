//! Raft: the only place that knows openraft, and what turns it into a node.
//!
//! # Architecture invariants
//!
//! - openraft's types stay in here: what the rest of the node needs of them has types of our own
//!   (`writes`, [`ReadError`], [`NodeStatus`]). `node/tests/architecture.rs` keeps it so.
//! - Everything runs on the runtime type parameter: the same code on tokio and in the simulator. Only
//!   [`grpc`] and [`host`] know tokio.
//! - Nothing is decided by metrics or hints: a proposal is accepted by Raft, a read by a quorum.
//! - Both ends of every peer call check cluster, node and disk.

pub mod cluster;
mod found;
pub mod grpc;
mod handle;
mod heard;
pub mod host;
pub mod identity;
pub(crate) mod leadership;
pub mod limits;
mod log_store;
pub mod memory;
pub mod metrics;
mod network;
mod odd;
mod peers;
mod reads;
pub mod settings;
mod shared;
mod snapshot;
mod start;
mod state_machine;
pub mod status;
mod sync;
pub mod transport;
mod types;
mod watch;
mod wire;
pub(crate) mod writes;

#[cfg(test)]
mod suite;

pub use found::FoundingMember;
pub use handle::{MembershipError, NodeHandle};
pub use heard::NoLeader;
pub use identity::{DiskId, Identity, IdentityError};
pub use reads::ReadError;
pub use settings::RaftSettings;
pub use snapshot::Offload;
pub use start::{NodeParts, StartError, StartMode, start};
pub use status::{MemberStatus, NodeStatus, Role};
pub use sync::SyncDrive;
pub use types::{Member, NodeId};
pub use watch::LeaderView;
