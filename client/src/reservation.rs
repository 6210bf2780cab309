//! The guard of one reservation.

use std::time::Duration;

use holdfast_proto::ledger::answer::{Receipt, State, Tier};
use holdfast_proto::ledger::ids::OperationId;
use holdfast_proto::ledger::shadow::ShadowDecision;
use holdfast_proto::ledger::{Amounts, Command, ReservationId};

use crate::client::{Client, as_ms};
use crate::core::{Held, LetGo};
use crate::error::CallError;
use crate::request::name;

/// A reservation that this program answers for.
///
/// It ends by [`settle`](Reservation::settle), [`release`](Reservation::release) or
/// [`report_unknown`](Reservation::report_unknown). Every call may be repeated after an error: the
/// same content gives the same receipt.
///
/// # Dropping it
/// A reservation that was not started is released in the background, best effort: if the client has
/// no room or the process ends first, its hold TTL ends it in the ledger. A started one is *not*
/// touched, since only its operation knows what it used; a warning is traced, and its usage deadline
/// makes it USAGE_UNKNOWN with its units still held. [`Reservation::detach`] gives up the guard on purpose.
#[derive(Debug)]
pub struct Reservation {
    client: Client,
    hold: Held,
    /// Whether dropping it needs nothing.
    let_go: bool,
}

impl Reservation {
    pub(crate) fn new(client: Client, receipt: Receipt, revision: u64) -> Self {
        Reservation { client, hold: Held::new(receipt, revision), let_go: false }
    }

    /// Its id.
    pub fn id(&self) -> ReservationId {
        self.hold.id()
    }

    /// The last receipt that was seen.
    pub fn receipt(&self) -> &Receipt {
        self.hold.receipt()
    }

    /// The book's revision at the last answer.
    pub fn revision(&self) -> u64 {
        self.hold.revision()
    }

    /// The state in the last receipt.
    pub fn state(&self) -> State {
        self.receipt().state
    }

    /// The tier at admission: what the caller is asked to make do with.
    pub fn tier(&self) -> Tier {
        self.receipt().tier
    }

    /// What the shadow lane decided, if it was admitted there: what would have become of it if its route were enforced.
    pub fn shadow(&self) -> Option<&ShadowDecision> {
        self.receipt().shadow.as_deref()
    }

    /// Binds an operation and lets it run: RESERVED → STARTED. To be called before the work begins.
    ///
    /// # Errors
    /// *Rejected* with WRONG_STATE when the hold has ended, with CONFLICT when another operation was bound.
    pub async fn start(&mut self, operation: impl AsRef<str>) -> Result<&Receipt, CallError> {
        let operation: OperationId = name("operation", operation.as_ref())?;
        let command = self.hold.start(operation);
        self.submit(command).await
    }

    /// Ends it with what it used. Unused amounts come back; an overrun is booked in full.
    ///
    /// A unit that was held and is absent settles at the held amount for `requests` and at 0 for the others.
    pub async fn settle(&mut self, actual: Amounts) -> Result<&Receipt, CallError> {
        let command = self.hold.settle(actual)?;
        self.submit(command).await
    }

    /// Ends it when the execution has ended and its usage was not reported: with what is known, and what was
    /// held of every other unit. [`Reservation::correct`] may put it right within the route's correction window.
    pub async fn settle_estimated(&mut self, known: Amounts) -> Result<&Receipt, CallError> {
        let command = self.hold.settle_estimated(known)?;
        self.submit(command).await
    }

    /// Puts an estimated settlement right, once: what the operation's receipt says it really used. A unit
    /// that is absent stays as it was estimated.
    pub async fn correct(&mut self, actual: Amounts) -> Result<&Receipt, CallError> {
        let command = self.hold.correct(actual)?;
        self.submit(command).await
    }

    /// Says that the operation was lost sight of: its units stay held until an operation receipt ends it.
    pub async fn report_unknown(&mut self) -> Result<&Receipt, CallError> {
        let command = self.hold.report_unknown()?;
        self.submit(command).await
    }

    /// Ends it unused. Only while it was not started.
    pub async fn release(&mut self) -> Result<&Receipt, CallError> {
        self.submit(self.hold.release()).await
    }

    /// Extends the hold TTL, or the usage deadline of a started one, to `extend` from now on.
    pub async fn renew(&mut self, extend: Duration) -> Result<&Receipt, CallError> {
        self.submit(self.hold.renew(as_ms(extend))).await
    }

    /// Gives up the guard: somebody else ends the reservation, by its id.
    pub fn detach(mut self) -> Receipt {
        self.let_go = true;
        self.receipt().clone()
    }

    async fn submit(&mut self, command: Command) -> Result<&Receipt, CallError> {
        let decided = self.client.submit(command).await?;
        self.hold.observe(decided);
        Ok(self.receipt())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.let_go {
            return;
        }
        let id = self.id();
        match self.hold.let_go() {
            LetGo::Nothing => {}
            LetGo::Settlement => {
                tracing::warn!(%id, state = self.state().as_str(), "a reservation was dropped that may have been started; settle it by its id");
            }
            LetGo::Release if self.client.abandon(id) => {}
            LetGo::Release => {
                tracing::warn!(%id, "a reservation was dropped and could not be queued for release; its hold TTL ends it");
            }
        }
    }
}
