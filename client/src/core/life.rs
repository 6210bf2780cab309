//! A request's whole way through a gateway: reserve, start, settle or release, and whatever it takes
//! to know how each of them ended.
//!
//! The driver sends, pauses and tells the time; the program says when its work starts and what it used.
//! A call that ends unknown is repeated under the same id until it is known: that is how a
//! RESERVATION_UNKNOWN is resolved, and why no end is ever forgotten.

use std::borrow::Cow;

use holdfast_proto::answers::{Decided, Done};
use holdfast_proto::ledger::answer::State;
use holdfast_proto::ledger::command::{Release, Reserve};
use holdfast_proto::ledger::ids::OperationId;
use holdfast_proto::ledger::{Amounts, Command, ReservationId, mutants};
use holdfast_proto::{ErrorReason, Failure, FieldError};

use super::{CommandCall, Held, Next, Reply};
use crate::error::CallError;

/// Where a life stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The reserve is under way.
    Reserving,
    /// It is held. The program starts or releases it.
    Held,
    /// The start is under way: the work must not begin yet.
    Starting,
    /// The work may run. The program settles it, or says that it lost sight of it.
    Running,
    /// A settlement or a report of unknown usage is under way.
    Ending,
    /// A release is under way.
    Releasing,
    /// Nothing more is to be done here.
    Over(End),
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A decision against the reserve: nothing is held.
    Refused(Failure),
    /// The reserve had certainly no effect.
    Unavailable(Failure),
    /// The reserve or the start makes no sense.
    Invalid(Failure),
    /// It could not be started any more, and does not run.
    NotStarted(Failure),
    /// It was released, or its id is closed.
    Released,
    /// It was settled.
    Settled,
    /// Its usage was reported as unknown: an operation receipt will end it.
    Unknown,
    /// It has ended, most likely as it was told to, and the book has forgotten how.
    Forgotten,
    /// Its end was refused: somebody else has ended it.
    EndRefused(Failure),
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeStep {
    /// Send [`Life::outgoing`] to the member that is thought to lead.
    Send,
    /// Pause so many ms, then ask [`Life::resume`].
    Pause {
        /// How long.
        ms: u64,
    },
    /// Wait for the program: [`Life::stage`] says for what.
    Idle,
}

/// One request from its reserve to its end.
#[derive(Clone, Debug)]
pub struct Life {
    id: ReservationId,
    stage: Stage,
    call: Option<CommandCall>,
    hold: Option<Held>,
    /// How long each call may take, ms.
    call_ms: u64,
    /// Since when the outcome of the call under way is unknown, ms.
    unknown_since_ms: Option<u64>,
}

impl Life {
    /// Begins with the reserve. Each call may take `call_ms`, at least 1.
    pub fn begin(reserve: Reserve, call_ms: u64, now_ms: u64) -> (Life, LifeStep) {
        let call_ms = call_ms.max(1);
        let id = reserve.id;
        let mut life =
            Life { id, stage: Stage::Reserving, call: None, hold: None, call_ms, unknown_since_ms: None };
        let step = life.call(Command::Reserve(reserve), 0, now_ms);
        (life, step)
    }

    /// Its id.
    pub fn id(&self) -> ReservationId {
        self.id
    }

    /// Where it stands.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// What the last answers said of it; `None` until it is admitted.
    pub fn held(&self) -> Option<&Held> {
        self.hold.as_ref()
    }

    /// Since when the outcome of the call under way has been unknown, ms.
    pub fn unknown_since_ms(&self) -> Option<u64> {
        self.unknown_since_ms
    }

