//! What this node answers its peers: every call is checked for who calls whom, then handed to Raft.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use holdfast_proto::v1;
use openraft::errors::Fatal;
use openraft::raft::{StreamAppendError, StreamAppendResult};
use openraft_rt::{AsyncRuntime, Instant};

use super::identity::Identity;
use super::shared::{RaftNode, Shared};
use super::snapshot::{Offload, SnapshotFiles, receive_snapshot};
use super::transport::{AppendRequests, AppendResponses, Peer, PeerError, Reply, SnapshotParts};
use super::types::{Member, TypeConfig};
use super::wire;

/// Serves the peers of one node. Transports call it.
pub struct PeerServer<R: AsyncRuntime> {
    pub(super) shared: Arc<Shared<R>>,
    pub(super) files: Arc<SnapshotFiles>,
    pub(super) me: Member,
    pub(super) offload: Offload,
}

impl<R: AsyncRuntime> Clone for PeerServer<R> {
    fn clone(&self) -> Self {
        PeerServer {
            shared: self.shared.clone(),
            files: self.files.clone(),
            me: self.me.clone(),
            offload: self.offload.clone(),
        }
    }
}

fn stopped<R: AsyncRuntime>(fatal: Fatal<TypeConfig<R>>) -> PeerError {
    PeerError::Stopped(fatal.to_string())
}

impl<R: AsyncRuntime> PeerServer<R> {
    fn raft(&self) -> Result<&RaftNode<R>, PeerError> {
        self.shared.raft.get().ok_or_else(|| PeerError::Stopped("not started yet".into()))
    }

    fn answer_to(&self, from: &Identity) -> v1::Envelope {
        wire::envelope(&self.shared.identity, from)
    }

    /// Whoever appends here leads, unless Raft knows of a newer term.
    fn note_leader(&self, from: &Identity, outcome: &StreamAppendResult<TypeConfig<R>>) {
        if !matches!(outcome, Err(StreamAppendError::HigherVote(_))) {
            self.shared.heard.note(from.node_id);
        }
    }

    async fn handle_heartbeat(
        self,
        request: v1::HeartbeatRequest,
    ) -> Result<v1::HeartbeatResponse, PeerError> {
        let received = R::Instant::now();
        let append = request.append.ok_or_else(|| PeerError::Malformed("append is missing".into()))?;
        let from = self.shared.check_request(&append.envelope)?;
        if request.odd_ones.contains(&self.shared.me()) {
            self.shared.fail_as_odd(from.node_id, &request.digests);
        }
        self.shared.clock.observe(from.node_id, request.clock_ms, received);
        for clock in &request.clocks {
            if clock.node_id != self.shared.me() {
                let read = received - Duration::from_millis(clock.age_ms);
                let clock_ms = clock.clock_ms.saturating_sub(clock.age_ms);
                self.shared.clock.observe_at(clock.node_id, clock_ms, read);
            }
        }
        let append = wire::decode_append(append)?;
        // One item, so one answer.
        let outcomes = self.raft()?.stream_append(stream::iter([append]));
        let outcome = std::pin::pin!(outcomes).next().await;
        let outcome = outcome.ok_or_else(|| PeerError::Stopped("no answer".into()))?.map_err(stopped)?;
        self.note_leader(&from, &outcome);
        Ok(v1::HeartbeatResponse {
            append: Some(wire::encode_append_outcome::<R>(self.answer_to(&from), outcome)),
            clock_ms: self.shared.clock.now_ms(),
            rules_version: self.shared.rules_version,
            digests: self.shared.digests(),
        })
    }

    async fn handle_stream(self, mut requests: AppendRequests) -> Result<AppendResponses, PeerError> {
        let Some(first) = requests.next().await else { return Ok(stream::empty().boxed()) };
        let from = self.shared.check_request(&first.envelope)?;
        let envelope = self.answer_to(&from);
        let shared = self.shared.clone();
        // A message that is wrong ends the input; Raft answers what came before, and the stream ends.
        let decoded = stream::iter([first]).chain(requests).map(move |request| {
            shared.check_request(&request.envelope)?;
            wire::decode_append::<R>(request)
        });
        let good = decoded.scan((), |(), item| async move {
            item.inspect_err(|error| tracing::warn!("append stream refused: {error}")).ok()
        });
        let outcomes = self.raft()?.stream_append(good.boxed());
        let answers = outcomes.map(move |outcome| match outcome {
            Ok(outcome) => {
                self.note_leader(&from, &outcome);
                Ok(wire::encode_append_outcome::<R>(envelope.clone(), outcome))
            }
            Err(fatal) => Err(stopped(fatal)),
        });
        Ok(answers.boxed())
    }

