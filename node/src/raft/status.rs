//! How a node is: everything the status call, the metrics and the console show.

use std::sync::atomic::{AtomicU64, Ordering};

use openraft::ServerState;
use openraft_rt::{AsyncRuntime, Instant, WatchReceiver};

use super::heard::known_leader;
use super::identity::Identity;
use super::metrics::{HistogramSnapshot, Metrics};
use super::shared::{RaftNode, Shared};
use super::types::{Member, NodeId};
use crate::replica::DigestAt;
use crate::storage::log::{Log, LogStats};

/// What a node does in Raft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Receives log without voting.
    Learner,
    /// Follows.
    Follower,
    /// Stands for election.
    Candidate,
    /// Seems to lead.
    Leader,
    /// Is stopping or has stopped.
    Stopped,
}

/// One member as a node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its node id.
    pub node_id: NodeId,
    /// Where it is reached and on which disk it lives.
    pub member: Member,
    /// Whether it votes.
    pub is_voter: bool,
    /// Leader only: the last index that it is known to have.
    pub matched_index: Option<u64>,
    /// Leader only: how many entries it is behind the leader's log.
    pub lag: Option<u64>,
    /// Its clock minus this node's, ms, if it is known.
    pub clock_offset_ms: Option<i64>,
    /// How old that is, ms.
    pub clock_age_ms: Option<u64>,
    /// The rules version that it supports, if it told.
    pub rules_version: Option<u32>,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// µs to apply one entry.
    pub apply_us: HistogramSnapshot,
    /// µs from handing an entry to Raft to its answers.
    pub commit_us: HistogramSnapshot,
    /// Commands per entry proposed.
    pub entry_commands: HistogramSnapshot,
    /// Bytes per entry proposed.
    pub entry_bytes: HistogramSnapshot,
    /// µs for one group sync, where this process measures it.
    pub sync_us: HistogramSnapshot,
    /// µs for one read barrier round.
    pub read_us: HistogramSnapshot,
    /// µs to build one snapshot.
    pub snapshot_us: HistogramSnapshot,
    /// Commands applied since the start, replayed ones included.
    pub commands_applied: u64,
    /// Payload bytes applied.
    pub bytes_applied: u64,
    /// Entries applied.
    pub entries_applied: u64,
    /// Proposals answered.
    pub proposals_ok: u64,
    /// Proposals refused with certainly no effect.
    pub proposals_refused: u64,
    /// Proposals whose outcome became unknown.
    pub proposals_unknown: u64,
    /// Proposals dropped because their deadline had passed.
    pub proposals_late: u64,
    /// Reserves refused from applied state, without a log entry.
    pub refused_unlogged: u64,
    /// Times that nothing was stamped because of the clock.
    pub clock_faults: u64,
    /// Members found to hold another book than a majority, this one included.
    pub digest_mismatches: u64,
    /// Changes of leader seen.
    pub leader_changes: u64,
    /// Snapshots built.
    pub snapshots_built: u64,
    /// Snapshots installed from a leader or at the start.
    pub snapshots_installed: u64,
    /// Size of the last one built, bytes.
    pub snapshot_bytes: u64,
    /// Entries under way.
    pub entries_under_way: u64,
}

/// How a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Who it is.
    pub identity: Identity,
    /// What it does.
    pub role: Role,
    /// The term.
    pub term: u64,
    /// Who leads, as far as it knows and has heard of it (the leader itself: been answered by a quorum) lately.
    pub leader: Option<NodeId>,
    /// How long ago the leader last heard from a quorum, ms; only on the leader.
    pub quorum_age_ms: Option<u64>,
    /// Last index in its log.
    pub last_index: Option<u64>,
    /// Last index known to be committed.
    pub committed_index: Option<u64>,
    /// Last index applied.
    pub applied_index: Option<u64>,
    /// Last index in its newest snapshot.
    pub snapshot_index: Option<u64>,
    /// Last index purged from its log.
    pub purged_index: Option<u64>,
    /// The book's revision.
    pub revision: u64,
    /// The generation in force.
    pub generation: u64,
    /// The book's clock, ms.
    pub book_clock_ms: u64,
    /// Its wall clock, ms.
    pub wall_clock_ms: u64,
    /// Its wall clock minus the members' median, ms, if a quorum's clocks are known.
    pub off_median_ms: Option<i64>,
    /// Whether it would stamp now, and if not why.
    pub clock_fault: Option<String>,
    /// The newest digest kept.
    pub digest: Option<DigestAt>,
    /// Members by id.
    pub members: Vec<MemberStatus>,
    /// Commands that wait to be proposed.
    pub queued_commands: usize,
    /// The log's counters.
    pub log: LogStats,
    /// The node's counters.
    pub counters: CounterSnapshot,
    /// Why it has failed, if it has.
    pub fatal: Option<String>,
}

