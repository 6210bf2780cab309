//! The handle to a running node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_ledger::{Book, Command};
use openraft::ChangeMembers;
use openraft_rt::{AsyncRuntime, Instant, Mutex as _};

use super::found::identify;
use super::heard::NoLeader;
use super::identity::Identity;
use super::leadership::Leadership;
use super::limits::{HAND_OVER_POLL, HAND_OVER_WAIT};
use super::metrics::Metrics;
use super::peers::PeerServer;
use super::reads::{ReadError, Reads};
use super::shared::{RaftNode, Shared, WatchReceiverOf};
use super::status::{NodeStatus, status};
use super::sync::Syncing;
use super::transport::{Peer, Transport};
use super::types::{Member, NodeId};
use super::watch::LeaderView;
use super::wire;
use crate::propose::{Answered, Decision, LeaderAt, ProposeError, Proposer, Refused};
use crate::replica::Replica;
use crate::storage::log::Log;

/// What a handle shares with its clones.
pub(super) struct Inner<R: AsyncRuntime> {
    pub(super) shared: Arc<Shared<R>>,
    pub(super) raft: RaftNode<R>,
    pub(super) leadership: Leadership<R>,
    pub(super) proposer: Proposer<R>,
    pub(super) reads: Reads<R>,
    pub(super) peers: PeerServer<R>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) log: Log,
    pub(super) leader_rx: WatchReceiverOf<R, Option<LeaderView>>,
    pub(super) tasks: R::Mutex<Option<Vec<R::JoinHandle<()>>>>,
    pub(super) syncing: R::Mutex<Option<Syncing<R>>>,
    /// Set by the first hand-over before a stop: there is one try.
    pub(super) handed_over: AtomicBool,
}

/// A running node. Clones share it; it may be used from any thread.
pub struct NodeHandle<R: AsyncRuntime> {
    inner: Arc<Inner<R>>,
}

impl<R: AsyncRuntime> Clone for NodeHandle<R> {
    fn clone(&self) -> Self {
        NodeHandle { inner: self.inner.clone() }
    }
}

/// Why a change of the membership did not happen, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// This node does not lead.
    #[error("this node does not lead")]
    NotLeader(Option<LeaderAt>),
    /// The new member cannot be asked who it is.
    #[error("the new member does not answer: {0}")]
    Unreachable(String),
    /// It makes no sense.
    #[error("{0}")]
    Refused(String),
}

impl<R: AsyncRuntime> NodeHandle<R> {
    pub(super) fn new(inner: Inner<R>) -> Self {
        NodeHandle { inner: Arc::new(inner) }
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.inner.shared.identity
    }

    /// Proposes `commands` together and waits for their answers, until `deadline` at the latest.
    ///
    /// # Errors
    /// [`ProposeError::Unknown`] if they were handed to Raft and no answer came; with every other error
    /// nothing has happened and nothing will.
    pub async fn propose(
        &self,
        commands: &[Command],
        deadline: R::Instant,
    ) -> Result<Answered, ProposeError> {
        if self.inner.shared.fatal().is_some() {
            return Err(ProposeError::Stopping);
        }
        self.inner.proposer.propose(commands, deadline).await
    }

    /// As [`NodeHandle::propose`], but a reserve's first attempt that the book refuses as it is makes no log entry.
    pub async fn decide(&self, commands: &[Command], deadline: R::Instant) -> Decision {
        let refused = self.refuse(commands, deadline).await;
        if refused.is_empty() {
            return Decision { refused, proposed: Some(self.propose(commands, deadline).await) };
        }
        self.inner.metrics.refused_unlogged.fetch_add(refused.len() as u64, Ordering::Relaxed);
        let is_left = |place: &usize| refused.binary_search_by_key(place, |(known, _)| *known).is_err();
        let left: Vec<_> = (0..commands.len()).filter(is_left).map(|place| commands[place].clone()).collect();
        let proposed = match left.is_empty() {
            true => None,
            false => Some(self.propose(&left, deadline).await),
        };
        Decision { refused, proposed }
    }

    /// Places of the commands that [`NodeHandle::decide`] would look at before it proposes them; for callers
    /// who want to let the others go ahead.
    pub fn suspects(&self, commands: &[Command]) -> Vec<usize> {
        self.inner.proposer.refuser().suspects(commands)
    }