    async fn handle_vote(self, request: v1::VoteRequest, pre: bool) -> Result<v1::VoteResponse, PeerError> {
        let from = self.shared.check_request(&request.envelope)?;
        let request = wire::decode_vote_request(request)?;
        let raft = self.raft()?;
        let response = if pre { raft.pre_vote(request).await } else { raft.vote(request).await };
        let response = response.map_err(|e| PeerError::Stopped(e.to_string()))?;
        Ok(wire::encode_vote_response(self.answer_to(&from), &response))
    }

    async fn handle_transfer(
        self,
        request: v1::TransferLeadershipRequest,
    ) -> Result<v1::TransferLeadershipResponse, PeerError> {
        let from = self.shared.check_request(&request.envelope)?;
        let answer = self.raft()?.handle_transfer_leader(wire::decode_transfer(request)?).await;
        match answer.map_err(|e| PeerError::Stopped(e.to_string()))? {
            Ok(()) => Ok(v1::TransferLeadershipResponse { envelope: Some(self.answer_to(&from)) }),
            Err(refused) => Err(PeerError::Unreachable(refused.to_string())),
        }
    }

    async fn handle_snapshot(
        self,
        mut parts: SnapshotParts,
    ) -> Result<v1::InstallSnapshotResponse, PeerError> {
        use v1::install_snapshot_request::Part;
        let first =
            parts.next().await.ok_or_else(|| PeerError::Malformed("a snapshot without a head".into()))??;
        let Some(Part::Head(head)) = first.part else {
            return Err(PeerError::Malformed("the first part is not the head".into()));
        };
        let from = self.shared.check_request(&head.envelope)?;
        let vote = wire::decode_vote(head.vote)?;
        let meta = wire::decode_snapshot_meta(&head)?;
        let idle = self.shared.patience.snapshot_idle;
        let file = receive_snapshot::<R>(&self.offload, &self.files, &meta, &head, parts, idle).await?;
        let snapshot = openraft::Snapshot { meta, snapshot: file };
        let response = self.raft()?.install_full_snapshot(vote, snapshot).await;
        let response = response.map_err(|e| PeerError::Stopped(e.to_string()))?;
        let vote = Some(wire::encode_vote(&response.vote));
        Ok(v1::InstallSnapshotResponse { envelope: Some(self.answer_to(&from)), vote })
    }

    fn identify_now(&self, request: &v1::IdentifyRequest) -> Result<v1::IdentifyResponse, PeerError> {
        if request.cluster_id != self.shared.identity.cluster_id {
            return Err(PeerError::WrongIdentity(format!(
                "cluster {:?} was meant, but here is {}",
                request.cluster_id, self.shared.identity
            )));
        }
        let membership = self.shared.membership();
        let members =
            membership.iter().flat_map(|m| m.nodes().map(|(id, member)| wire::encode_member(*id, member)));
        let leader = self.raft().ok().and_then(|raft| {
            use openraft_rt::watch::WatchReceiver;
            raft.server_metrics().borrow_watched().current_leader
        });
        Ok(v1::IdentifyResponse {
            identity: Some(wire::encode_identity(&self.shared.identity)),
            members: members.collect(),
            voters: self.shared.voters(),
            leader: leader.unwrap_or(0),
            client_address: self.me.client_address.clone(),
            http_address: self.me.http_address.clone(),
        })
    }
}

impl<R: AsyncRuntime> Peer for PeerServer<R> {
    fn heartbeat(&self, request: v1::HeartbeatRequest, _within: Duration) -> Reply<v1::HeartbeatResponse> {
        Box::pin(self.clone().handle_heartbeat(request))
    }

    fn stream_append(&self, requests: AppendRequests) -> Reply<AppendResponses> {
        Box::pin(self.clone().handle_stream(requests))
    }

    fn vote(&self, request: v1::VoteRequest, pre: bool, _within: Duration) -> Reply<v1::VoteResponse> {
        Box::pin(self.clone().handle_vote(request, pre))
    }

    fn transfer_leadership(
        &self,
        request: v1::TransferLeadershipRequest,
        _within: Duration,
    ) -> Reply<v1::TransferLeadershipResponse> {
        Box::pin(self.clone().handle_transfer(request))
    }

    fn install_snapshot(&self, parts: SnapshotParts) -> Reply<v1::InstallSnapshotResponse> {
        Box::pin(self.clone().handle_snapshot(parts))
    }

    fn identify(&self, request: v1::IdentifyRequest, _within: Duration) -> Reply<v1::IdentifyResponse> {
        Box::pin(std::future::ready(self.identify_now(&request)))
    }
}
