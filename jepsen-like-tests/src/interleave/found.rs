//! What a world may be found to have broken.

use std::fmt;

/// The kinds of violation, as they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The book's own assertion stopped it.
    Assertion,
    /// Balances differ from what was granted, held and spent.
    Conservation,
    /// More was admitted than the limits give.
    OverIssue,
    /// Something that fits was refused, or refused for a wrong reason or with a wrong wait.
    WrongRefusal,
    /// A second admission of one id.
    SecondReservation,
    /// One reservation was settled twice, or its settlement changed.
    DoubleSettle,
    /// A state that the rules do not allow, or an answer that does not fit it.
    Lifecycle,
    /// Debt that was lost, or admissions while it lasts.
    ForgottenDebt,
    /// What was unknown did not become known.
    UnknownStays,
    /// A restored book is not the one that was snapshotted.
    Snapshot,
    /// Replicas that applied the same differ.
    Replicas,
    /// A client was told what is not so.
    Told,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 12] = [
        Kind::Assertion,
        Kind::Conservation,
        Kind::OverIssue,
        Kind::WrongRefusal,
        Kind::SecondReservation,
        Kind::DoubleSettle,
        Kind::Lifecycle,
        Kind::ForgottenDebt,
        Kind::UnknownStays,
        Kind::Snapshot,
        Kind::Replicas,
        Kind::Told,
    ];

    /// The word in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Assertion => "book_assertion",
            Kind::Conservation => "conservation",
            Kind::OverIssue => "over_issue",
            Kind::WrongRefusal => "wrong_refusal",
            Kind::SecondReservation => "second_reservation",
            Kind::DoubleSettle => "double_settle",
            Kind::Lifecycle => "lifecycle",
            Kind::ForgottenDebt => "forgotten_debt",
            Kind::UnknownStays => "unknown_stays",
            Kind::Snapshot => "snapshot",
            Kind::Replicas => "replicas",
            Kind::Told => "told",
        }
    }
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Of which kind.
    pub kind: Kind,
    /// What was expected and what was there.
    pub detail: String,
}

impl Found {
    /// A violation of a kind.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Found { kind, detail: detail.into() }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.detail)
    }
}