    /// What the book refuses of the commands without a log entry.
    async fn refuse(&self, commands: &[Command], deadline: R::Instant) -> Vec<(usize, Refused)> {
        let refuser = self.inner.proposer.refuser();
        let suspects = refuser.suspects(commands);
        let look = |places: &[usize]| match self.inner.leadership.clock_fault() {
            // Whatever depends on the time is not to be said by a clock that nobody trusts.
            Some(_) => Vec::new(),
            None => {
                let at_ms = self.now_ms();
                self.replica().read(|book| refuser.refuse(book, commands, places, at_ms))
            }
        };
        // The first look is at what is here now, so that nobody waits in vain; the second one decides.
        let likely: Vec<usize> = match suspects.is_empty() {
            true => return Vec::new(),
            false => look(&suspects).into_iter().map(|(place, _)| place).collect(),
        };
        if likely.is_empty() || self.read_barrier(deadline).await.is_err() {
            return Vec::new();
        }
        look(&likely)
    }

    /// Returns once everything that was committed before the call is applied here and this node has shown that it leads.
    pub async fn read_barrier(&self, deadline: R::Instant) -> Result<(), ReadError> {
        self.inner.reads.barrier(deadline).await
    }

    /// A linearizable look at the book.
    pub async fn read<T>(&self, deadline: R::Instant, look: impl FnOnce(&Book) -> T) -> Result<T, ReadError> {
        self.read_barrier(deadline).await?;
        Ok(self.inner.shared.replica.read(look))
    }

    /// The replica: looks at it are as old as this node is behind.
    pub fn replica(&self) -> &Arc<Replica> {
        &self.inner.shared.replica
    }

    /// The wall clock, ms, for projections of what is read. Not a stamp.
    pub fn now_ms(&self) -> u64 {
        self.inner.shared.clock.now_ms()
    }

    /// Who leads, as far as is known here and has shown lately.
    pub fn leader(&self) -> Option<LeaderAt> {
        self.inner.leadership.leader()
    }

    /// As [`NodeHandle::leader`].
    ///
    /// # Errors
    /// Why none is known, for whoever asks how this node is.
    pub fn known_leader(&self) -> Result<LeaderAt, NoLeader> {
        self.inner.leadership.known_leader()
    }

    /// Whether this node seems to lead. For announcements and hints, never for decisions.
    pub fn seems_to_lead(&self) -> bool {
        self.inner.leadership.may_lead()
    }

    /// Changes of leadership as they are seen here; `None` before the first look.
    pub fn watch_leader(&self) -> WatchReceiverOf<R, Option<LeaderView>> {
        self.inner.leader_rx.clone()
    }

    /// Becomes `Some` once the node has failed for the reason given. The process exits then.
    pub fn watch_fatal(&self) -> WatchReceiverOf<R, Option<String>> {
        self.inner.shared.watch_fatal()
    }

