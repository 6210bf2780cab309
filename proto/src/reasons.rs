//! The table of error codes: what every reason means, and what may be concluded from it.
//!
//! docs/errors.md carries the same table; a test compares them.

use std::fmt;
use std::str::FromStr;

use tonic::Code;

/// The domain of our `google.rpc.ErrorInfo`. A status without it was made by somebody
/// else (a proxy, a gRPC library) and says nothing about what the cluster did.
pub const ERROR_DOMAIN: &str = "holdfast.v1";

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// Why a call failed. The names are part of the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorReason { $($(#[$doc])* $variant,)* }

        impl ErrorReason {
            /// Every reason, in the table's order.
            pub const ALL: &'static [ErrorReason] = &[$(ErrorReason::$variant,)*];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorReason::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// A field is missing or wrong.
    Invalid = "INVALID",
    /// No credential, or one that is not known.
    Unauthenticated = "UNAUTHENTICATED",
    /// The credential does not allow it.
    Denied = "DENIED",
    /// A limit said no: frozen.
    RejectedFrozen = "REJECTED_FROZEN",
    /// A limit said no: can never fit.
    RejectedNeverFits = "REJECTED_NEVER_FITS",
    /// A limit said no: debt.
    RejectedDebt = "REJECTED_DEBT",
    /// A limit said no: held.
    RejectedHeld = "REJECTED_HELD",
    /// A limit said no: spent.
    RejectedSpent = "REJECTED_SPENT",
    /// The same id with other content.
    Conflict = "CONFLICT",
    /// The reservation's state does not allow it.
    WrongState = "WRONG_STATE",
    /// There is nothing under that name.
    NotFound = "NOT_FOUND",
    /// An unknown id from before the floor.
    IdTooOld = "ID_TOO_OLD",
    /// An unknown id from the future.
    IdInFuture = "ID_IN_FUTURE",
    /// Another generation is in force.
    GenerationMismatch = "GENERATION_MISMATCH",
    /// The plan would destroy what is held or owed.
    Destructive = "DESTRUCTIVE",
    /// The accounting epoch is not the running one.
    EpochClosed = "EPOCH_CLOSED",
    /// Events from before the first one kept.
    EventsGone = "EVENTS_GONE",
    /// A queue or a ceiling is full.
    Overloaded = "OVERLOADED",
    /// Another member leads.
    NotLeader = "NOT_LEADER",
    /// Nobody leads, as far as the member knows.
    NoLeader = "NO_LEADER",
    /// A read found no quorum.
    NoQuorum = "NO_QUORUM",
    /// The client could not reach the member.
    Unreachable = "UNREACHABLE",
    /// The leader does not trust its clock.
    ClockOutOfBounds = "CLOCK_OUT_OF_BOUNDS",
    /// The member is stopping.
    ShuttingDown = "SHUTTING_DOWN",
    /// Dropped before it was proposed.
    DroppedLate = "DROPPED_LATE",
    /// The time was up after it was proposed.
    TimedOut = "TIMED_OUT",
    /// It was proposed, and what became of it is not known here.
    OutcomeUnknown = "OUTCOME_UNKNOWN",
    /// The member is not who the caller means, or the caller not who it says.
    WrongIdentity = "WRONG_IDENTITY",
    /// The member does not know how to do that.
    Unsupported = "UNSUPPORTED",
    /// The member stopped itself.
    NodeFailed = "NODE_FAILED",
}

use ErrorReason::*;

impl ErrorReason {
    /// The gRPC code that goes with it.
    pub fn code(self) -> Code {
        match self {
            Invalid => Code::InvalidArgument,
            Unauthenticated => Code::Unauthenticated,
            Denied => Code::PermissionDenied,
            RejectedFrozen | RejectedNeverFits | RejectedDebt | RejectedHeld | RejectedSpent | Overloaded => {
                Code::ResourceExhausted
            }
            Conflict | WrongState | Destructive | EpochClosed | WrongIdentity => Code::FailedPrecondition,
            NotFound => Code::NotFound,
            IdTooOld | IdInFuture | EventsGone => Code::OutOfRange,
            GenerationMismatch => Code::Aborted,
            NotLeader | NoLeader | NoQuorum | Unreachable | ClockOutOfBounds | ShuttingDown => {
                Code::Unavailable
            }
            DroppedLate | TimedOut => Code::DeadlineExceeded,
            OutcomeUnknown => Code::Unknown,
            Unsupported => Code::Unimplemented,
            NodeFailed => Code::Internal,
        }
    }

    /// Whether a client may repeat the same call by itself, elsewhere or after a pause,
    /// with the same id. False where the answer is a decision or somebody must change something.
    pub fn is_retryable(self) -> bool {
        match self {
            Overloaded | NotLeader | NoLeader | NoQuorum | Unreachable | ClockOutOfBounds | ShuttingDown
            | DroppedLate | TimedOut | OutcomeUnknown | NodeFailed => true,
            Invalid | Unauthenticated | Denied | RejectedFrozen | RejectedNeverFits | RejectedDebt
            | RejectedHeld | RejectedSpent | Conflict | WrongState | NotFound | IdTooOld | IdInFuture
            | GenerationMismatch | Destructive | EpochClosed | EventsGone | WrongIdentity | Unsupported => {
                false
            }
        }
    }

