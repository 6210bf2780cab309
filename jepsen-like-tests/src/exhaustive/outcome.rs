//! How steps ended, in words.

use holdfast_ledger::Answer;
use holdfast_ledger::answer::{Reason, Refusal, State};

/// What a step was answered. Admissions say `reserved`; everything that is answered with the receipt of
/// something older says its state.
pub(super) fn word(answer: &Answer, revision: u64) -> &'static str {
    match answer {
        Answer::Reservation(receipt) if receipt.reserved_revision == revision => "reserved",
        Answer::Reservation(receipt) => receipt.state.as_str(),
        Answer::Tombstone { .. } => "tombstone",
        Answer::Published { changed: true, .. } => "published",
        Answer::Published { changed: false, .. } => "unchanged",
        Answer::Unfrozen { changed: true } => "unfrozen",
        Answer::Unfrozen { changed: false } => "not frozen",
        Answer::Frozen { changed: true } => "frozen by hand",
        Answer::Frozen { changed: false } => "was frozen",
        Answer::Adjusted(_) => "adjusted",
        Answer::Webhook { .. } => "webhook",
        Answer::Ticked { .. } => "ticked",
        Answer::Rules { .. } => "rules",
        Answer::Refused(refusal) => refused(refusal),
    }
}

fn refused(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid { .. } => "invalid",
        Refusal::Conflict { .. } => "conflict",
        Refusal::WrongState { state } => match state {
            State::Reserved => "not while RESERVED",
            State::Started => "not while STARTED",
            State::Expiring => "not while EXPIRING",
            State::Expired => "not while EXPIRED",
            State::Released => "not while RELEASED",
            State::UsageUnknown => "not while USAGE_UNKNOWN",
            State::Settled => "not while SETTLED",
            State::SettledWithDebt => "not while SETTLED_WITH_DEBT",
        },
        Refusal::NotFound => "not found",
        Refusal::IdTooOld { .. } => "too old",
        Refusal::IdInFuture { .. } => "in the future",
        Refusal::GenerationMismatch { .. } => "another generation",
        Refusal::Destructive { .. } => "destructive",
        Refusal::AdjustmentConflict => "another adjustment",
        Refusal::EpochClosed { .. } => "epoch closed",
        Refusal::Overloaded { .. } => "overloaded",
        Refusal::Rejected(rejection) => match rejection.reason {
            Reason::Frozen => "frozen",
            Reason::NeverFits => "never fits",
            Reason::Debt => "debt",
            Reason::Held => "held",
            Reason::Spent => "spent",
        },
    }
}

/// How every step of one order ended, by client and step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outcomes(pub(super) Vec<Vec<&'static str>>);

impl Outcomes {
    /// The outcome of a client's step, both from 0; empty before it was taken.
    pub fn at(&self, client: usize, step: usize) -> &'static str {
        self.0.get(client).and_then(|steps| steps.get(step)).copied().unwrap_or("")
    }

    /// How many steps ended so.
    pub fn count(&self, outcome: &str) -> usize {
        self.0.iter().flatten().filter(|known| **known == outcome).count()
    }
}
