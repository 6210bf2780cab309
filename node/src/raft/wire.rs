//! openraft's values as peer messages and back. What cannot be read is refused, never guessed.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_proto::v1;
use openraft::EntryPayload;
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendError, TransferLeaderRequest, VoteRequest,
    VoteResponse,
};
use openraft::vote::RaftLeaderId;
use openraft_rt::AsyncRuntime;

use super::identity::{DiskId, Identity};
use super::transport::PeerError;
use super::types::{
    GROUP, Member, Payload, RaftEntry, RaftLogId, RaftMembership, RaftSnapshotMeta, RaftStoredMembership,
    RaftVote, TypeConfig, log_id,
};

fn malformed(field: &str) -> PeerError {
    PeerError::Malformed(format!("{field} is missing or malformed"))
}

fn required<T>(field: &str, value: Option<T>) -> Result<T, PeerError> {
    value.ok_or_else(|| malformed(field))
}

pub(super) fn encode_identity(identity: &Identity) -> v1::Identity {
    v1::Identity {
        cluster_id: identity.cluster_id.clone(),
        node_id: identity.node_id,
        disk_id: bytes::Bytes::copy_from_slice(&identity.disk_id.to_bytes()),
    }
}

pub(super) fn decode_identity(wire: Option<v1::Identity>) -> Result<Identity, PeerError> {
    let wire = required("identity", wire)?;
    let disk_id = DiskId::from_bytes(&wire.disk_id).ok_or_else(|| malformed("disk_id"))?;
    Ok(Identity { cluster_id: wire.cluster_id, node_id: wire.node_id, disk_id })
}

pub(super) fn envelope(from: &Identity, to: &Identity) -> v1::Envelope {
    v1::Envelope { group: GROUP, from: Some(encode_identity(from)), to: Some(encode_identity(to)) }
}

pub(super) fn encode_log_id(id: &RaftLogId) -> v1::LogId {
    v1::LogId { term: id.leader_id.term, index: id.index }
}

pub(super) fn decode_log_id(wire: v1::LogId) -> RaftLogId {
    log_id(wire.term, wire.index)
}

pub(super) fn encode_vote(vote: &RaftVote) -> v1::BallotVote {
    v1::BallotVote {
        term: vote.leader_id.term(),
        node_id: *vote.leader_id.node_id(),
        committed: vote.committed,
    }
}

pub(super) fn decode_vote(wire: Option<v1::BallotVote>) -> Result<RaftVote, PeerError> {
    let wire = required("vote", wire)?;
    Ok(if wire.committed {
        RaftVote::new_committed(wire.term, wire.node_id)
    } else {
        RaftVote::new(wire.term, wire.node_id)
    })
}

pub(super) fn encode_member(id: u64, member: &Member) -> v1::MembershipNode {
    v1::MembershipNode {
        id,
        client_address: member.client_address.clone(),
        peer_address: member.peer_address.clone(),
        http_address: member.http_address.clone(),
        disk_id: bytes::Bytes::copy_from_slice(&member.disk_id.to_bytes()),
    }
}

pub(super) fn decode_member(wire: v1::MembershipNode) -> Result<(u64, Member), PeerError> {
    let disk_id = DiskId::from_bytes(&wire.disk_id).ok_or_else(|| malformed("disk_id"))?;
    let v1::MembershipNode { id, client_address, peer_address, http_address, disk_id: _ } = wire;
    Ok((id, Member { peer_address, client_address, http_address, disk_id }))
}

pub(super) fn encode_membership(membership: &RaftMembership) -> v1::Membership {
    let configs = membership.get_joint_config().iter();
    v1::Membership {
        configs: configs.map(|ids| v1::VoterSet { ids: ids.iter().copied().collect() }).collect(),
        nodes: membership.nodes().map(|(id, member)| encode_member(*id, member)).collect(),
    }
}

