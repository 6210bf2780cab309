//! Calls on the cluster: how the client is made, and what its errors mean here.

use std::time::Duration;

use holdfast_client::{CallError, Client, ErrorReason, Failure as Answered};

use crate::failure::{Failure, Kind, Outcome};
use crate::settings::Settings;
use crate::show::hours_minutes;

/// How long one certain member may take to answer for itself, so that a dead one does not hold up the rest.
const MEMBER_DEADLINE_MAX: Duration = Duration::from_secs(2);

/// A client of the cluster that the settings name. Connects with the first call.
pub fn client(settings: &Settings) -> Outcome<Client> {
    let builder = Client::builder(settings.endpoints()?).deadline(settings.deadline);
    builder.connect_lazy().map_err(|error| failure("endpoints", error))
}

/// The same client, for what is asked of one certain member. Its reads are answered from what that member
/// has applied: its own state is what is asked for.
pub fn at_member(client: &Client, address: &str, deadline: Duration) -> Client {
    client.at(address).with_deadline(deadline.min(MEMBER_DEADLINE_MAX)).with_stale_reads()
}

/// A call's error, with the exit code that belongs to it. `what` is what was tried, on what.
pub fn failure(what: &str, error: CallError) -> Failure {
    match error {
        CallError::Rejected(answered) => of_answer(what, kind_of_decision(answered.reason), &answered),
        CallError::Invalid(answered) => of_answer(what, kind_of_invalid(answered.reason), &answered),
        CallError::Unavailable(answered) => of_answer(what, Kind::Unavailable, &answered),
        CallError::Unknown(unknown) => {
            let failure =
                Failure::new(Kind::Unknown, format!("{what}: the outcome is not known: {}", unknown.why));
            failure.advise("It may have been done: look before you do it again.")
        }
    }
}

fn of_answer(what: &str, kind: Kind, answered: &Answered) -> Failure {
    let failure = Failure::new(kind, format!("{what}: {} ({})", answered.message, answered.reason));
    match advice(kind, answered) {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// A decision is a refusal; that there is nothing under a name is just a failure.
fn kind_of_decision(reason: ErrorReason) -> Kind {
    match reason {
        ErrorReason::NotFound | ErrorReason::WrongIdentity | ErrorReason::Unsupported => Kind::Failed,
        _ => Kind::Refused,
    }
}

/// What makes no sense is the caller's to mend, but for what the member does not know how to do.
fn kind_of_invalid(reason: ErrorReason) -> Kind {
    match reason {
        ErrorReason::Invalid => Kind::Usage,
        other => kind_of_decision(other),
    }
}

fn advice(kind: Kind, answered: &Answered) -> Option<String> {
    if let Some(ms) = answered.facts.retry_after_ms {
        return Some(format!("Try again in {}.", hours_minutes(ms)));
    }
    let advice = match (kind, answered.reason) {
        (_, ErrorReason::DroppedLate) => "Nothing was done: it waited for as long as --deadline allows.",
        (Kind::Unavailable, _) => "Nothing was done. Is the cluster running, and is --endpoints right?",
        (_, ErrorReason::RejectedNeverFits) => "Waiting does not help: ask for less.",
        (_, ErrorReason::RejectedFrozen) => "Waiting does not help: an operator lifts a freeze.",
        (_, ErrorReason::GenerationMismatch) => {
            "Look at what is in force (`holdfast plan diff`) and apply again."
        }
        (_, ErrorReason::Destructive) if answered.message.starts_with("it has to be forced") => {
            "Nothing was changed. `holdfast plan diff` shows it too; --force publishes it all the same."
        }
        (_, ErrorReason::Destructive) => "Nothing was changed. Give the limit a new id.",
        (_, ErrorReason::Conflict) => {
            "Nothing was changed. `holdfast get` shows what stands under the id; something new needs a new id."
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use holdfast_client::Unknown;

    use super::*;

    fn answered(reason: ErrorReason) -> Answered {
        Answered::new(reason, "why")
    }

    #[test]
    fn exit_codes_tell_the_kinds_of_error_apart() {
        let code = |error| failure("x", error).kind.code();
        assert_eq!(code(CallError::Invalid(answered(ErrorReason::Invalid))), 2);
        assert_eq!(code(CallError::Invalid(answered(ErrorReason::Unsupported))), 1);
        assert_eq!(code(CallError::Rejected(answered(ErrorReason::RejectedSpent))), 3);
        assert_eq!(code(CallError::Rejected(answered(ErrorReason::GenerationMismatch))), 3);
        assert_eq!(code(CallError::Rejected(answered(ErrorReason::NotFound))), 1);
        assert_eq!(code(CallError::Unavailable(answered(ErrorReason::NoLeader))), 4);
        let unknown = Unknown { command: None, attempts: 1, why: "lost".into() };
        assert_eq!(code(CallError::Unknown(Box::new(unknown))), 5);
    }

    #[test]
    fn a_pause_that_helps_is_told() {
        let failure =
            failure("x", CallError::Rejected(answered(ErrorReason::RejectedSpent).with_retry_after(1_500)));
        assert_eq!(failure.to_string(), "holdfast: x: why (REJECTED_SPENT)\nTry again in 1.5 s.");
    }
}
