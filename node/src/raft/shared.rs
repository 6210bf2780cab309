//! What the parts of one node know together: who it is, its clock, its replica, its peers' reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use holdfast_proto::v1;
use openraft::Raft;
use openraft_rt::watch::WatchReceiver;
use openraft_rt::{AsyncRuntime, Watch, WatchSender};

use super::heard::Heard;
use super::identity::Identity;
use super::limits::RULES_VERSION;
use super::metrics::Metrics;
use super::odd::{Odd, find_odd};
use super::state_machine::StateMachine;
use super::transport::PeerError;
use super::types::{GROUP, Member, NodeId, RaftStoredMembership, TypeConfig};
use super::wire;
use crate::clock::StampClock;
use crate::replica::{DigestAt, Replica};

/// openraft's handle for our types.
pub(super) type RaftNode<R> = Raft<TypeConfig<R>, StateMachine<R>>;

type WatchSenderOf<R, T> = <<R as AsyncRuntime>::Watch as Watch>::Sender<T>;
pub(super) type WatchReceiverOf<R, T> = <<R as AsyncRuntime>::Watch as Watch>::Receiver<T>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Digests sent with a heartbeat: the newest few, so that members somewhat apart still share an index.
const DIGESTS_SENT: usize = 4;

/// How long a node waits for its peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) heartbeat: Duration,
    /// Silence after which a leader no longer counts as known.
    pub(super) leader_silence: Duration,
    /// A peer that owes an answer on an append stream and is silent for twice this long has lost it.
    pub(super) append_idle: Duration,
    /// Silence after which either end gives a snapshot transfer up.
    pub(super) snapshot_idle: Duration,
}

/// What a peer said of itself with its last heartbeat.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerReport {
    pub(super) rules_version: u32,
    digests: Vec<DigestAt>,
}

/// One node's common knowledge.
pub(super) struct Shared<R: AsyncRuntime> {
    pub(super) identity: Identity,
    pub(super) patience: Patience,
    pub(super) rules_version: u32,
    pub(super) clock: Arc<StampClock<R>>,
    pub(super) replica: Arc<Replica>,
    pub(super) heard: Heard<R>,
    /// Set once Raft is built.
    pub(super) raft: OnceLock<RaftNode<R>>,
    metrics: Arc<Metrics>,
    reports: Mutex<BTreeMap<NodeId, PeerReport>>,
    /// Members whose book is known to differ from a majority's.
    odd: Mutex<BTreeSet<NodeId>>,
    // The runtimes' senders are not `Sync`; they are used rarely and briefly.
    fatal: Mutex<WatchSenderOf<R, Option<String>>>,
    stopping: Mutex<WatchSenderOf<R, bool>>,
}

impl<R: AsyncRuntime> Shared<R> {
    pub(super) fn new(
        identity: Identity,
        patience: Patience,
        clock: Arc<StampClock<R>>,
        replica: Arc<Replica>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (fatal, _) = R::Watch::channel(None);
        let (stopping, _) = R::Watch::channel(false);
        Shared {
            identity,
            patience,
            rules_version: RULES_VERSION,
            clock,
            replica,
            heard: Heard::default(),
            raft: OnceLock::new(),
            metrics,
            reports: Mutex::default(),
            odd: Mutex::default(),
            fatal: Mutex::new(fatal),
            stopping: Mutex::new(stopping),
        }
    }

    /// Ends every task of [`Shared::until_stop`].
    pub(super) fn begin_stop(&self) {
        lock(&self.stopping).send_if_different(true);
    }

    pub(super) fn is_stopping(&self) -> bool {
        *lock(&self.stopping).borrow_watched()
    }

    /// Runs `task` until it ends or the node stops.
    pub(super) fn until_stop<T>(&self, task: T) -> impl Future<Output = ()> + Send + use<R, T>
    where
        T: Future<Output = ()> + Send,
    {
        let mut stopping = lock(&self.stopping).subscribe();
        async move {
            let stopped = async move {
                // The sender lives in `Shared`, which the tasks hold: only a stop ends this.
                let _ = stopping.wait_until(|stopping| *stopping).await;
            };
            R::select2(stopped, task).await;
        }
    }

    pub(super) fn me(&self) -> NodeId {
        self.identity.node_id
    }

    /// Says that this node must stop, and why. The first reason stays; tells whether this is it.
    pub(super) fn fail(&self, why: impl Into<String>) -> bool {
        let why = why.into();
        lock(&self.fatal).send_if_modified(|held| {
            let first = held.is_none();
            if first {
                tracing::error!(node = self.me(), "fatal: {why}");
                *held = Some(why);
            }
            first
        })
    }

    pub(super) fn watch_fatal(&self) -> WatchReceiverOf<R, Option<String>> {
        lock(&self.fatal).subscribe()
    }

    pub(super) fn fatal(&self) -> Option<String> {
        lock(&self.fatal).borrow_watched().clone()
    }

    /// The membership in effect here; `None` before Raft runs.
    pub(super) fn membership(&self) -> Option<Arc<RaftStoredMembership>> {
        self.raft.get().map(|raft| raft.metrics().borrow_watched().membership_config.clone())
    }

    pub(super) fn member(&self, id: NodeId) -> Option<Member> {
        self.membership().and_then(|m| m.get_node(&id).cloned())
    }

    pub(super) fn voters(&self) -> Vec<NodeId> {
        self.membership().map(|m| m.voter_ids().collect()).unwrap_or_default()
    }