pub(super) fn decode_membership(wire: v1::Membership) -> Result<RaftMembership, PeerError> {
    let configs: Vec<BTreeSet<u64>> =
        wire.configs.into_iter().map(|set| set.ids.into_iter().collect()).collect();
    let nodes = wire.nodes.into_iter().map(decode_member).collect::<Result<BTreeMap<_, _>, _>>()?;
    RaftMembership::new(configs, nodes).map_err(|e| PeerError::Malformed(format!("membership: {e}")))
}

fn encode_entry(entry: RaftEntry) -> v1::Entry {
    let payload = match entry.payload {
        EntryPayload::Blank => v1::entry::Payload::Blank(v1::Blank {}),
        EntryPayload::Normal(Payload(bytes)) => v1::entry::Payload::Commands(bytes),
        EntryPayload::Membership(m) => v1::entry::Payload::Membership(encode_membership(&m)),
    };
    v1::Entry { id: Some(encode_log_id(&entry.log_id)), payload: Some(payload) }
}

fn decode_entry(wire: v1::Entry) -> Result<RaftEntry, PeerError> {
    let log_id = decode_log_id(required("entry.id", wire.id)?);
    let payload = match required("entry.payload", wire.payload)? {
        v1::entry::Payload::Blank(v1::Blank {}) => EntryPayload::Blank,
        v1::entry::Payload::Commands(bytes) => EntryPayload::Normal(Payload(bytes)),
        v1::entry::Payload::Membership(m) => EntryPayload::Membership(decode_membership(m)?),
    };
    Ok(RaftEntry { log_id, payload })
}

pub(super) fn encode_append<R: AsyncRuntime>(
    envelope: v1::Envelope,
    request: AppendEntriesRequest<TypeConfig<R>>,
) -> v1::AppendEntriesRequest {
    v1::AppendEntriesRequest {
        envelope: Some(envelope),
        vote: Some(encode_vote(&request.vote)),
        prev_log_id: request.prev_log_id.as_ref().map(encode_log_id),
        entries: request.entries.into_iter().map(encode_entry).collect(),
        leader_commit: request.leader_commit.as_ref().map(encode_log_id),
    }
}

pub(super) fn decode_append<R: AsyncRuntime>(
    wire: v1::AppendEntriesRequest,
) -> Result<AppendEntriesRequest<TypeConfig<R>>, PeerError> {
    let prev_log_id = wire.prev_log_id.map(decode_log_id);
    let entries: Vec<_> = wire.entries.into_iter().map(decode_entry).collect::<Result<_, _>>()?;
    let first = prev_log_id.as_ref().map_or(0, |prev| prev.index + 1);
    if entries.iter().zip(first..).any(|(entry, index)| entry.log_id.index != index) {
        return Err(PeerError::Malformed("the entries do not follow prev_log_id without a hole".into()));
    }
    Ok(AppendEntriesRequest {
        vote: decode_vote(wire.vote)?,
        prev_log_id,
        entries,
        leader_commit: wire.leader_commit.map(decode_log_id),
    })
}

pub(super) type AppendOutcome<R> = Result<Option<RaftLogId>, StreamAppendError<TypeConfig<R>>>;

pub(super) fn encode_append_outcome<R: AsyncRuntime>(
    envelope: v1::Envelope,
    outcome: AppendOutcome<R>,
) -> v1::AppendEntriesResponse {
    use v1::append_entries_response::Outcome;
    let outcome = match outcome {
        Ok(last) => Outcome::Appended(v1::Appended { last: last.as_ref().map(encode_log_id) }),
        Err(StreamAppendError::Conflict(at)) => {
            Outcome::Conflicting(v1::Conflicting { prev_log_id: Some(encode_log_id(&at)) })
        }
        Err(StreamAppendError::HigherVote(vote)) => Outcome::HigherVote(encode_vote(&vote)),
    };
    v1::AppendEntriesResponse { envelope: Some(envelope), outcome: Some(outcome) }
}

