//! A failed call: its reason and facts, the same whether it travels as a gRPC
//! status ([`Failure::to_status`]) or inside a stream ([`v1::Failure`](crate::v1::Failure)).

mod message;
mod refusal;
mod status;

use std::collections::BTreeMap;
use std::fmt;

use holdfast_ledger::answer::{Rejection, State};

use crate::field::FieldError;
use crate::limits::MESSAGE_TEXT_BYTES_MAX;
use crate::reasons::ErrorReason;

/// Why a call failed. Cheap to move: the facts stand behind a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason; what it means and what may be concluded stands in its table.
    pub reason: ErrorReason,
    /// For people.
    pub message: String,
    /// Typed facts that go with the reason.
    pub facts: Box<Facts>,
}

/// The typed facts of a failure. Absent ones do not apply or are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The book's revision when it was decided; `None` when the book was not asked.
    pub revision: Option<u64>,
    /// It was refused from applied state, without a log entry, for this instant, ms: then the revision is that of
    /// the last command applied.
    pub unlogged_at_ms: Option<u64>,
    /// How long to wait before trying again, ms; `None` when waiting does not help or nobody can say.
    pub retry_after_ms: Option<u64>,
    /// `REJECTED_*`: the limit and why.
    pub rejection: Option<Rejection>,
    /// `CONFLICT`, `WRONG_STATE`: the state of what stands under the id.
    pub state: Option<State>,
    /// `INVALID`: every field that is wrong.
    pub violations: Vec<FieldError>,
    /// `NOT_LEADER`: who leads.
    pub leader: Option<LeaderHint>,
    /// Other facts by name: `floor_ms`, `latest_ms`, `generation`, `ceiling`, …
    pub metadata: BTreeMap<String, String>,
}

/// Who leads, as far as a member knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaderHint {
    /// Its node id.
    pub node_id: u64,
    /// Its client address, `host:port`.
    pub address: String,
}

impl Failure {
    /// A failure without facts.
    pub fn new(reason: ErrorReason, message: impl Into<String>) -> Self {
        Failure { reason, message: message.into(), facts: Box::default() }
    }

    /// Several fields are wrong. Names each with its problem, in the message as many as fit.
    pub fn invalid(violations: Vec<FieldError>) -> Self {
        let mut failure = Failure::new(ErrorReason::Invalid, summary(&violations));
        failure.facts.violations = violations;
        failure
    }

    /// This member does not lead; with the leader where it is known.
    pub fn not_leader(leader: Option<LeaderHint>) -> Self {
        match leader {
            None => Failure::new(ErrorReason::NoLeader, "no member leads at the moment"),
            Some(leader) => {
                let message = format!("node {} at {} leads", leader.node_id, leader.address);
                let mut failure = Failure::new(ErrorReason::NotLeader, message);
                failure.facts.leader = Some(leader);
                failure
            }
        }
    }

    /// A queue or ceiling is full. Names it.
    pub fn overloaded(ceiling: &str) -> Self {
        let failure = Failure::new(ErrorReason::Overloaded, format!("{ceiling} is full"));
        failure.with_retry_after(crate::limits::OVERLOADED_RETRY_MS).with_metadata("ceiling", ceiling)
    }

    /// With the book's revision.
    #[must_use]
    pub fn at_revision(mut self, revision: u64) -> Self {
        self.facts.revision = Some(revision);
        self
    }

    /// Refused from applied state for an instant, without a log entry.
    #[must_use]
    pub fn unlogged_at(mut self, at_ms: u64) -> Self {
        self.facts.unlogged_at_ms = Some(at_ms);
        self
    }

    /// With a pause, ms, after which another try may succeed.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after_ms: u64) -> Self {
        self.facts.retry_after_ms = Some(retry_after_ms);
        self
    }

    /// With one more named fact.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.facts.metadata.insert(key.to_owned(), value.to_string());
        self
    }
}

/// The problems in one line, and how many more there are.
fn summary(violations: &[FieldError]) -> String {
    let mut text = String::new();
    for (shown, violation) in violations.iter().enumerate() {
        let violation = violation.to_string();
        if shown > 0 && text.len() + violation.len() > MESSAGE_TEXT_BYTES_MAX {
            text.push_str(&format!("; and {} more", violations.len() - shown));
            break;
        }
        text.push_str(if shown > 0 { "; " } else { "" });
        text.push_str(&violation);
    }
    text
}

impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Failure::invalid(vec![error])
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

impl std::error::Error for Failure {}
