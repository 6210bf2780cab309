//! How a call can end badly. The variants are what a caller must tell apart; never merge them.

use holdfast_proto::ledger::answer::Rejection;
use holdfast_proto::ledger::{Command, ReservationId};
use holdfast_proto::{ErrorReason, Failure, FieldError};

use crate::core::Verdict;

/// Why a call did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// A decision against it: a limit, the reservation's state, access rules. Nothing was changed.
    #[error("rejected: {0}")]
    Rejected(Failure),
    /// The call makes no sense; the failure names each field with its problem. Nothing was changed.
    #[error("invalid: {0}")]
    Invalid(Failure),
    /// The cluster could not be asked in time. Certainly no effect: nothing was or will be done.
    #[error("unavailable, certainly without effect: {0}")]
    Unavailable(Failure),
    /// It may have been done, or may still be. Ask with [`Client::resolve`](crate::Client::resolve),
    /// or release the id; never take a new id for it.
    #[error("outcome unknown: {0}")]
    Unknown(Box<Unknown>),
}

impl CallError {
    /// The reason of the table of errors; `None` when the outcome is unknown.
    pub fn reason(&self) -> Option<ErrorReason> {
        self.failure().map(|failure| failure.reason)
    }

    /// The failure with its facts; `None` when the outcome is unknown.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            CallError::Rejected(failure) | CallError::Invalid(failure) | CallError::Unavailable(failure) => {
                Some(failure)
            }
            CallError::Unknown(_) => None,
        }
    }

    /// The limit that said no, where one did.
    pub fn rejection(&self) -> Option<&Rejection> {
        self.failure().and_then(|failure| failure.facts.rejection.as_ref())
    }
}

impl From<FieldError> for CallError {
    fn from(error: FieldError) -> Self {
        CallError::Invalid(error.into())
    }
}

/// A call whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unknown {
    /// The command, to be repeated or released by its id; `None` for publishes and the like,
    /// which are looked up by what they would have changed.
    pub command: Option<Command>,
    /// Attempts that were made.
    pub attempts: u32,
    /// What was last heard.
    pub why: String,
}

impl Unknown {
    /// The reservation that the command is about.
    pub fn id(&self) -> Option<ReservationId> {
        self.command.as_ref().and_then(Command::reservation)
    }
}

/// The caller's view of a verdict; `None` when it was done.
pub(crate) fn failed(verdict: Verdict, command: Option<&Command>, attempts: u32) -> Option<CallError> {
    match verdict {
        Verdict::Done => None,
        Verdict::Rejected(failure) => Some(CallError::Rejected(failure)),
        Verdict::Invalid(failure) => Some(CallError::Invalid(failure)),
        Verdict::Unavailable(failure) => Some(CallError::Unavailable(failure)),
        Verdict::Unknown(why) => {
            let unknown = Unknown { command: command.cloned(), attempts, why };
            Some(CallError::Unknown(Box::new(unknown)))
        }
    }
}