pub(super) fn status<R: AsyncRuntime>(
    shared: &Shared<R>,
    raft: &RaftNode<R>,
    log: &Log,
    metrics: &Metrics,
    queued_commands: usize,
) -> NodeStatus {
    let seen = raft.metrics().borrow_watched().clone();
    let voters: Vec<NodeId> = seen.membership_config.voter_ids().collect();
    let samples = shared.clock.samples();
    let reports = shared.reports();
    let member = |(id, member): (&NodeId, &Member)| {
        let matched = seen.replication.as_ref().and_then(|r| r.get(id)?.as_ref().map(|at| at.index));
        let sample = samples.get(id);
        MemberStatus {
            node_id: *id,
            member: member.clone(),
            is_voter: voters.contains(id),
            matched_index: matched,
            lag: seen.replication.is_some().then(|| {
                seen.last_log_index
                    .map_or(0, |last| last + 1)
                    .saturating_sub(matched.map_or(0, |index| index + 1))
            }),
            clock_offset_ms: sample.map(|s| s.offset_ms),
            clock_age_ms: sample.map(|s| s.age.as_millis() as u64),
            rules_version: reports.get(id).map(|r| r.rules_version),
        }
    };
    let members = seen.membership_config.nodes().map(member).collect();
    let off_median = shared.clock.off_median_ms(shared.me(), &voters);
    let clock_fault = match off_median {
        Err(fault) => Some(fault.to_string()),
        Ok(by_ms) if shared.clock.is_beyond(by_ms) => {
            Some(crate::clock::ClockFault::OffMedian { by_ms }.to_string())
        }
        Ok(_) => None,
    };
    NodeStatus {
        identity: shared.identity.clone(),
        role: role(seen.state),
        term: seen.current_term,
        leader: known_leader(shared, raft).ok(),
        quorum_age_ms: seen.last_quorum_acked.map(|at| (*at).elapsed().as_millis() as u64),
        last_index: seen.last_log_index,
        committed_index: seen.cluster_committed.or(seen.local_committed).map(|id| id.index),
        applied_index: seen.last_applied.map(|id| id.index),
        snapshot_index: seen.snapshot.map(|id| id.index),
        purged_index: seen.purged.map(|id| id.index),
        revision: shared.replica.revision(),
        generation: shared.replica.generation(),
        book_clock_ms: shared.replica.clock_ms(),
        wall_clock_ms: shared.clock.now_ms(),
        off_median_ms: off_median.ok(),
        clock_fault,
        digest: shared.replica.digests().last().copied(),
        members,
        queued_commands,
        log: log.stats(),
        counters: counters(metrics),
        fatal: shared.fatal(),
    }
}

fn role(state: ServerState) -> Role {
    match state {
        ServerState::Learner => Role::Learner,
        ServerState::Follower => Role::Follower,
        ServerState::Candidate => Role::Candidate,
        ServerState::Leader => Role::Leader,
        ServerState::Shutdown => Role::Stopped,
    }
}

fn counters(metrics: &Metrics) -> CounterSnapshot {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    CounterSnapshot {
        apply_us: metrics.apply_us.snapshot(),
        commit_us: metrics.commit_us.snapshot(),
        entry_commands: metrics.entry_commands.snapshot(),
        entry_bytes: metrics.entry_bytes.snapshot(),
        sync_us: metrics.sync_us.snapshot(),
        read_us: metrics.read_us.snapshot(),
        snapshot_us: metrics.snapshot_us.snapshot(),
        commands_applied: load(&metrics.commands_applied),
        bytes_applied: load(&metrics.bytes_applied),
        entries_applied: load(&metrics.entries_applied),
        proposals_ok: load(&metrics.proposals_ok),
        proposals_refused: load(&metrics.proposals_refused),
        proposals_unknown: load(&metrics.proposals_unknown),
        proposals_late: load(&metrics.proposals_late),
        refused_unlogged: load(&metrics.refused_unlogged),
        clock_faults: load(&metrics.clock_faults),
        digest_mismatches: load(&metrics.digest_mismatches),
        leader_changes: load(&metrics.leader_changes),
        snapshots_built: load(&metrics.snapshots_built),
        snapshots_installed: load(&metrics.snapshots_installed),
        snapshot_bytes: load(&metrics.snapshot_bytes),
        entries_under_way: load(&metrics.entries_under_way),
    }
}
