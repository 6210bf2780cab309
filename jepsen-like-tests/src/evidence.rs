//! Everything a run is judged by.

use crate::applied::NodeApplied;
use crate::history::Operation;

/// A node that acted as leader in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaderSeen {
    /// The Raft term.
    pub term: u64,
    /// The node.
    pub node: u64,
}

/// One node's audit at the end, with the cluster healed and quiet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAudit {
    /// The node.
    pub node: u64,
    /// The revision it was made at.
    pub revision: u64,
    /// The book's digest there, in hex.
    pub digest: String,
    /// What the node found wrong with its own book.
    pub violations: Vec<String>,
}

/// What a quota reads at the end, with the cluster healed and quiet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalUsage {
    /// The tenant.
    pub tenant: String,
    /// The limit: one of the tenant level that every reservation of the tenant falls under.
    pub limit: String,
    /// The unit's word.
    pub unit: String,
    /// Spent in its only epoch.
    pub used: u64,
    /// Held by open reservations.
    pub held: u64,
}

/// The evidence of one run.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What the clients saw.
    pub operations: Vec<Operation>,
    /// What the nodes applied; empty when nobody tapped them.
    pub applied: Vec<NodeApplied>,
    /// Who led.
    pub leaders: Vec<LeaderSeen>,
    /// The nodes' own audits.
    pub audits: Vec<NodeAudit>,
    /// The last readings of quotas.
    pub usage: Vec<FinalUsage>,
    /// What went wrong that is neither an answer nor a book: a panic in a log, a node that would
    /// not come back, a cluster that did not converge.
    pub mishaps: Vec<String>,
}
