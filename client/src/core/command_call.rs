//! One command of the ledger service on its way to an answer: what each attempt sends, and what its
//! caller is told in the end.

use std::borrow::Cow;

use holdfast_proto::answers::Decided;
use holdfast_proto::ledger::Command;
use holdfast_proto::ledger::command::Release;

use super::{Call, Kind, Reply, Step};
use crate::error::{CallError, failed};

/// What the driver does next.
#[derive(Clone, Debug)]
pub enum Next {
    /// Send [`CommandCall::outgoing`] to the member that is thought to lead.
    Send,
    /// Pause so many ms, then ask [`CommandCall::resume`].
    Pause {
        /// How long.
        ms: u64,
    },
    /// The call is over.
    End(Box<Result<Decided, CallError>>),
}

/// A command and its [`Call`].
#[derive(Clone, Debug)]
pub struct CommandCall {
    /// A reserve carries the number of the latest attempt.
    command: Command,
    call: Call,
    closes: bool,
}

impl CommandCall {
    /// A call that must have ended at `deadline_ms`; `attempts` were made before and may still be done.
    pub fn new(command: Command, deadline_ms: u64, attempts: u32) -> Self {
        let kind = match &command {
            Command::Reserve(_) => Kind::Reserve,
            _ => Kind::Repeatable,
        };
        CommandCall { command, call: Call::resumed(kind, deadline_ms, attempts), closes: false }
    }

    /// The first step, and the one after each pause.
    pub fn resume(&mut self, now_ms: u64) -> Next {
        let step = self.call.resume(now_ms);
        self.next(step, None)
    }

    /// The step after an attempt; `decided` is the payload of a reply that says done.
    pub fn on_reply(&mut self, now_ms: u64, reply: Reply, decided: Option<Decided>, random: u64) -> Next {
        let step = self.call.on_reply(now_ms, reply, random);
        self.next(step, decided)
    }

    /// What is to be sent: the command, or the release that closes its id.
    pub fn outgoing(&self) -> Cow<'_, Command> {
        match self.command.reservation().filter(|_| self.closes) {
            Some(id) => Cow::Owned(Command::Release(Release { id })),
            None => Cow::Borrowed(&self.command),
        }
    }

    /// The command.
    pub fn command(&self) -> &Command {
        &self.command
    }

    fn next(&mut self, step: Step, decided: Option<Decided>) -> Next {
        match step {
            Step::Send { attempt } => {
                if let Command::Reserve(reserve) = &mut self.command {
                    reserve.attempt = attempt;
                }
                Next::Send
            }
            Step::Close => {
                self.closes = true;
                Next::Send
            }
            Step::Pause { ms } => Next::Pause { ms },
            Step::End(verdict) => {
                let error = failed(verdict, Some(&self.command), self.call.attempts());
                Next::End(Box::new(match (error, decided) {
                    (Some(error), _) => Err(error),
                    (None, Some(decided)) => Ok(decided),
                    (None, None) => Err(self.unreadable()),
                }))
            }
        }
    }

    /// It was done, and the driver cannot say how.
    fn unreadable(&self) -> CallError {
        CallError::Unknown(Box::new(crate::error::Unknown {
            command: Some(self.command.clone()),
            attempts: self.call.attempts(),
            why: "it was answered, and the answer was lost".to_owned(),
        }))
    }
}
