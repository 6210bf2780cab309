//! Proposing: many callers' commands in one log entry, several entries under way, no timer.
//!
//! A caller hands over one or more commands with a deadline. The batcher drains whatever waits into one
//! entry, stamps it, and goes on as soon as fewer than the allowed number of entries are under way: under
//! load the entries grow by themselves, and an idle cluster answers at once.
//!
//! What an error means is decided by one moment: before the entry is handed to Raft nothing has happened
//! (refused, late, not the leader: certainly no effect); afterwards everything but an answer is *unknown*.

mod batcher;
mod bounds;
mod encode;
mod queue;
mod refuse;

use std::fmt;

use holdfast_ledger::Answer;

use crate::clock::ClockFault;

pub(crate) use batcher::Batcher;
pub(crate) use queue::{Proposer, Waiting};
pub use refuse::Refused;

/// The answers to one proposal's commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Log index of the entry that they stand in.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// The book's revision after the first command; each further one has the next.
    pub first_revision: u64,
    /// The book's clock after the entry, ms.
    pub clock_ms: u64,
    /// One answer for each command, in order.
    pub answers: Vec<Answer>,
}

/// What became of commands of which some may have been refused without a log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The refusals that no entry stands behind, by the places of their commands.
    pub refused: Vec<(usize, Refused)>,
    /// What became of the others, in their order; `None`: there were none.
    pub proposed: Option<Result<Answered, ProposeError>>,
}

/// Who leads, as far as this node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderAt {
    /// Its node id.
    pub node_id: u64,
    /// Its client address; empty: unknown.
    pub client_address: String,
}

/// Why a proposal got no answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposeError {
    /// Certainly no effect: another node leads, or none is known to.
    NotLeader(Option<LeaderAt>),
    /// Certainly no effect: a command makes no sense.
    Invalid {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Certainly no effect: too much waits already.
    Overloaded,
    /// Certainly no effect: its deadline passed before it was proposed.
    Late,
    /// Certainly no effect: the leader does not trust its clock and hands leadership over.
    Clock(ClockFault),
    /// Certainly no effect: the node is stopping or has failed.
    Stopping,
    /// It was handed to Raft, and what became of it is not known here: ask by the same id.
    Unknown(UnknownWhy),
}

/// Why an outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownWhy {
    /// The deadline passed while it was under way.
    TimedOut,
    /// Leadership was lost while it was under way.
    LeadershipLost,
    /// The node stopped while it was under way.
    Stopped,
}

impl ProposeError {
    /// Whether nothing has happened and nothing will.
    pub fn has_no_effect(&self) -> bool {
        !matches!(self, ProposeError::Unknown(_))
    }
}

impl fmt::Display for ProposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProposeError::NotLeader(None) => f.write_str("no leader is known"),
            ProposeError::NotLeader(Some(leader)) => {
                write!(f, "node {} at {} leads", leader.node_id, leader.client_address)
            }
            ProposeError::Invalid { field, problem } => write!(f, "{field} {problem}"),
            ProposeError::Overloaded => f.write_str("too many commands wait"),
            ProposeError::Late => f.write_str("the deadline passed before it was proposed"),
            ProposeError::Clock(fault) => write!(f, "the leader does not stamp: {fault}"),
            ProposeError::Stopping => f.write_str("the node is stopping"),
            ProposeError::Unknown(UnknownWhy::TimedOut) => f.write_str("unknown: no answer in time"),
            ProposeError::Unknown(UnknownWhy::LeadershipLost) => f.write_str("unknown: leadership was lost"),
            ProposeError::Unknown(UnknownWhy::Stopped) => f.write_str("unknown: the node stopped"),
        }
    }
}

impl std::error::Error for ProposeError {}
