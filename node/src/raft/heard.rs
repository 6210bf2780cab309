//! Whether the leader that Raft names has been heard of lately. For display and hints, never for decisions.
//!
//! Raft names the last leader that it knew for as long as nobody else is elected, so without a quorum for ever.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use openraft_rt::watch::WatchReceiver;
use openraft_rt::{AsyncRuntime, Instant};

use super::shared::{RaftNode, Shared};
use super::types::NodeId;

/// Why no leader is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLeader {
    /// Raft names none.
    #[error("no leader is known")]
    Unknown,
    /// Raft names a node that says nothing.
    #[error("node {node_id} led and has not been heard of for {}", within(*silent_ms))]
    Silent {
        /// The node.
        node_id: NodeId,
        /// For how long, ms; `None`: since this node started.
        silent_ms: Option<u64>,
    },
    /// Raft names this node, and no quorum answers it.
    #[error("this node leads, and no quorum has answered it for {}", within(*silent_ms))]
    NoQuorum {
        /// For how long, ms; `None`: since it leads.
        silent_ms: Option<u64>,
    },
}

fn within(silent_ms: Option<u64>) -> String {
    silent_ms.map_or_else(|| "as long as it could have been".to_owned(), |ms| format!("{ms} ms"))
}

/// When this node last heard of a leader.
pub(super) struct Heard<R: AsyncRuntime> {
    last: Mutex<Option<(NodeId, R::Instant)>>,
}

impl<R: AsyncRuntime> Default for Heard<R> {
    fn default() -> Self {
        Heard { last: Mutex::new(None) }
    }
}

impl<R: AsyncRuntime> Heard<R> {
    /// Raft has taken something from a node for its leader's.
    pub(super) fn note(&self, leader: NodeId) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((leader, R::Instant::now()));
    }

    fn age(&self, leader: NodeId) -> Option<Duration> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, at) = last.filter(|(from, _)| *from == leader)?;
        Some(R::Instant::now().saturating_duration_since(at))
    }
}

/// Who leads, if that has shown within [`super::shared::Patience::leader_silence`]: a follower has heard of it, a
/// quorum has answered it.
pub(super) fn known_leader<R: AsyncRuntime>(
    shared: &Shared<R>,
    raft: &RaftNode<R>,
) -> Result<NodeId, NoLeader> {
    // Copied out, so that no look at the metrics stands in the way of another.
    let (leader, quorum_acked, is_alone) = {
        let metrics = raft.metrics();
        let seen = metrics.borrow_watched();
        let is_alone = seen.membership_config.voter_ids().all(|id| id == shared.me());
        (seen.current_leader, seen.last_quorum_acked, is_alone)
    };
    let leader = leader.ok_or(NoLeader::Unknown)?;
    let is_me = leader == shared.me();
    // Whoever is a quorum by itself is never answered.
    if is_me && is_alone {
        return Ok(leader);
    }
    let age = if is_me { quorum_acked.map(|at| (*at).elapsed()) } else { shared.heard.age(leader) };
    if age.is_some_and(|age| age <= shared.patience.leader_silence) {
        return Ok(leader);
    }
    let silent_ms = age.map(|age| age.as_millis() as u64);
    Err(if is_me {
        NoLeader::NoQuorum { silent_ms }
    } else {
        NoLeader::Silent { node_id: leader, silent_ms }
    })
}
