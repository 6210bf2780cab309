//! What a program knows of a reservation that it answers for, and which command does what to it.

use holdfast_proto::FieldError;
use holdfast_proto::answers::{Decided, Done};
use holdfast_proto::ledger::answer::{Receipt, State};
use holdfast_proto::ledger::command::{Correct, Release, Renew, ReportUnknown, Settle, Start};
use holdfast_proto::ledger::ids::OperationId;
use holdfast_proto::ledger::{Amounts, Command, ReservationId};

/// A reservation as its last answer showed it.
#[derive(Clone, Debug)]
pub struct Held {
    receipt: Receipt,
    revision: u64,
    operation: Option<OperationId>,
}

/// What is owed to a reservation whose program goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetGo {
    /// Nothing: it has ended.
    Nothing,
    /// Its release: it was not started.
    Release,
    /// Its settlement, which only its operation can give.
    Settlement,
}

impl Held {
    /// From the receipt that admitted it, and the revision of that answer.
    pub fn new(receipt: Receipt, revision: u64) -> Self {
        let operation = receipt.operation.clone();
        Held { receipt, revision, operation }
    }

    /// Its id.
    pub fn id(&self) -> ReservationId {
        self.receipt.id
    }

    /// The last receipt that was seen.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }

    /// The book's revision at the last answer.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Binds an operation. Remembered before the answer: from here on it may be started.
    pub fn start(&mut self, operation: OperationId) -> Command {
        self.operation = Some(operation.clone());
        Command::Start(Start { id: self.id(), operation })
    }

    /// Ends it with what it used.
    pub fn settle(&self, actual: Amounts) -> Result<Command, FieldError> {
        self.settlement(actual, false)
    }

    /// Ends it with what is known of what it used, and what was held of every other unit.
    pub fn settle_estimated(&self, known: Amounts) -> Result<Command, FieldError> {
        self.settlement(known, true)
    }

    /// Puts an estimated settlement right.
    pub fn correct(&self, actual: Amounts) -> Result<Command, FieldError> {
        Ok(Command::Correct(Correct { id: self.id(), operation: self.operation()?, actual }))
    }

    /// Says that the operation was lost sight of.
    pub fn report_unknown(&self) -> Result<Command, FieldError> {
        Ok(Command::ReportUnknown(ReportUnknown { id: self.id(), operation: self.operation()? }))
    }

    /// Ends it unused.
    pub fn release(&self) -> Command {
        Command::Release(Release { id: self.id() })
    }

    /// Extends what runs to `extend_ms` from now on.
    pub fn renew(&self, extend_ms: u64) -> Command {
        Command::Renew(Renew { id: self.id(), extend_ms })
    }

    /// Takes in the answer to one of its commands.
    pub fn observe(&mut self, decided: Decided) {
        self.revision = decided.revision;
        match decided.done {
            Done::Receipt(receipt) => self.receipt = *receipt,
            // It ended, was forgotten, and its id was closed for ever.
            Done::Tombstone(_) => self.receipt.state = State::Released,
        }
    }

    /// What it is owed when its program goes away now.
    pub fn let_go(&self) -> LetGo {
        match (self.receipt.state.is_open(), &self.operation) {
            (false, _) => LetGo::Nothing,
            (true, None) => LetGo::Release,
            (true, Some(_)) => LetGo::Settlement,
        }
    }

    fn settlement(&self, actual: Amounts, estimated: bool) -> Result<Command, FieldError> {
        Ok(Command::Settle(Settle { id: self.id(), operation: self.operation()?, actual, estimated }))
    }

    fn operation(&self) -> Result<OperationId, FieldError> {
        let missing = || FieldError::new("operation", "is missing: the reservation was not started here");
        self.operation.clone().ok_or_else(missing)
    }
}
