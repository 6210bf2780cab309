//! One call and its attempts.
//!
//! What makes this more than a loop: an attempt that was not answered may still be done, so
//! whatever a later attempt says is not the outcome of the call. A reserve that is refused
//! while an earlier attempt is unanswered therefore releases its id, which leaves a tombstone that the
//! earlier attempt will find, before it reports the refusal.

use holdfast_proto::{ErrorReason, Failure, LeaderHint};

use super::Backoff;
use crate::limits::REDIRECTS_AT_ONCE_MAX;

/// What may be done about an attempt that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A reserve: repeat it with the same id, and close the id before reporting a refusal.
    Reserve,
    /// Start, settle, renew, release, report unknown: repeating it gives the same receipt.
    Repeatable,
    /// A publish or an operator's command: repeating it may mean something else by then.
    Once,
    /// A read: it changes nothing.
    Read,
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It was done; the driver holds the payload.
    Done,
    /// A refusal or an error of the table.
    Failed(Failure),
    /// It was certainly not sent: no connection, no room, or its time was up before.
    NotSent(Failure),
    /// It was sent, and no answer came that anything could be concluded from.
    Lost(String),
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this attempt to the member that is thought to lead.
    Send {
        /// Its number, from 1.
        attempt: u32,
    },
    /// Send a release of the call's id to the member that is thought to lead.
    Close,
    /// Pause so many ms, then ask [`Call::resume`].
    Pause {
        /// How long.
        ms: u64,
    },
    /// The call is over.
    End(Verdict),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done: the payload of the last reply is the answer.
    Done,
    /// A decision against it, by the book or by the member's access rules. Nothing was changed.
    Rejected(Failure),
    /// The call makes no sense. Nothing was changed.
    Invalid(Failure),
    /// Certainly no effect: no attempt was or will be done.
    Unavailable(Failure),
    /// It may have been done, or may still be.
    Unknown(String),
}

/// What the driver has to tell the routes after a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The member works.
    Keep,
    /// Another one leads.
    Leader(LeaderHint),
    /// Try another member.
    Leave,
}

/// The state of one call.
#[derive(Clone, Debug)]
pub struct Call {
    kind: Kind,
    deadline_ms: u64,
    /// Attempts sent or meant to be sent so far.
    attempt: u32,
    /// Whether an attempt may have been done, or may still be.
    unanswered: bool,
    /// The refusal that will be reported once the id is closed.
    closing: Option<Failure>,
    redirects: u32,
    backoff: Backoff,
}

impl Call {
    /// A call that must have ended at `deadline_ms`, on the clock of all `now_ms`.
    pub fn new(kind: Kind, deadline_ms: u64) -> Self {
        Call {
            kind,
            deadline_ms,
            attempt: 0,
            unanswered: false,
            closing: None,
            redirects: 0,
            backoff: Backoff::default(),
        }
    }

    /// A call that goes on where an unknown one ended: `attempts` were made and may still be done.
    pub fn resumed(kind: Kind, deadline_ms: u64, attempts: u32) -> Self {
        Call { attempt: attempts, unanswered: attempts > 0, ..Call::new(kind, deadline_ms) }
    }

    /// The first step, and the one after each pause.
    pub fn resume(&mut self, now_ms: u64) -> Step {
        if now_ms >= self.deadline_ms {
            return self.give_up(Failure::new(ErrorReason::DroppedLate, "the deadline has passed"));
        }
        match self.closing {
            Some(_) => Step::Close,
            None => {
                self.attempt = self.attempt.saturating_add(1);
                Step::Send { attempt: self.attempt }
            }
        }
    }

    /// Attempts made so far.
    pub fn attempts(&self) -> u32 {
        self.attempt
    }

    /// The step after an attempt, or after a release where [`Step::Close`] asked for one.
    pub fn on_reply(&mut self, now_ms: u64, reply: Reply, random: u64) -> Step {
        match reply {
            Reply::Done => self.on_done(),
            Reply::NotSent(failure) => self.try_again(now_ms, failure, random),
            Reply::Lost(why) => self.on_lost(now_ms, why, random),
            Reply::Failed(failure) if !failure.reason.has_no_side_effects() => {
                self.on_lost(now_ms, failure.to_string(), random)
            }
            Reply::Failed(failure) if failure.reason.is_retryable() => {
                self.try_again(now_ms, failure, random)
            }
            Reply::Failed(failure) => self.on_refusal(failure),
        }
    }

