//! A failure inside a stream.

use holdfast_ledger::answer::Rejection;

use super::{Facts, Failure, LeaderHint};
use crate::field::{FieldError, InField};
use crate::reasons::ErrorReason;
use crate::v1;
use crate::words::{Word, word};

impl From<&LeaderHint> for v1::Leader {
    fn from(leader: &LeaderHint) -> Self {
        v1::Leader { node_id: leader.node_id, address: leader.address.clone() }
    }
}

impl From<v1::Leader> for LeaderHint {
    fn from(leader: v1::Leader) -> Self {
        LeaderHint { node_id: leader.node_id, address: leader.address }
    }
}

impl From<Failure> for v1::Failure {
    fn from(failure: Failure) -> Self {
        let Failure { reason, message, facts } = failure;
        let Facts {
            revision,
            unlogged_at_ms,
            retry_after_ms,
            rejection,
            state,
            violations,
            leader,
            metadata,
        } = *facts;
        let violation = |FieldError { field, problem }| v1::FieldViolation { field, problem };
        v1::Failure {
            code: reason.code() as i32,
            reason: reason.as_str().to_owned(),
            message,
            revision,
            retry_after_ms,
            rejection: rejection.as_ref().map(v1::Rejection::from),
            state: state.map(Word::number),
            violations: violations.into_iter().map(violation).collect(),
            leader: leader.as_ref().map(v1::Leader::from),
            metadata: metadata.into_iter().collect(),
            unlogged_at_ms,
        }
    }
}

impl TryFrom<v1::Failure> for Failure {
    type Error = FieldError;

    /// Refuses a reason that is not in the table: nothing may be concluded from it.
    fn try_from(wire: v1::Failure) -> Result<Self, FieldError> {
        let reason: ErrorReason =
            wire.reason.parse().map_err(|error| FieldError::new("reason", format!("{error}")))?;
        let violation = |v1::FieldViolation { field, problem }| FieldError { field, problem };
        let facts = Facts {
            revision: wire.revision,
            unlogged_at_ms: wire.unlogged_at_ms,
            retry_after_ms: wire.retry_after_ms,
            rejection: wire.rejection.as_ref().map(Rejection::try_from).transpose().in_field("rejection")?,
            state: wire.state.map(|state| word("state", state)).transpose()?,
            violations: wire.violations.into_iter().map(violation).collect(),
            leader: wire.leader.map(LeaderHint::from),
            metadata: wire.metadata.into_iter().collect(),
        };
        Ok(Failure { reason, message: wire.message, facts: Box::new(facts) })
    }
}
