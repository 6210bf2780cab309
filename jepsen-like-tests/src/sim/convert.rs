//! A node's errors as failures of the table, as its API tells them to clients.

use holdfast_node::propose::{LeaderAt, ProposeError, UnknownWhy};
use holdfast_node::raft::ReadError;
use holdfast_proto::{ErrorReason, Failure, LeaderHint};

fn hint(leader: &Option<LeaderAt>) -> Option<LeaderHint> {
    leader
        .as_ref()
        .map(|leader| LeaderHint { node_id: leader.node_id, address: leader.client_address.clone() })
}

/// What a client is told of a proposal that got no answers.
pub fn failure_of(error: &ProposeError) -> Failure {
    let reason = match error {
        ProposeError::NotLeader(leader) => return Failure::not_leader(hint(leader)),
        ProposeError::Invalid { .. } => ErrorReason::Invalid,
        ProposeError::Overloaded => ErrorReason::Overloaded,
        ProposeError::Late => ErrorReason::DroppedLate,
        ProposeError::Clock(_) => ErrorReason::ClockOutOfBounds,
        ProposeError::Stopping => ErrorReason::ShuttingDown,
        ProposeError::Unknown(UnknownWhy::TimedOut) => ErrorReason::TimedOut,
        ProposeError::Unknown(_) => ErrorReason::OutcomeUnknown,
    };
    Failure::new(reason, error.to_string())
}

/// What a client is told of a read that could not be answered.
pub(super) fn failure_of_read(error: &ReadError) -> Failure {
    let reason = match error {
        ReadError::NotLeader(leader) => return Failure::not_leader(hint(leader)),
        ReadError::NoQuorum => ErrorReason::NoQuorum,
        ReadError::Overloaded => ErrorReason::Overloaded,
        ReadError::TimedOut => ErrorReason::DroppedLate,
        ReadError::Stopping => ErrorReason::ShuttingDown,
    };
    Failure::new(reason, error.to_string())
}
