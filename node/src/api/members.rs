//! The `Members` service: who belongs to the cluster, how each is, and handing leadership over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use holdfast_proto::v1::members_client::MembersClient;
use holdfast_proto::{ErrorReason, Failure, FieldError, v1};
use tokio::time::Instant;
use tonic::transport::Endpoint;
use tonic::{Request, Response, Status};

use super::{Context, deadline, failures};
use crate::limits::{HAND_OVER_POLL, MEMBER_STATUS_TIMEOUT};
use crate::raft::{MemberStatus, NodeStatus, Role};

/// The service on one node.
pub(super) struct MembersService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::members_server::Members for MembersService {
    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        self.cx.answer(self.read_status(request).await)
    }

    async fn list(
        &self,
        _request: Request<v1::ListMembersRequest>,
    ) -> Result<Response<v1::ListMembersResponse>, Status> {
        let status = self.cx.node.status();
        Ok(Response::new(v1::ListMembersResponse {
            cluster_id: self.cx.cluster_id.clone(),
            term: status.term,
            leader: self.leader(),
            members: status.members.iter().map(encode_member).collect(),
        }))
    }

    async fn transfer_leader(
        &self,
        request: Request<v1::TransferLeaderRequest>,
    ) -> Result<Response<v1::TransferLeaderResponse>, Status> {
        self.cx.answer(self.propose_transfer(request).await)
    }
}

impl MembersService {
    fn leader(&self) -> Option<v1::Leader> {
        self.cx.node.leader().map(|leader| (&failures::leader_hint(leader)).into())
    }

    async fn read_status(&self, request: Request<v1::StatusRequest>) -> Result<v1::StatusResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let status = self.cx.node.status();
        let own = self.own_status(&status);
        let mut members = vec![own];
        if !request.get_ref().only_this {
            let others = status.members.iter().filter(|member| member.node_id != self.cx.node_id);
            members.extend(join_all(others.map(|member| ask(member, at))).await);
            members.sort_by_key(|member| member.member.as_ref().map_or(0, |member| member.id));
            fill_lags(&mut members, &status);
        }
        Ok(v1::StatusResponse {
            cluster_id: self.cx.cluster_id.clone(),
            node_id: self.cx.node_id,
            leader: self.leader(),
            members,
        })
    }

    fn own_status(&self, status: &NodeStatus) -> v1::MemberStatus {
        let own = status.members.iter().find(|member| member.node_id == self.cx.node_id);
        // One look, so that digest and revision belong together.
        let (revision, generation, digest) =
            self.cx.replica().read(|book| (book.revision(), book.generation(), book.digest()));
        v1::MemberStatus {
            member: own.map(encode_member),
            reachable: true,
            role: encode_role(status.role).into(),
            term: status.term,
            last_index: status.last_index.unwrap_or(0),
            committed_index: status.committed_index.unwrap_or(0),
            applied_index: status.applied_index.unwrap_or(0),
            lag: own.and_then(|own| own.lag),
            clock_ms: status.wall_clock_ms,
            revision,
            generation,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            digest: holdfast_proto::answers::encode_digest(digest),
            snapshot_index: status.snapshot_index.unwrap_or(0),
        }
    }

    async fn propose_transfer(
        &self,
        request: Request<v1::TransferLeaderRequest>,
    ) -> Result<v1::TransferLeaderResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let to = Some(request.get_ref().to).filter(|to| *to != 0);
        let node = &self.cx.node;
        if !node.seems_to_lead() {
            return Err(Failure::not_leader(node.leader().map(failures::leader_hint)));
        }
        if let Some(to) = to {
            self.check_target(to)?;
        }
        // Handing over to oneself is done already.
        let asked = if to == Some(self.cx.node_id) { to } else { node.transfer_leader(to).await };
        let Some(asked) = asked else {
            return Err(Failure::new(ErrorReason::NoQuorum, "no other member can take leadership now"));
        };
        while node.leader().is_none_or(|leader| leader.node_id != asked) {
            if Instant::now() >= at {
                let message = format!("node {asked} was asked to lead and does not yet");
                return Err(Failure::new(ErrorReason::TimedOut, message));
            }
            tokio::time::sleep(HAND_OVER_POLL).await;
        }
        Ok(v1::TransferLeaderResponse { leader: self.leader(), term: node.status().term })
    }

    fn check_target(&self, to: u64) -> Result<(), FieldError> {
        match self.cx.node.status().members.iter().find(|member| member.node_id == to) {
            None => Err(FieldError::new("to", format!("is {to}; there is no such member"))),
            Some(member) if !member.is_voter => {
                Err(FieldError::new("to", format!("is {to}; that member does not vote")))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Asks one member how it is; one that does not answer in time is told as unreachable.
async fn ask(member: &MemberStatus, deadline: Instant) -> v1::MemberStatus {
    let within = deadline.saturating_duration_since(Instant::now()).min(MEMBER_STATUS_TIMEOUT);
    let answer = tokio::time::timeout(within, ask_at(&member.member.client_address, within)).await;
    let known = encode_member(member);
    match answer.ok().flatten() {
        Some(told) => v1::MemberStatus { member: Some(known), lag: member.lag, ..told },
        None => v1::MemberStatus { member: Some(known), reachable: false, ..v1::MemberStatus::default() },
    }
}

async fn ask_at(address: &str, within: Duration) -> Option<v1::MemberStatus> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
    let channel = endpoint.connect_timeout(within).connect().await.ok()?;
    let answer = MembersClient::new(channel).status(v1::StatusRequest { only_this: true }).await.ok()?;
    answer.into_inner().members.into_iter().next()
}

/// A follower does not know the others' lag from Raft, but it has just heard their last indexes.
fn fill_lags(members: &mut [v1::MemberStatus], status: &NodeStatus) {
    let led = members.iter().find(|member| member.member.as_ref().map(|m| m.id) == status.leader);
    let Some(last) = led.filter(|leader| leader.reachable).map(|leader| leader.last_index) else { return };
    for member in members.iter_mut().filter(|member| member.reachable && member.lag.is_none()) {
        member.lag = Some(last.saturating_sub(member.last_index));
    }
}

fn encode_member(status: &MemberStatus) -> v1::Member {
    let member = &status.member;
    v1::Member {
        id: status.node_id,
        client_address: member.client_address.clone(),
        peer_address: member.peer_address.clone(),
        http_address: member.http_address.clone(),
        disk_id: Bytes::copy_from_slice(&member.disk_id.to_bytes()),
        voter: status.is_voter,
    }
}

fn encode_role(role: Role) -> v1::Role {
    match role {
        Role::Leader => v1::Role::Leader,
        Role::Follower => v1::Role::Follower,
        Role::Candidate => v1::Role::Candidate,
        Role::Learner => v1::Role::Learner,
        Role::Stopped => v1::Role::Unspecified,
    }
}