    fn on_done(&mut self) -> Step {
        Step::End(match self.closing.take() {
            None => Verdict::Done,
            // The id is closed: no earlier attempt can hold anything any more.
            Some(refusal) => refused(refusal),
        })
    }

    fn on_lost(&mut self, now_ms: u64, why: String, random: u64) -> Step {
        match self.kind {
            Kind::Read => {}
            Kind::Once => return Step::End(Verdict::Unknown(why)),
            Kind::Reserve | Kind::Repeatable => self.unanswered = true,
        }
        self.try_again(now_ms, Failure::new(ErrorReason::OutcomeUnknown, why), random)
    }

    fn on_refusal(&mut self, failure: Failure) -> Step {
        match self.closing.take() {
            // The id has ended some other way, or was never there and never can be: closed all the same.
            Some(refusal) if closes(&failure) => Step::End(refused(refusal)),
            Some(_) => Step::End(Verdict::Unknown(format!("the id could not be closed: {failure}"))),
            None if self.kind == Kind::Reserve && self.unanswered && !is_final(&failure) => {
                self.closing = Some(failure);
                self.redirects = 0;
                Step::Close
            }
            None => Step::End(refused(failure)),
        }
    }

    fn try_again(&mut self, now_ms: u64, failure: Failure, random: u64) -> Step {
        let redirected = failure.reason == ErrorReason::NotLeader;
        if redirected && self.redirects < REDIRECTS_AT_ONCE_MAX {
            self.redirects += 1;
            return self.resume(now_ms);
        }
        let mut ms = self.backoff.next_ms(random);
        if let Some(retry_after_ms) = failure.facts.retry_after_ms {
            ms = ms.max(retry_after_ms);
        }
        if now_ms.saturating_add(ms) >= self.deadline_ms {
            return self.give_up(failure);
        }
        Step::Pause { ms }
    }

    /// Out of time, with the last failure seen.
    fn give_up(&mut self, last: Failure) -> Step {
        Step::End(match self.unanswered {
            false => Verdict::Unavailable(certain(last)),
            true => Verdict::Unknown(last.to_string()),
        })
    }
}

/// A failure that is reported as certainly without effect has a reason that says so. A read's lost
/// answer has no effect although the table, which does not know of reads, cannot say it.
fn certain(failure: Failure) -> Failure {
    match failure.reason.has_no_side_effects() {
        true => failure,
        false => Failure { reason: ErrorReason::NoQuorum, ..failure },
    }
}

/// Whether a refused reserve says that no earlier attempt with the id can be admitted any more, or
/// that the id belongs to something else.
fn is_final(failure: &Failure) -> bool {
    matches!(
        failure.reason,
        // Other content under the id; an ended id; an id below a floor that never falls.
        ErrorReason::Conflict | ErrorReason::WrongState | ErrorReason::IdTooOld
    )
}

/// Whether a refused release says that the id holds nothing and never will.
fn closes(failure: &Failure) -> bool {
    use holdfast_proto::ledger::answer::State;
    match failure.reason {
        ErrorReason::IdTooOld => true,
        ErrorReason::WrongState => failure.facts.state.is_some_and(|state: State| !state.is_open()),
        _ => false,
    }
}

fn refused(failure: Failure) -> Verdict {
    match failure.reason {
        ErrorReason::Invalid | ErrorReason::Unsupported => Verdict::Invalid(failure),
        _ => Verdict::Rejected(failure),
    }
}

/// What a reply says of the member that gave it.
pub fn advice(reply: &Reply) -> Advice {
    match reply {
        Reply::Done => Advice::Keep,
        Reply::Lost(_) => Advice::Leave,
        Reply::NotSent(failure) | Reply::Failed(failure) => match failure.reason {
            ErrorReason::NotLeader => match &failure.facts.leader {
                Some(leader) => Advice::Leader(leader.clone()),
                None => Advice::Leave,
            },
            ErrorReason::NoLeader
            | ErrorReason::NoQuorum
            | ErrorReason::Unreachable
            | ErrorReason::ClockOutOfBounds
            | ErrorReason::ShuttingDown
            | ErrorReason::TimedOut
            | ErrorReason::OutcomeUnknown
            | ErrorReason::WrongIdentity
            | ErrorReason::NodeFailed => Advice::Leave,
            _ => Advice::Keep,
        },
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
