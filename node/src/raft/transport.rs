//! The seam to the network: what members say to each other, whatever carries it.
//!
//! [`Peer`] is one member as another sees it, and also what a member offers: a transport hands out a
//! `Peer` that carries each call to the `Peer` that the other member serves. There are two: gRPC
//! ([`super::grpc`]) and memory on virtual time ([`super::memory`]).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use holdfast_proto::v1;
use openraft_rt::{BoxFuture, BoxStream};

use super::types::NodeId;

/// What a call to a peer is for. Each kind has its own connection, so that a large append or a snapshot
/// never delays a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Heartbeats, votes, transfer, identify: small and urgent.
    Control,
    /// Log entries.
    Replication,
    /// Snapshots.
    Snapshot,
}

/// Why a call to a peer gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The peer was not reached, or the connection broke.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// The peer is another than the one that was meant, or does not take this node for a member.
    #[error("wrong identity: {0}")]
    WrongIdentity(String),
    /// The message cannot be read.
    #[error("malformed message: {0}")]
    Malformed(String),
    /// The peer has stopped or is about to.
    #[error("the peer has stopped: {0}")]
    Stopped(String),
}

/// A stream of append requests in order.
pub type AppendRequests = BoxStream<'static, v1::AppendEntriesRequest>;
/// The answers, in the same order; ends after an error.
pub type AppendResponses = BoxStream<'static, Result<v1::AppendEntriesResponse, PeerError>>;
/// The parts of a snapshot: its head, then its blocks in order. An error ends it.
pub type SnapshotParts = BoxStream<'static, Result<v1::InstallSnapshotRequest, PeerError>>;
/// The answer to a call.
pub type Reply<T> = BoxFuture<'static, Result<T, PeerError>>;

/// One member, as its peers call it.
pub trait Peer: Send + Sync + 'static {
    /// An append without entries, with both clocks.
    fn heartbeat(&self, request: v1::HeartbeatRequest, within: Duration) -> Reply<v1::HeartbeatResponse>;
    /// Entries in order on one stream.
    fn stream_append(&self, requests: AppendRequests) -> Reply<AppendResponses>;
    /// Asks for a vote; with `pre`, only whether it would be given.
    fn vote(&self, request: v1::VoteRequest, pre: bool, within: Duration) -> Reply<v1::VoteResponse>;
    /// Asks to take leadership over.
    fn transfer_leadership(
        &self,
        request: v1::TransferLeadershipRequest,
        within: Duration,
    ) -> Reply<v1::TransferLeadershipResponse>;
    /// Sends a snapshot. No deadline: the sender watches its progress.
    fn install_snapshot(&self, parts: SnapshotParts) -> Reply<v1::InstallSnapshotResponse>;
    /// Asks who it is and which members it knows.
    fn identify(&self, request: v1::IdentifyRequest, within: Duration) -> Reply<v1::IdentifyResponse>;
}

/// Reaches peers by address.
pub trait Transport: Send + Sync + 'static {
    /// The peer at `address`. Connects when it is first called, and again after a failure.
    fn peer(&self, node: NodeId, address: &str, lane: Lane) -> Arc<dyn Peer>;
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}
