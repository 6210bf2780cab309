//! What the book refused, as a failure.

use holdfast_ledger::answer::{Reason, Refusal, Rejection};
use holdfast_ledger::loss::LimitLoss;

use super::Failure;
use crate::field::FieldError;
use crate::reasons::ErrorReason;

impl From<&Refusal> for Failure {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Invalid { field, problem } => FieldError::new(*field, problem.as_str()).into(),
            Refusal::Conflict { state } => {
                let message = format!("the id was used before with other content; it is {}", state.as_str());
                let mut failure = Failure::new(ErrorReason::Conflict, message);
                failure.facts.state = Some(*state);
                failure
            }
            Refusal::WrongState { state } => {
                let message = format!("the reservation is {}", state.as_str());
                let mut failure = Failure::new(ErrorReason::WrongState, message);
                failure.facts.state = Some(*state);
                failure
            }
            Refusal::NotFound => {
                Failure::new(ErrorReason::NotFound, "no such reservation, or it ended and has been forgotten")
            }
            Refusal::IdTooOld { floor_ms } => {
                let message = format!(
                    "the id is not known, and its time is before the floor of {floor_ms} ms since 1970"
                );
                Failure::new(ErrorReason::IdTooOld, message).with_metadata("floor_ms", floor_ms)
            }
            Refusal::IdInFuture { latest_ms } => {
                let message = format!("the id's time is in the future: after {latest_ms} ms since 1970");
                Failure::new(ErrorReason::IdInFuture, message).with_metadata("latest_ms", latest_ms)
            }
            Refusal::GenerationMismatch { generation } => {
                let message = format!("generation {generation} is in force");
                let failure = Failure::new(ErrorReason::GenerationMismatch, message);
                failure.with_metadata("generation", generation)
            }
            Refusal::Destructive { losses } => destructive(losses),
            Refusal::AdjustmentConflict => {
                Failure::new(ErrorReason::Conflict, "the id was used before for another adjustment")
            }
            Refusal::EpochClosed { running_start_ms } => {
                let running = running_start_ms.map_or("continuous".to_owned(), |start| start.to_string());
                let message = format!("that accounting epoch is not the running one, which is {running}");
                Failure::new(ErrorReason::EpochClosed, message).with_metadata("running_epoch", running)
            }
            Refusal::Overloaded { ceiling } => Failure::overloaded(ceiling),
            Refusal::Rejected(rejection) => rejection.into(),
        }
    }
}

/// What a plan would destroy, limit by limit, and what may be done about it.
fn destructive(losses: &[LimitLoss]) -> Failure {
    let of_limit = |loss: &LimitLoss| FieldError::new(format!("limits.{}", loss.limit), loss.to_string());
    let named = Failure::invalid(losses.iter().map(of_limit).collect());
    let way = match losses.iter().all(|loss| loss.change.is_forceable()) {
        true => "it has to be forced",
        false => "it cannot be forced",
    };
    let message = format!("{way}; {}", named.message);
    Failure { reason: ErrorReason::Destructive, message, facts: named.facts }
}

impl From<&Rejection> for Failure {
    fn from(rejection: &Rejection) -> Self {
        let Rejection { limit, level, unit, reason, .. } = rejection;
        let message = format!("limit {limit} ({unit}, {}): {}", level.as_str(), reason.as_str());
        let mut failure = Failure::new(error_reason(*reason), message);
        failure.facts.retry_after_ms = rejection.retry_after_ms;
        failure.facts.rejection = Some(rejection.clone());
        failure
    }
}

/// The table's reason for a limit's.
pub(super) fn error_reason(reason: Reason) -> ErrorReason {
    match reason {
        Reason::Frozen => ErrorReason::RejectedFrozen,
        Reason::NeverFits => ErrorReason::RejectedNeverFits,
        Reason::Debt => ErrorReason::RejectedDebt,
        Reason::Held => ErrorReason::RejectedHeld,
        Reason::Spent => ErrorReason::RejectedSpent,
    }
}

/// The limit's reason for the table's, where it is a rejection.
pub(super) fn rejection_reason(reason: ErrorReason) -> Option<Reason> {
    [Reason::Frozen, Reason::NeverFits, Reason::Debt, Reason::Held, Reason::Spent]
        .into_iter()
        .find(|candidate| error_reason(*candidate) == reason)
}