    /// Checks that a message is for this node, from a member on the disk that the membership names.
    /// A sender that the membership does not know yet (this node may be behind) must be of the same cluster.
    pub(super) fn check_request(&self, envelope: &Option<v1::Envelope>) -> Result<Identity, PeerError> {
        let envelope = envelope.as_ref().ok_or_else(|| PeerError::Malformed("envelope is missing".into()))?;
        if envelope.group != GROUP {
            return Err(PeerError::WrongIdentity(format!("there is no group {} here", envelope.group)));
        }
        let from = wire::decode_identity(envelope.from.clone())?;
        let to = wire::decode_identity(envelope.to.clone())?;
        if from.cluster_id != self.identity.cluster_id || to != self.identity {
            return Err(PeerError::WrongIdentity(format!(
                "{from} called {to}, but here is {}",
                self.identity
            )));
        }
        match self.member(from.node_id) {
            Some(member) if member.disk_id != from.disk_id => Err(PeerError::WrongIdentity(format!(
                "{from} is not the member: node {} lives on disk {}",
                from.node_id, member.disk_id
            ))),
            _ => Ok(from),
        }
    }

    /// Checks that an answer comes from the member that was called.
    pub(super) fn check_answer(
        &self,
        envelope: &Option<v1::Envelope>,
        called: &Identity,
    ) -> Result<(), PeerError> {
        let envelope = envelope.as_ref().ok_or_else(|| PeerError::Malformed("envelope is missing".into()))?;
        let from = wire::decode_identity(envelope.from.clone())?;
        let to = wire::decode_identity(envelope.to.clone())?;
        if from == *called && to == self.identity {
            return Ok(());
        }
        Err(PeerError::WrongIdentity(format!(
            "{called} was called by {}, but {from} answered {to}",
            self.identity
        )))
    }

    /// The members' clocks as this node sees them now.
    pub(super) fn member_clocks(&self) -> Vec<v1::MemberClock> {
        let now_ms = self.clock.now_ms();
        let clock = |(node_id, sample): (NodeId, crate::clock::ClockSample)| v1::MemberClock {
            node_id,
            clock_ms: now_ms.saturating_add_signed(sample.offset_ms),
            age_ms: sample.age.as_millis() as u64,
        };
        self.clock.samples().into_iter().map(clock).collect()
    }

    pub(super) fn digests(&self) -> Vec<v1::DigestAt> {
        let kept = self.replica.digests();
        let newest = &kept[kept.len().saturating_sub(DIGESTS_SENT)..];
        let wire = |d: &DigestAt| v1::DigestAt {
            index: d.index,
            revision: d.revision,
            digest: Bytes::copy_from_slice(&d.digest.to_be_bytes()),
        };
        newest.iter().map(wire).collect()
    }

    pub(super) fn note_peer(&self, id: NodeId, rules_version: u32, digests: &[v1::DigestAt]) {
        let digests = digests.iter().filter_map(decode_digest).collect();
        self.reports().insert(id, PeerReport { rules_version, digests });
        self.note_odd(&self.odd_ones());
    }

    pub(super) fn reports(&self) -> MutexGuard<'_, BTreeMap<NodeId, PeerReport>> {
        lock(&self.reports)
    }

    /// Voters whose book differs from a majority's.
    pub(super) fn odd_ones(&self) -> Vec<Odd> {
        let mine = self.replica.digests();
        let mut digests: BTreeMap<NodeId, Vec<DigestAt>> = {
            let reports = self.reports();
            if mine.is_empty() || reports.is_empty() {
                return Vec::new();
            }
            reports.iter().map(|(id, report)| (*id, report.digests.clone())).collect()
        };
        digests.insert(self.me(), mine);
        find_odd(&self.voters(), &digests)
    }

    /// Counts and logs those that were not odd before, and stops if this node is one.
    fn note_odd(&self, odd: &[Odd]) {
        let mut known = lock(&self.odd);
        for one in odd.iter().filter(|one| !known.contains(&one.node_id)) {
            self.metrics.digest_mismatches.fetch_add(1, Ordering::Relaxed);
            tracing::error!(node = self.me(), odd = one.node_id, index = one.index, "{one}");
        }
        *known = odd.iter().map(|one| one.node_id).collect();
        drop(known);
        if let Some(me) = odd.iter().find(|one| one.node_id == self.me()) {
            self.fail(me.to_string());
        }
    }

    /// Stops because another node has found that this one's book differs from a majority's.
    pub(super) fn fail_as_odd(&self, says: NodeId, digests: &[v1::DigestAt]) {
        let mine = self.replica.digests();
        let differs = digests.iter().filter_map(decode_digest).find_map(|theirs| {
            let mine = mine.iter().find(|mine| mine.index == theirs.index && mine.digest != theirs.digest)?;
            Some(format!(
                ": after log index {} its digest is {:032x}, node {says}'s {:032x}",
                mine.index, mine.digest, theirs.digest
            ))
        });
        // It may lie further back than the few digests that a heartbeat has.
        let differs = differs.unwrap_or_default();
        let why = format!("node {says} says that this node's book differs from a majority's{differs}");
        if self.fail(why) {
            self.metrics.digest_mismatches.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn decode_digest(wire: &v1::DigestAt) -> Option<DigestAt> {
    let digest = u128::from_be_bytes(wire.digest.as_ref().try_into().ok()?);
    Some(DigestAt { index: wire.index, revision: wire.revision, digest })
}
