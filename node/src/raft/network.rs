//! openraft's network over [`Transport`]: one link per peer and lane.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use holdfast_proto::v1;
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft_rt::{AsyncRuntime, BoxFuture, BoxStream, Instant, Select2};

use super::identity::Identity;
use super::limits::{PEER_CALL_TIMEOUT, SNAPSHOT_INSTALL_MAX};
use super::shared::Shared;
use super::snapshot::SnapshotFile;
use super::transport::{Lane, Peer, PeerError, Transport};
use super::types::{Member, NodeId, RaftSnapshotMeta, RaftVote, TypeConfig};
use super::wire;

type Snapshot = openraft::Snapshot<super::types::CommittedLeader, NodeId, Member, SnapshotFile>;

/// Makes links for openraft.
pub(super) struct Network<R: AsyncRuntime> {
    pub(super) shared: Arc<Shared<R>>,
    pub(super) transport: Arc<dyn Transport>,
}

impl<R: AsyncRuntime> Network<R> {
    fn link(&self, target: NodeId, member: &Member, lane: Lane) -> Link<R> {
        let to = Identity {
            cluster_id: self.shared.identity.cluster_id.clone(),
            node_id: target,
            disk_id: member.disk_id,
        };
        let peer = self.transport.peer(target, &member.peer_address, lane);
        Link { shared: self.shared.clone(), to, peer, is_heartbeat: false }
    }
}

impl<R: AsyncRuntime> RaftNetworkFactory<TypeConfig<R>> for Network<R> {
    type Network = Link<R>;

    async fn new_client(&mut self, target: NodeId, node: &Member) -> Link<R> {
        self.link(target, node, Lane::Replication)
    }

    async fn new_heartbeat_client(&mut self, target: NodeId, node: &Member) -> Link<R> {
        Link { is_heartbeat: true, ..self.link(target, node, Lane::Control) }
    }

    async fn new_snapshot_client(&mut self, target: NodeId, node: &Member) -> Link<R> {
        self.link(target, node, Lane::Snapshot)
    }
}

/// The way to one peer on one lane.
pub(super) struct Link<R: AsyncRuntime> {
    shared: Arc<Shared<R>>,
    to: Identity,
    peer: Arc<dyn Peer>,
    is_heartbeat: bool,
}

impl<R: AsyncRuntime> Link<R> {
    fn envelope(&self) -> v1::Envelope {
        wire::envelope(&self.shared.identity, &self.to)
    }

    fn rpc_error(&self, action: RPCTypes, error: PeerError) -> RPCError<TypeConfig<R>> {
        match error {
            PeerError::TimedOut(timeout) => {
                let (id, target) = (self.shared.identity.node_id, self.to.node_id);
                RPCError::Timeout(Timeout { action, id, target, timeout })
            }
            PeerError::Malformed(_) => RPCError::Network(NetworkError::new(&error)),
            PeerError::Unreachable(_) | PeerError::WrongIdentity(_) | PeerError::Stopped(_) => {
                RPCError::Unreachable(Unreachable::new(&error))
            }
        }
    }

    /// Control calls of openraft share the heartbeat's deadline; over a real network that is too
    /// short for a first connection, and nothing is lost by waiting longer for a vote.
    fn patience(option: &RPCOption) -> Duration {
        option.hard_ttl().max(PEER_CALL_TIMEOUT)
    }

    async fn send_heartbeat(
        &self,
        request: AppendEntriesRequest<TypeConfig<R>>,
        within: Duration,
    ) -> Result<StreamAppendResult<TypeConfig<R>>, PeerError> {
        let sent = R::Instant::now();
        let request = v1::HeartbeatRequest {
            append: Some(wire::encode_append(self.envelope(), request)),
            clock_ms: self.shared.clock.now_ms(),
            rules_version: self.shared.rules_version,
            clocks: self.shared.member_clocks(),
            digests: self.shared.digests(),
            odd_ones: self.shared.odd_ones().iter().map(|odd| odd.node_id).collect(),
        };
        let response = self.peer.heartbeat(request, within).await?;
        let append = response.append.ok_or_else(|| PeerError::Malformed("append is missing".into()))?;
        self.shared.check_answer(&append.envelope, &self.to)?;
        self.shared.clock.observe(self.to.node_id, response.clock_ms, sent);
        self.shared.note_peer(self.to.node_id, response.rules_version, &response.digests);
        wire::decode_append_outcome(append)
    }

