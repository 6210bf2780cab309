//! What the clients saw: one [`Operation`] per call, written as JSON lines.
//!
//! A history says nothing about how the cluster works inside. Everything the
//! checkers know beyond it comes from the nodes' applied logs ([`crate::applied`])
//! and their audits, and is used to judge the history, never to mend it.

mod answered;
mod call;
mod file;

pub use answered::{Answered, ExtraFacts, LegFacts, ReceiptFacts, RefusalFacts};
pub use call::{Call, FrozenSubject, Words, amounts_from_words, amounts_to_words};
pub use file::{HistoryError, read_history, write_history};

use serde::{Deserialize, Serialize};

/// How a call ended, as its caller knows it. A time-out is [`Outcome::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Done, and acknowledged with a revision.
    Ok,
    /// Decided against by the book: it has no effect and never will have one.
    Rejected,
    /// Certainly not done: it has no effect and never will have one.
    Unavailable,
    /// May have been done, or may still be.
    Unknown,
}

/// One call by one client, from invocation to return. Times are microseconds on one
/// clock that all clients of the run share; they order calls and mean nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Which client. A client has at most one call open.
    pub client: u32,
    /// The reservation's id, in its text form; empty for calls that concern none.
    pub id: String,
    /// What was asked.
    #[serde(flatten)]
    pub call: Call,
    /// When it was called.
    pub invoked_us: u64,
    /// When it returned; `None` if it never did.
    pub returned_us: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The word for the error, if it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The revision in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The book's digest at that revision, where the answer carried it, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the answer said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
}

impl Operation {
    /// Whether it is a write that was acknowledged: its revision is its own and nobody else's.
    pub fn is_acknowledged_write(&self) -> bool {
        self.outcome == Outcome::Ok && self.call.is_write()
    }

    /// Whether it returned before `other` was called, so that it must be ordered before it.
    pub fn precedes(&self, other: &Operation) -> bool {
        self.returned_us.is_some_and(|returned| returned < other.invoked_us)
    }

    /// The receipt in its answer, if there is one.
    pub fn receipt(&self) -> Option<&ReceiptFacts> {
        match &self.answered {
            Some(Answered::Receipt(receipt)) => Some(receipt),
            _ => None,
        }
    }

    /// The reservation that it turned out to be about: a reserve whose idempotency key was known is
    /// about the one that the key stands for, whatever id it named.
    pub fn about(&self) -> &str {
        self.receipt().map_or(&self.id, |receipt| &receipt.id)
    }

    /// Whether it is a read whose state may come from the reader's clock and not from the book:
    /// a hold that has run out by then, a usage deadline that has passed. A node whose clock is a
    /// little behind may tell an earlier state afterwards.
    pub fn is_ahead_of_the_book(&self) -> bool {
        let by_clock = |receipt: &ReceiptFacts| {
            matches!(receipt.state.as_str(), "EXPIRING" | "EXPIRED" | "USAGE_UNKNOWN")
        };
        !self.call.is_write() && self.receipt().is_some_and(by_clock)
    }

    /// A short name for messages.
    pub fn describe(&self) -> String {
        format!(
            "client {} {} {} called at {} us ({:?}, revision {:?})",
            self.client,
            self.call.word(),
            self.id,
            self.invoked_us,
            self.outcome,
            self.revision
        )
    }
}