    /// Whether the attempt that was answered so has certainly changed nothing, now or later.
    /// It says nothing of earlier attempts that are still unanswered.
    pub fn has_no_side_effects(self) -> bool {
        match self {
            TimedOut | OutcomeUnknown | NodeFailed => false,
            Invalid | Unauthenticated | Denied | RejectedFrozen | RejectedNeverFits | RejectedDebt
            | RejectedHeld | RejectedSpent | Conflict | WrongState | NotFound | IdTooOld | IdInFuture
            | GenerationMismatch | Destructive | EpochClosed | EventsGone | Overloaded | NotLeader
            | NoLeader | NoQuorum | Unreachable | ClockOutOfBounds | ShuttingDown | DroppedLate
            | WrongIdentity | Unsupported => true,
        }
    }

    /// Whether a `RetryInfo` may come with it (it is left out where nobody can say how long).
    pub fn carries_retry_info(self) -> bool {
        match self {
            RejectedDebt | RejectedHeld | RejectedSpent | Overloaded => true,
            Invalid | Unauthenticated | Denied | RejectedFrozen | RejectedNeverFits | Conflict
            | WrongState | NotFound | IdTooOld | IdInFuture | GenerationMismatch | Destructive
            | EpochClosed | EventsGone | NotLeader | NoLeader | NoQuorum | Unreachable | ClockOutOfBounds
            | ShuttingDown | DroppedLate | TimedOut | OutcomeUnknown | WrongIdentity | Unsupported
            | NodeFailed => false,
        }
    }

    /// One sentence for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Invalid => "A field is missing or malformed; each one is named with its problem.",
            Unauthenticated => "No credential was given, or one that is not known.",
            Denied => "The credential does not allow this call.",
            RejectedFrozen => "The subject and route are frozen until an operator lifts it.",
            RejectedNeverFits => "The request is larger than the limit can ever give.",
            RejectedDebt => "The limit is in debt and admits nothing until that is repaid.",
            RejectedHeld => "Open reservations fill the limit; some of their units will come back.",
            RejectedSpent => "The limit is spent.",
            Conflict => "The same id or operation was used before with other content.",
            WrongState => "The reservation's state, which is named, does not allow it.",
            NotFound => "There is nothing under that name, or it ended and has been forgotten.",
            IdTooOld => "The reservation id is not known and lies before the book's floor, which is given.",
            IdInFuture => "The reservation id lies further ahead of the book's clock than is allowed.",
            GenerationMismatch => "Another policy generation than the expected one is in force.",
            Destructive => {
                "The plan would cut limits off that something is held on or owed to; each is named with what it would lose."
            }
            EpochClosed => {
                "The accounting epoch that is meant is not the running one; its accounts are final."
            }
            EventsGone => "Events from before the first one kept are asked for; its number is given.",
            Overloaded => "A queue or a configured ceiling, which is named, is full.",
            NotLeader => "Another member leads; its address is given if it is known.",
            NoLeader => "No member leads at the moment, as far as this one knows.",
            Unreachable => {
                "The member could not be reached, so that nothing was sent; made by the client itself."
            }
            NoQuorum => "A linearizable read found no quorum to confirm that this member leads.",
            ClockOutOfBounds => "The leader's clock is out of bounds, so that it stamps nothing.",
            ShuttingDown => "The member is stopping and takes nothing new.",
            DroppedLate => "The deadline passed before the command was proposed; it was dropped.",
            TimedOut => "The deadline passed after the command was proposed: it may still be done.",
            OutcomeUnknown => "The command was proposed, and what became of it is not known here.",
            WrongIdentity => "The cluster, node or disk identity is not the expected one.",
            Unsupported => "This member does not know how to do that.",
            NodeFailed => "The member is stopping itself after a fatal error.",
        }
    }

    /// The table as docs/errors.md has it: a row for each reason.
    pub fn markdown_table() -> String {
        let mut table = String::from(
            "| reason | gRPC code | retryable | certainly no effect | RetryInfo | meaning |\n\
             | --- | --- | --- | --- | --- | --- |\n",
        );
        let word = |yes: bool| if yes { "yes" } else { "no" };
        for reason in ErrorReason::ALL {
            table.push_str(&format!(
                "| `{reason}` | `{:?}` | {} | {} | {} | {} |\n",
                reason.code(),
                word(reason.is_retryable()),
                word(reason.has_no_side_effects()),
                word(reason.carries_retry_info()),
                reason.meaning(),
            ));
        }
        table
    }
}

impl fmt::Display for ErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is no reason of the table (perhaps that of a newer member).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is {0:?}, not a reason of the table")]
pub struct UnknownReason(pub String);

impl FromStr for ErrorReason {
    type Err = UnknownReason;
    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        let found = ErrorReason::ALL.iter().copied().find(|reason| reason.as_str() == text);
        found.ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        for reason in ErrorReason::ALL {
            assert_eq!(reason.as_str().parse::<ErrorReason>().unwrap(), *reason);
        }
        assert!("SOMETHING_NEW".parse::<ErrorReason>().is_err());
    }

    #[test]
    fn an_unknown_outcome_is_never_a_decision() {
        for reason in ErrorReason::ALL {
            assert!(reason.has_no_side_effects() || reason.is_retryable(), "{reason} could not be resolved");
        }
    }
}