pub(super) fn decode_append_outcome<R: AsyncRuntime>(
    wire: v1::AppendEntriesResponse,
) -> Result<AppendOutcome<R>, PeerError> {
    use v1::append_entries_response::Outcome;
    Ok(match required("outcome", wire.outcome)? {
        Outcome::Appended(v1::Appended { last }) => Ok(last.map(decode_log_id)),
        Outcome::PartlyAppended(v1::PartlyAppended { matching }) => Ok(matching.map(decode_log_id)),
        Outcome::Conflicting(v1::Conflicting { prev_log_id }) => {
            Err(StreamAppendError::Conflict(decode_log_id(required("prev_log_id", prev_log_id)?)))
        }
        Outcome::HigherVote(vote) => Err(StreamAppendError::HigherVote(decode_vote(Some(vote))?)),
    })
}

pub(super) fn encode_vote_request<R: AsyncRuntime>(
    envelope: v1::Envelope,
    request: &VoteRequest<TypeConfig<R>>,
) -> v1::VoteRequest {
    v1::VoteRequest {
        envelope: Some(envelope),
        vote: Some(encode_vote(&request.vote)),
        last_log_id: request.last_log_id.as_ref().map(encode_log_id),
        leadership_transfer: request.leadership_transfer,
    }
}

pub(super) fn decode_vote_request<R: AsyncRuntime>(
    wire: v1::VoteRequest,
) -> Result<VoteRequest<TypeConfig<R>>, PeerError> {
    let mut request = VoteRequest::new(decode_vote(wire.vote)?, wire.last_log_id.map(decode_log_id));
    request.leadership_transfer = wire.leadership_transfer;
    Ok(request)
}

pub(super) fn encode_vote_response<R: AsyncRuntime>(
    envelope: v1::Envelope,
    response: &VoteResponse<TypeConfig<R>>,
) -> v1::VoteResponse {
    v1::VoteResponse {
        envelope: Some(envelope),
        vote: Some(encode_vote(&response.vote)),
        granted: response.vote_granted,
        last_log_id: response.last_log_id.as_ref().map(encode_log_id),
    }
}

pub(super) fn decode_vote_response<R: AsyncRuntime>(
    wire: v1::VoteResponse,
) -> Result<VoteResponse<TypeConfig<R>>, PeerError> {
    Ok(VoteResponse::new(decode_vote(wire.vote)?, wire.last_log_id.map(decode_log_id), wire.granted))
}

pub(super) fn encode_transfer<R: AsyncRuntime>(
    envelope: v1::Envelope,
    request: &TransferLeaderRequest<TypeConfig<R>>,
) -> v1::TransferLeadershipRequest {
    v1::TransferLeadershipRequest {
        envelope: Some(envelope),
        from_leader: Some(encode_vote(request.from_leader())),
        to_node_id: *request.to_node_id(),
        last_log_id: request.last_log_id().map(encode_log_id),
    }
}

pub(super) fn decode_transfer<R: AsyncRuntime>(
    wire: v1::TransferLeadershipRequest,
) -> Result<TransferLeaderRequest<TypeConfig<R>>, PeerError> {
    let from = decode_vote(wire.from_leader)?;
    Ok(TransferLeaderRequest::new(from, wire.to_node_id, wire.last_log_id.map(decode_log_id)))
}

pub(super) fn encode_snapshot_head(
    envelope: v1::Envelope,
    vote: &RaftVote,
    meta: &RaftSnapshotMeta,
    bytes: u64,
    crc32c: u32,
) -> v1::SnapshotHead {
    v1::SnapshotHead {
        envelope: Some(envelope),
        vote: Some(encode_vote(vote)),
        last_log_id: meta.last_log_id.as_ref().map(encode_log_id),
        membership_log_id: meta.last_membership.log_id().as_ref().map(encode_log_id),
        membership: Some(encode_membership(meta.last_membership.membership())),
        bytes,
        crc32c,
    }
}