    async fn ask_vote(
        &self,
        request: VoteRequest<TypeConfig<R>>,
        pre: bool,
        option: &RPCOption,
    ) -> Result<VoteResponse<TypeConfig<R>>, PeerError> {
        let request = wire::encode_vote_request(self.envelope(), &request);
        let response = self.peer.vote(request, pre, Self::patience(option)).await?;
        self.shared.check_answer(&response.envelope, &self.to)?;
        wire::decode_vote_response(response)
    }
}

impl<R: AsyncRuntime> RaftNetworkV2<TypeConfig<R>> for Link<R> {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<TypeConfig<R>>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig<R>>, RPCError<TypeConfig<R>>> {
        // Only the default `stream_append` calls it, and ours does not.
        let error = PeerError::Malformed("append without a stream is not spoken".into());
        Err(self.rpc_error(RPCTypes::AppendEntries, error))
    }

    fn stream_append<'s, S>(
        &'s mut self,
        mut input: S,
        option: RPCOption,
    ) -> BoxFuture<
        's,
        Result<
            BoxStream<'s, Result<StreamAppendResult<TypeConfig<R>>, RPCError<TypeConfig<R>>>>,
            RPCError<TypeConfig<R>>,
        >,
    >
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig<R>>> + Send + Unpin + 'static,
    {
        Box::pin(async move {
            if self.is_heartbeat {
                let Some(request) = input.next().await else { return Ok(stream::empty().boxed()) };
                let outcome = self.send_heartbeat(request, option.hard_ttl()).await;
                let outcome = outcome.map_err(|e| self.rpc_error(RPCTypes::AppendEntries, e));
                return Ok(stream::iter([outcome]).boxed());
            }
            // openraft's pause after a failure is in its request stream: connecting before the first
            // request was asked for would spin on a peer that is down.
            let Some(first) = input.next().await else { return Ok(stream::empty().boxed()) };
            let unanswered = Arc::new(AtomicU64::new(0));
            let (sent, envelope) = (unanswered.clone(), self.envelope());
            let requests = stream::iter([first]).chain(input).map(move |request| {
                sent.fetch_add(1, Ordering::Relaxed);
                wire::encode_append(envelope.clone(), request)
            });
            let opened =
                R::timeout(self.shared.patience.append_idle, self.peer.stream_append(requests.boxed())).await;
            let opened = opened.unwrap_or(Err(PeerError::TimedOut(self.shared.patience.append_idle)));
            let responses = opened.map_err(|e| self.rpc_error(RPCTypes::AppendEntries, e))?;
            Ok(answers(self, responses, unanswered).boxed())
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig<R>>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig<R>>, RPCError<TypeConfig<R>>> {
        self.ask_vote(request, false, &option).await.map_err(|e| self.rpc_error(RPCTypes::Vote, e))
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig<R>>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig<R>>, RPCError<TypeConfig<R>>> {
        self.ask_vote(request, true, &option).await.map_err(|e| self.rpc_error(RPCTypes::Vote, e))
    }

    async fn full_snapshot(
        &mut self,
        vote: RaftVote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + Send + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig<R>>, StreamingError<TypeConfig<R>>> {
        let sending = self.send_snapshot(vote, &snapshot.meta, snapshot.snapshot);
        match R::select2(cancel, sending).await {
            Select2::First(closed) => Err(StreamingError::Closed(closed)),
            Select2::Second(Ok(response)) => Ok(response),
            Select2::Second(Err(e)) => Err(self.rpc_error(RPCTypes::InstallSnapshot, e).into()),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig<R>>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig<R>>, RPCError<TypeConfig<R>>> {
        let request = wire::encode_transfer(self.envelope(), &request);
        let answer = self.peer.transfer_leadership(request, Self::patience(&option)).await;
        let checked = answer.and_then(|response| self.shared.check_answer(&response.envelope, &self.to));
        checked.map(Ok).map_err(|e| self.rpc_error(RPCTypes::TransferLeader, e))
    }

    fn backoff(&self) -> Option<Backoff> {
        let pause = self.shared.patience.heartbeat;
        Some(Backoff::new(std::iter::repeat(pause)))
    }
}

impl<R: AsyncRuntime> Link<R> {
    /// Sends head and blocks; gives up when nothing moves for a while.
    async fn send_snapshot(
        &self,
        vote: RaftVote,
        meta: &RaftSnapshotMeta,
        file: SnapshotFile,
    ) -> Result<SnapshotResponse<TypeConfig<R>>, PeerError> {
        let taken = Arc::new(AtomicU64::new(0));
        let head = wire::encode_snapshot_head(self.envelope(), &vote, meta, file.bytes(), file.crc32c());
        let parts = file.parts(head, taken.clone());
        let mut call = self.peer.install_snapshot(parts);
        let idle = self.shared.patience.snapshot_idle;
        let (mut seen, mut quiet) = (0, Duration::ZERO);
        loop {
            match R::timeout(idle, &mut call).await {
                Ok(answer) => {
                    let answer = answer?;
                    self.shared.check_answer(&answer.envelope, &self.to)?;
                    return wire::decode_snapshot_response(answer);
                }
                Err(_) => {
                    let now = taken.load(Ordering::Relaxed);
                    quiet = if now == seen { quiet + idle } else { Duration::ZERO };
                    seen = now;
                    // Once everything was taken the receiver verifies and installs, which takes its time.
                    let allowed = if now > file.bytes() { SNAPSHOT_INSTALL_MAX } else { Duration::ZERO };
                    if quiet > allowed {
                        return Err(PeerError::TimedOut(quiet));
                    }
                }
            }
        }
    }
}

struct Answers<'s, R: AsyncRuntime> {
    link: &'s Link<R>,
    responses: BoxStream<'static, Result<v1::AppendEntriesResponse, PeerError>>,
    unanswered: Arc<AtomicU64>,
}

/// The answers of an append stream as openraft wants them. A peer that owes an answer and says nothing
/// for a while has broken the stream: the connection may be dead without the operating system knowing.
fn answers<'s, R: AsyncRuntime>(
    link: &'s Link<R>,
    responses: BoxStream<'static, Result<v1::AppendEntriesResponse, PeerError>>,
    unanswered: Arc<AtomicU64>,
) -> impl Stream<Item = Result<StreamAppendResult<TypeConfig<R>>, RPCError<TypeConfig<R>>>> + Send + 's {
    stream::unfold(Some(Answers { link, responses, unanswered }), |state| async move {
        let mut state = state?;
        let answer = state.next().await?;
        let link = state.link;
        match answer {
            Ok(outcome) => {
                let next = outcome.is_ok().then_some(state);
                Some((Ok(outcome), next))
            }
            Err(error) => Some((Err(link.rpc_error(RPCTypes::AppendEntries, error)), None)),
        }
    })
}

impl<R: AsyncRuntime> Answers<'_, R> {
    async fn next(&mut self) -> Option<Result<StreamAppendResult<TypeConfig<R>>, PeerError>> {
        let mut owed_before = false;
        loop {
            match R::timeout(self.link.shared.patience.append_idle, self.responses.next()).await {
                Ok(None) => return None,
                Ok(Some(Err(error))) => return Some(Err(error)),
                Ok(Some(Ok(response))) => {
                    self.unanswered.fetch_sub(1, Ordering::Relaxed);
                    let checked = self.link.shared.check_answer(&response.envelope, &self.link.to);
                    return Some(checked.and_then(|()| wire::decode_append_outcome(response)));
                }
                Err(_) => {
                    let owed = self.unanswered.load(Ordering::Relaxed) > 0;
                    if owed && owed_before {
                        return Some(Err(PeerError::TimedOut(self.link.shared.patience.append_idle * 2)));
                    }
                    owed_before = owed;
                }
            }
        }
    }
}