    /// What [`LifeStep::Send`] sends.
    pub fn outgoing(&self) -> Option<Cow<'_, Command>> {
        self.call.as_ref().map(CommandCall::outgoing)
    }

    /// Binds an operation; the work may begin once the stage is [`Stage::Running`].
    ///
    /// # Errors
    /// Nothing is held, or another call is under way.
    pub fn start(&mut self, operation: OperationId, now_ms: u64) -> Result<LifeStep, FieldError> {
        let hold = self.expect(Stage::Held)?;
        let command = hold.start(operation);
        Ok(self.go(Stage::Starting, command, now_ms))
    }

    /// Ends it with what it used.
    ///
    /// # Errors
    /// It does not run, or another call is under way.
    pub fn settle(&mut self, actual: Amounts, now_ms: u64) -> Result<LifeStep, FieldError> {
        let command = self.expect(Stage::Running)?.settle(actual)?;
        Ok(self.go(Stage::Ending, command, now_ms))
    }

    /// Says that the operation was lost sight of.
    ///
    /// # Errors
    /// It does not run, or another call is under way.
    pub fn report_unknown(&mut self, now_ms: u64) -> Result<LifeStep, FieldError> {
        let command = self.expect(Stage::Running)?.report_unknown()?;
        Ok(self.go(Stage::Ending, command, now_ms))
    }

    /// The caller has gone away: what is not started is released, whether or not the reserve was answered.
    /// A start under way and work that runs are left alone, since only the operation knows what it used.
    pub fn abandon(&mut self, now_ms: u64) -> LifeStep {
        match self.stage {
            Stage::Reserving | Stage::Held => {
                self.go(Stage::Releasing, Command::Release(Release { id: self.id }), now_ms)
            }
            _ => LifeStep::Idle,
        }
    }

    /// The step after a pause.
    pub fn resume(&mut self, now_ms: u64) -> LifeStep {
        match self.call.as_mut().map(|call| call.resume(now_ms)) {
            Some(next) => self.follow(next, now_ms),
            None => LifeStep::Idle,
        }
    }

    /// The step after an attempt; `decided` is the payload of a reply that says done.
    pub fn on_reply(&mut self, now_ms: u64, reply: Reply, decided: Option<Decided>, random: u64) -> LifeStep {
        match self.call.as_mut().map(|call| call.on_reply(now_ms, reply, decided, random)) {
            Some(next) => self.follow(next, now_ms),
            None => LifeStep::Idle,
        }
    }

    fn expect(&mut self, stage: Stage) -> Result<&mut Held, FieldError> {
        let problem = format!("is {:?}", self.stage);
        let hold = self.hold.as_mut().filter(|_| self.stage == stage);
        hold.ok_or_else(|| FieldError::new("stage", problem))
    }

    fn go(&mut self, stage: Stage, command: Command, now_ms: u64) -> LifeStep {
        self.stage = stage;
        self.unknown_since_ms = None;
        self.call(command, 0, now_ms)
    }

    fn call(&mut self, command: Command, attempts: u32, now_ms: u64) -> LifeStep {
        let mut call = CommandCall::new(command, now_ms.saturating_add(self.call_ms), attempts);
        let next = call.resume(now_ms);
        self.call = Some(call);
        self.follow(next, now_ms)
    }

    fn follow(&mut self, next: Next, now_ms: u64) -> LifeStep {
        match next {
            Next::Send => LifeStep::Send,
            Next::Pause { ms } => LifeStep::Pause { ms },
            Next::End(ended) => self.on_end(*ended, now_ms),
        }
    }

    fn on_end(&mut self, ended: Result<Decided, CallError>, now_ms: u64) -> LifeStep {
        let Some(call) = self.call.take() else { return LifeStep::Idle };
        let error = match ended {
            Ok(decided) => {
                self.unknown_since_ms = None;
                self.on_done(decided);
                return LifeStep::Idle;
            }
            Err(CallError::Unknown(unknown)) => {
                self.unknown_since_ms.get_or_insert(now_ms);
                let attempts = if mutants::on("resumed-as-new") { 0 } else { unknown.attempts };
                return self.call(call.command().clone(), attempts, now_ms);
            }
            // A start, an end or a release that certainly had no effect is still owed.
            Err(CallError::Unavailable(_))
                if self.stage != Stage::Reserving && !mutants::on("ends-are-given-up") =>
            {
                return self.call(call.command().clone(), 0, now_ms);
            }
            Err(error) => error,
        };
        self.unknown_since_ms = None;
        self.stage = Stage::Over(end_of(&self.stage, error));
        LifeStep::Idle
    }

    fn on_done(&mut self, decided: Decided) {
        self.stage = match (&self.stage, &decided.done) {
            (Stage::Reserving, Done::Receipt(receipt)) => stage_of(receipt.state),
            (Stage::Starting, Done::Receipt(_)) => Stage::Running,
            (Stage::Ending, Done::Receipt(receipt)) if receipt.state == State::UsageUnknown => {
                Stage::Over(End::Unknown)
            }
            (Stage::Ending, Done::Receipt(_)) => Stage::Over(End::Settled),
            _ => Stage::Over(End::Released),
        };
        match (&mut self.hold, decided) {
            (Some(hold), decided) => hold.observe(decided),
            (hold, Decided { revision, done: Done::Receipt(receipt), .. }) => {
                *hold = Some(Held::new(*receipt, revision));
            }
            _ => {}
        }
    }
}

/// How a life ends whose call was refused at a stage.
fn end_of(stage: &Stage, error: CallError) -> End {
    let failure = match error {
        CallError::Invalid(failure) => return End::Invalid(failure),
        CallError::Unavailable(failure) => return End::Unavailable(failure),
        CallError::Rejected(failure) => failure,
        CallError::Unknown(unknown) => Failure::new(ErrorReason::OutcomeUnknown, unknown.why),
    };
    match stage {
        Stage::Reserving => End::Refused(failure),
        Stage::Starting => End::NotStarted(failure),
        // What cannot be released has ended by itself.
        Stage::Releasing => End::Released,
        // What was started is forgotten only after its end (spec §4).
        Stage::Ending if failure.reason == ErrorReason::NotFound => End::Forgotten,
        _ => End::EndRefused(failure),
    }
}

/// Where a life goes on whose reserve was found in this state: an earlier attempt may be long over.
fn stage_of(state: State) -> Stage {
    match state {
        State::Reserved | State::Expiring => Stage::Held,
        State::Started | State::UsageUnknown => Stage::Running,
        State::Released | State::Expired => Stage::Over(End::Released),
        State::Settled | State::SettledWithDebt => Stage::Over(End::Settled),
    }
}

#[cfg(test)]
#[path = "life_tests.rs"]
mod tests;