pub(super) fn decode_snapshot_meta(head: &v1::SnapshotHead) -> Result<RaftSnapshotMeta, PeerError> {
    let membership = decode_membership(required("membership", head.membership.clone())?)?;
    Ok(RaftSnapshotMeta {
        last_log_id: head.last_log_id.map(decode_log_id),
        last_membership: RaftStoredMembership::new(head.membership_log_id.map(decode_log_id), membership),
    })
}

pub(super) fn decode_snapshot_response<R: AsyncRuntime>(
    wire: v1::InstallSnapshotResponse,
) -> Result<SnapshotResponse<TypeConfig<R>>, PeerError> {
    Ok(SnapshotResponse::new(decode_vote(wire.vote)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use prost::Message;

    use super::*;

    fn membership() -> RaftMembership {
        let member = |n: u128| Member {
            peer_address: format!("p{n}:1"),
            client_address: format!("c{n}:1"),
            http_address: String::new(),
            disk_id: DiskId(n),
        };
        RaftMembership::new(
            vec![BTreeSet::from([1, 2])],
            BTreeMap::from([(1, member(1)), (2, member(2)), (3, member(3))]),
        )
        .unwrap()
    }

    /// A membership stands in the log and in snapshots: these bytes are read by every later version.
    #[test]
    fn a_membership_is_pinned_and_comes_back() {
        let bytes = encode_membership(&membership()).encode_to_vec();
        let node = |n: u8| {
            let mut node = vec![
                0x08,
                n,
                0x12,
                4,
                b'c',
                b'0' + n,
                b':',
                b'1',
                0x1a,
                4,
                b'p',
                b'0' + n,
                b':',
                b'1',
                0x2a,
                16,
            ];
            node.extend(u128::from(n).to_be_bytes());
            node
        };
        let mut expected = vec![0x0a, 4, 0x0a, 2, 1, 2];
        for n in 1..=3 {
            let node = node(n);
            expected.extend([0x12, node.len() as u8]);
            expected.extend(node);
        }
        assert_eq!(bytes, expected);
        let back = decode_membership(v1::Membership::decode(&bytes[..]).unwrap()).unwrap();
        assert_eq!(back, membership());
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_field() {
        let entry = v1::Entry { id: None, payload: None };
        assert!(decode_entry(entry).unwrap_err().to_string().contains("entry.id"));
        let entry = v1::Entry { id: Some(v1::LogId { term: 1, index: 2 }), payload: None };
        assert!(decode_entry(entry).unwrap_err().to_string().contains("entry.payload"));
        let short_disk = v1::Identity { cluster_id: "c".into(), node_id: 1, disk_id: vec![1; 15].into() };
        assert!(decode_identity(Some(short_disk)).unwrap_err().to_string().contains("disk_id"));
        let unknown_voter =
            v1::Membership { configs: vec![v1::VoterSet { ids: vec![9] }], nodes: Vec::new() };
        assert!(decode_membership(unknown_voter).is_err());
        let at = |index| Some(v1::LogId { term: 1, index });
        let entry =
            |index| v1::Entry { id: at(index), payload: Some(v1::entry::Payload::Blank(v1::Blank {})) };
        let append = |entries| v1::AppendEntriesRequest {
            vote: Some(v1::BallotVote { term: 1, node_id: 1, committed: true }),
            prev_log_id: at(4),
            entries,
            ..Default::default()
        };
        let decode = decode_append::<openraft_rt_sim::SimRuntime>;
        assert_eq!(decode(append(vec![entry(5), entry(6)])).unwrap().entries.len(), 2);
        for hole in [vec![entry(6)], vec![entry(5), entry(7)], vec![entry(4)]] {
            assert!(decode(append(hole)).unwrap_err().to_string().contains("without a hole"));
        }
    }
}