    /// The counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.inner.metrics
    }

    /// How the node is.
    pub fn status(&self) -> NodeStatus {
        let Inner { shared, raft, proposer, log, metrics, .. } = self.inner.as_ref();
        status(shared, raft, log, metrics, proposer.queued())
    }

    /// Serves this node's peers. The caller connects it to a transport.
    pub fn peer_server(&self) -> Arc<dyn Peer> {
        Arc::new(self.inner.peers.clone())
    }

    /// Asks Raft to hand leadership to `to`, or to the member that suits best. Returns whom it asked.
    pub async fn transfer_leader(&self, to: Option<NodeId>) -> Option<NodeId> {
        if !self.seems_to_lead() {
            return None;
        }
        let to = to.or_else(|| self.inner.leadership.successor())?;
        self.inner.leadership.transfer_to(to).await;
        Some(to)
    }

    /// Hands leadership over before a stop, if this node leads: to one member after the other that has been
    /// heard of lately, until another one leads. Gives up when nobody is left to take it, so that a cluster
    /// that stops as a whole does not wait for itself, and after [`HAND_OVER_WAIT`] in any case. Does nothing
    /// when it is called again.
    pub async fn hand_over(&self) {
        if self.inner.handed_over.swap(true, Ordering::AcqRel) || !self.seems_to_lead() {
            return;
        }
        let give_up = R::Instant::now() + HAND_OVER_WAIT;
        while !self.another_leads() {
            let leadership = &self.inner.leadership;
            let Some(to) = leadership.successor().filter(|to| leadership.has_heard_of(*to)) else {
                tracing::info!("no other member can take leadership");
                return;
            };
            tracing::info!(to, "handing leadership over");
            leadership.transfer_to(to).await;
            while !self.another_leads() && leadership.has_heard_of(to) {
                if R::Instant::now() >= give_up {
                    tracing::warn!(to, "leadership was not taken in time; the others will elect");
                    return;
                }
                R::sleep(HAND_OVER_POLL).await;
            }
        }
    }

    fn another_leads(&self) -> bool {
        self.leader().is_some_and(|leader| leader.node_id != self.identity().node_id)
    }

    /// Begins a snapshot of what is applied now.
    pub async fn begin_snapshot(&self) {
        if let Err(fatal) = self.inner.raft.trigger().snapshot().await {
            tracing::warn!("no snapshot was begun: {fatal}");
        }
    }

    /// Adds a member that does not vote yet. It is asked for its disk first.
    pub async fn add_member(
        &self,
        transport: &dyn Transport,
        node_id: NodeId,
        peer_address: &str,
    ) -> Result<(), MembershipError> {
        let shared = &self.inner.shared;
        let answer = identify(shared, transport, node_id, peer_address).await;
        let answer = answer.map_err(|e| MembershipError::Unreachable(e.to_string()))?;
        let refused = |e: &dyn std::fmt::Display| MembershipError::Refused(e.to_string());
        let identity = wire::decode_identity(answer.identity).map_err(|e| refused(&e))?;
        if identity.node_id != node_id {
            return Err(MembershipError::Refused(format!(
                "{peer_address} is {identity}, not node {node_id}"
            )));
        }
        if let Some(known) = shared.member(node_id)
            && known.disk_id != identity.disk_id
        {
            return Err(MembershipError::Refused(format!(
                "node {node_id} is a member on disk {}; node ids are never used again",
                known.disk_id
            )));
        }
        let member = Member {
            peer_address: peer_address.to_owned(),
            client_address: answer.client_address,
            http_address: answer.http_address,
            disk_id: identity.disk_id,
        };
        self.inner
            .raft
            .add_learner(node_id, member, false)
            .await
            .map(drop)
            .map_err(|e| self.membership_error(&e))
    }

    /// Lets a member vote that has caught up.
    pub async fn promote_member(&self, node_id: NodeId) -> Result<(), MembershipError> {
        let change = ChangeMembers::AddVoterIds([node_id].into());
        self.inner.raft.change_membership(change, true).await.map(drop).map_err(|e| self.membership_error(&e))
    }

    /// Takes a member out, a voter or not.
    pub async fn remove_member(&self, node_id: NodeId) -> Result<(), MembershipError> {
        let voters = self.inner.shared.voters();
        let change = if voters.contains(&node_id) {
            ChangeMembers::RemoveVoters([node_id].into())
        } else {
            ChangeMembers::RemoveNodes([node_id].into())
        };
        self.inner
            .raft
            .change_membership(change, false)
            .await
            .map(drop)
            .map_err(|e| self.membership_error(&e))
    }

    fn membership_error<E>(
        &self,
        error: &openraft::errors::RaftError<super::types::TypeConfig<R>, E>,
    ) -> MembershipError
    where
        E: std::error::Error
            + openraft::TryAsRef<openraft::errors::ForwardToLeader<super::types::TypeConfig<R>>>,
    {
        match error.forward_to_leader() {
            Some(_) => MembershipError::NotLeader(self.leader()),
            None => MembershipError::Refused(error.to_string()),
        }
    }

    /// Stops the node: hands leadership over if it leads, then ends Raft and makes the log durable.
    /// Idempotent.
    pub async fn shutdown(&self) {
        let tasks = self.inner.tasks.lock().await.take();
        let Some(tasks) = tasks else { return };
        self.hand_over().await;
        self.stop(tasks).await;
    }

    /// Stops the node as a crash would: no hand-over. For the simulator, after its disk and network are gone.
    pub async fn abandon(&self) {
        let tasks = self.inner.tasks.lock().await.take();
        if let Some(tasks) = tasks {
            self.stop(tasks).await;
        }
    }

    async fn stop(&self, tasks: Vec<R::JoinHandle<()>>) {
        self.inner.shared.begin_stop();
        if let Err(error) = self.inner.raft.shutdown().await {
            tracing::warn!("Raft did not stop in order: {error}");
        }
        drop(tasks);
        let syncing = self.inner.syncing.lock().await.take();
        if let Some(syncing) = syncing
            && let Err(error) = syncing.stop(&self.inner.log).await
        {
            tracing::warn!("the log did not stop in order: {error}");
        }
    }
}
