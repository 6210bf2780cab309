//! Who leads, as a hint; stamps while this node does; and handing leadership over.
//!
//! Nothing here authorises anything: a hint refuses early or picks a target, and Raft itself decides.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openraft::ServerState;
use openraft_rt::watch::WatchReceiver;
use openraft_rt::{AsyncRuntime, Instant};

use super::heard::{NoLeader, known_leader};
use super::limits::{CLOCK_SAMPLE_HEARTBEATS, HAND_OVER_INTERVAL};
use super::shared::{RaftNode, Shared};
use super::types::NodeId;
use crate::clock::ClockFault;
use crate::propose::LeaderAt;
use crate::replica::Replica;

/// This node's view of leadership.
pub(crate) struct Leadership<R: AsyncRuntime> {
    shared: Arc<Shared<R>>,
    raft: RaftNode<R>,
    handed_over_at: Arc<Mutex<Option<R::Instant>>>,
}

impl<R: AsyncRuntime> Clone for Leadership<R> {
    fn clone(&self) -> Self {
        Leadership {
            shared: self.shared.clone(),
            raft: self.raft.clone(),
            handed_over_at: self.handed_over_at.clone(),
        }
    }
}

impl<R: AsyncRuntime> Leadership<R> {
    pub(super) fn new(shared: Arc<Shared<R>>, raft: RaftNode<R>) -> Self {
        Leadership { shared, raft, handed_over_at: Arc::default() }
    }

    pub(super) fn raft(&self) -> &RaftNode<R> {
        &self.raft
    }

    pub(crate) fn replica(&self) -> &Replica {
        &self.shared.replica
    }

    /// Whether it is worth trying to propose here. A wrong yes is found out by Raft, a wrong no by the caller's retry.
    pub(crate) fn may_lead(&self) -> bool {
        self.raft.server_metrics().borrow_watched().state == ServerState::Leader
    }

    /// Who leads, as far as is known here and has shown lately.
    pub(crate) fn leader(&self) -> Option<LeaderAt> {
        self.known_leader().ok()
    }

    /// As [`Leadership::leader`], with the reason if none is known.
    pub(crate) fn known_leader(&self) -> Result<LeaderAt, NoLeader> {
        let node_id = known_leader(&self.shared, &self.raft)?;
        let client_address = self.shared.member(node_id).ok_or(NoLeader::Unknown)?.client_address;
        Ok(LeaderAt { node_id, client_address })
    }

    /// A stamp for an entry.
    pub(crate) fn stamp(&self) -> Result<u64, ClockFault> {
        self.shared.clock.stamp(self.shared.me(), &self.shared.voters())
    }

    /// Whether this node's clock is fit for stamping, without stamping.
    pub(crate) fn clock_fault(&self) -> Option<ClockFault> {
        let off = self.shared.clock.off_median_ms(self.shared.me(), &self.shared.voters());
        match off {
            Ok(by_ms) if self.shared.clock.is_beyond(by_ms) => Some(ClockFault::OffMedian { by_ms }),
            Ok(_) => None,
            Err(fault) => Some(fault),
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.shared.clock.now_ms()
    }

    /// The rules version that every member supports and the book does not have yet.
    pub(crate) fn rules_to_raise(&self) -> Option<u32> {
        let reports = self.shared.reports();
        let others = self.shared.membership()?;
        let mut supported = self.shared.rules_version;
        for (id, _) in others.nodes() {
            if *id != self.shared.me() {
                supported = supported.min(reports.get(id)?.rules_version);
            }
        }
        (supported > self.shared.replica.rules_version()).then_some(supported)
    }

    /// Says that the clock is not fit and hands leadership over, at most once in a while.
    pub(crate) async fn hand_over_because(&self, fault: ClockFault) {
        {
            let mut at = self.handed_over_at.lock().unwrap_or_else(PoisonError::into_inner);
            let now = R::Instant::now();
            if at.is_some_and(|at| now.saturating_duration_since(at) < HAND_OVER_INTERVAL) {
                return;
            }
            *at = Some(now);
        }
        tracing::warn!(node = self.shared.me(), "nothing is stamped: {fault}; handing leadership over");
        if let Some(to) = self.successor() {
            self.transfer_to(to).await;
        }
    }

    /// Asks Raft to make `to` the leader.
    pub(crate) async fn transfer_to(&self, to: NodeId) {
        if let Err(fatal) = self.raft.trigger().transfer_leader(to).await {
            tracing::warn!("leadership was not handed over: {fatal}");
        }
    }

    /// Whether a member has answered lately.
    pub(crate) fn has_heard_of(&self, id: NodeId) -> bool {
        self.shared.clock.samples().get(&id).is_some_and(|sample| sample.age <= self.heard_max())
    }

    fn heard_max(&self) -> Duration {
        self.shared.patience.heartbeat * CLOCK_SAMPLE_HEARTBEATS
    }

    /// The voter to hand leadership to: reachable, with the most of the log, and of those the one whose
    /// clock is nearest the members' median.
    pub(crate) fn successor(&self) -> Option<NodeId> {
        // Copied out: whoever looks at the metrics a second time while Raft's core waits to write them
        // stands still, and the core with it.
        let matched = self.raft.metrics().borrow_watched().replication.clone()?;
        let samples = self.shared.clock.samples();
        let voters = self.shared.voters();
        let others = || voters.iter().copied().filter(|id| *id != self.shared.me());
        let mut offsets: Vec<i64> = others().filter_map(|id| Some(samples.get(&id)?.offset_ms)).collect();
        offsets.sort_unstable();
        let median = offsets.get(offsets.len() / 2).copied().unwrap_or(0);
        let heard_max = self.heard_max();
        others().max_by_key(|id| {
            let index = matched.get(id).and_then(|at| at.as_ref().map(|at| at.index));
            let off = samples.get(id).map_or(i64::MAX, |s| (s.offset_ms - median).saturating_abs());
            // While a transfer to a dead member is tried nothing is accepted, so it must have answered lately.
            let is_heard = samples.get(id).is_some_and(|s| s.age <= heard_max);
            // A clock within the bound matters more than a few entries: the target catches up first anyway.
            (is_heard, !self.shared.clock.is_beyond(off), index, Reverse(off), Reverse(*id))
        })
    }
}
