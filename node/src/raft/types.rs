//! The types that openraft is parameterised with.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use openraft::impls::{InlineBatch, LogId, OneshotResponder, Vote, leader_id_std};
use openraft::{EntryPayload, RaftTypeConfig};
use openraft_rt::AsyncRuntime;

use super::identity::DiskId;
use crate::replica::AppliedEntry;

/// A member's number in the cluster. Never used again once its disk is gone.
pub type NodeId = u64;

/// The only Raft group there is. It stands in peer messages and log records so that more can come.
pub const GROUP: u64 = 0;

/// openraft's parameters over the runtime `R` (tokio, or the simulator's).
pub struct TypeConfig<R>(PhantomData<fn() -> R>);

impl<R: AsyncRuntime> RaftTypeConfig for TypeConfig<R> {
    type D = Payload;
    type R = Applied;
    type NodeId = NodeId;
    type Node = Member;
    type Term = u64;
    // One leader per term: with the default several nodes could lead in one term,
    // and "fenced by term" would be false.
    type LeaderId = leader_id_std::LeaderId<u64, NodeId>;
    type Vote = Vote<Self::LeaderId>;
    type Payload = EntryPayload<Payload, NodeId, Member>;
    type Entry = openraft::impls::Entry<CommittedLeader, Self::Payload>;
    type AsyncRuntime = R;
    type Responder<T>
        = OneshotResponder<Self, T>
    where
        T: Send + 'static;
    type Batch<T>
        = InlineBatch<T>
    where
        T: Send + 'static;
    type ErrorSource = openraft::AnyError;
}

/// The leader of a term, as it stands in log ids.
pub type CommittedLeader = <leader_id_std::LeaderId<u64, NodeId> as openraft::vote::RaftLeaderId>::Committed;
/// Where an entry stands in the log.
pub type RaftLogId = LogId<CommittedLeader>;
/// A vote.
pub type RaftVote = Vote<leader_id_std::LeaderId<u64, NodeId>>;
/// A log entry.
pub type RaftEntry = openraft::impls::Entry<CommittedLeader, EntryPayload<Payload, NodeId, Member>>;
/// Who belongs to the cluster.
pub type RaftMembership = openraft::Membership<NodeId, Member>;
/// A membership with the log id it comes from.
pub type RaftStoredMembership = openraft::StoredMembership<CommittedLeader, NodeId, Member>;
/// What a snapshot says of itself.
pub type RaftSnapshotMeta = openraft::SnapshotMeta<CommittedLeader, NodeId, Member>;

/// The log id of `index` in `term`.
pub fn log_id(term: u64, index: u64) -> RaftLogId {
    LogId::new_term_index(term, index)
}

/// What stands in the log of a member: where it is reached, and on which disk it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// `host:port` of its peer port.
    pub peer_address: String,
    /// `host:port` of its client port; empty: unknown.
    pub client_address: String,
    /// `host:port` of its HTTP port; empty: unknown.
    pub http_address: String,
    /// The disk its state is on. Peer calls from or to another disk under the same node id are refused.
    pub disk_id: DiskId,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (disk {})", self.peer_address, self.disk_id)
    }
}

/// An encoded `LogEntry`: openraft, the log and the network never look inside, they share its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(pub Bytes);

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What applying an entry gave: the answers of its commands, or nothing for an entry of Raft's own.
#[derive(Clone, Debug, Default)]
pub struct Applied(pub Option<AppliedEntry>);

// By hand, since deriving would ask the same of `R`.
impl<R> fmt::Debug for TypeConfig<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypeConfig")
    }
}
impl<R> Clone for TypeConfig<R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> Copy for TypeConfig<R> {}
impl<R> Default for TypeConfig<R> {
    fn default() -> Self {
        TypeConfig(PhantomData)
    }
}
impl<R> PartialEq for TypeConfig<R> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<R> Eq for TypeConfig<R> {}
impl<R> PartialOrd for TypeConfig<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<R> Ord for TypeConfig<R> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
