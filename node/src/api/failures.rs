//! Why a call failed, in the words of the table of errors.

use holdfast_proto::{ErrorReason, Failure, FieldError, LeaderHint};
use tonic::{Code, Status};

use crate::propose::{LeaderAt, ProposeError, Refused, UnknownWhy};
use crate::raft::ReadError;

/// Who leads, for a caller that asked another member.
pub(super) fn leader_hint(leader: LeaderAt) -> LeaderHint {
    LeaderHint { node_id: leader.node_id, address: leader.client_address }
}

/// What a proposal that was not answered tells its caller.
pub(super) fn of_propose(error: ProposeError) -> Failure {
    match error {
        ProposeError::NotLeader(leader) => Failure::not_leader(leader.map(leader_hint)),
        ProposeError::Invalid { field, problem } => FieldError::new(field, problem).into(),
        ProposeError::Overloaded => Failure::overloaded("queue.commands_max"),
        ProposeError::Late => Failure::new(
            ErrorReason::DroppedLate,
            "the deadline passed before it was proposed; it was dropped",
        ),
        ProposeError::Clock(fault) => Failure::new(ErrorReason::ClockOutOfBounds, fault.to_string()),
        ProposeError::Stopping => shutting_down(),
        ProposeError::Unknown(UnknownWhy::TimedOut) => {
            Failure::new(ErrorReason::TimedOut, "no answer before the deadline; ask by the same id")
        }
        ProposeError::Unknown(UnknownWhy::LeadershipLost) => {
            Failure::new(ErrorReason::OutcomeUnknown, "leadership was lost meanwhile; ask by the same id")
        }
        ProposeError::Unknown(UnknownWhy::Stopped) => {
            Failure::new(ErrorReason::OutcomeUnknown, "the member stopped meanwhile; ask by the same id")
        }
    }
}

/// A refusal that no log entry stands behind.
pub(super) fn of_refused(refused: &Refused) -> Failure {
    Failure::from(&refused.refusal).at_revision(refused.revision).unlogged_at(refused.at_ms)
}

/// Why a read was not answered.
pub(super) fn of_read(error: ReadError) -> Failure {
    match error {
        ReadError::NotLeader(leader) => Failure::not_leader(leader.map(leader_hint)),
        ReadError::NoQuorum => Failure::new(ErrorReason::NoQuorum, error.to_string()),
        ReadError::Overloaded => Failure::overloaded("reads"),
        // Nothing is proposed for a read, so that it was dropped is the whole truth.
        ReadError::TimedOut => {
            Failure::new(ErrorReason::DroppedLate, "the deadline passed before it was answered")
        }
        ReadError::Stopping => shutting_down(),
    }
}

/// The node takes nothing new.
pub(super) fn shutting_down() -> Failure {
    Failure::new(ErrorReason::ShuttingDown, "the member is stopping and takes nothing new")
}

/// What the gRPC library said of a message that it could not read: too large, or no message of ours.
/// `None` if the connection broke, which is nobody's mistake.
pub(super) fn of_unreadable(status: &Status, message_bytes_max: usize) -> Option<Failure> {
    match status.code() {
        Code::OutOfRange | Code::ResourceExhausted => Some(too_large(message_bytes_max)),
        Code::Internal | Code::InvalidArgument | Code::Unimplemented => {
            Some(FieldError::new("message", format!("cannot be read: {}", status.message())).into())
        }
        _ => None,
    }
}

/// A message over the bound.
pub(super) fn too_large(message_bytes_max: usize) -> Failure {
    FieldError::new("message", format!("is larger than {message_bytes_max} bytes (queue.message_bytes_max)"))
        .into()
}

/// There is nothing under that name.
pub(super) fn not_found(what: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorReason::NotFound, format!("there is no {what}"))
}

/// A command was applied and yet no answer came with it.
pub(super) fn lost_answer() -> Failure {
    Failure::new(ErrorReason::OutcomeUnknown, "the answer was lost; ask by the same id")
}

/// The node cannot do what it should.
pub(super) fn node_failed(why: impl Into<String>) -> Failure {
    Failure::new(ErrorReason::NodeFailed, why)
}
