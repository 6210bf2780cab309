//! What the book answers.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::adjust::AdjustmentReceipt;
use crate::ids::{ActorName, IdempotencyKey, LimitId, OperationId, ReservationId};
use crate::loss::LimitLoss;
use crate::plan::Level;
use crate::record::{Lane, Leg, Subject};
use crate::shadow::ShadowDecision;
use crate::unit::{Amounts, Unit};

/// The answer to one command. The book's revision after it is [`crate::Book::revision`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Reserve, start, settle, release, renew, report unknown: the reservation's receipt.
    Reservation(Arc<Receipt>),
    /// Release of an id never seen: a tombstone stands for it now (or already did).
    Tombstone {
        /// The id.
        id: ReservationId,
    },
    /// Publish of a plan or of a tenant record.
    Published {
        /// The generation in force.
        generation: u64,
        /// False if the content was what was already in force.
        changed: bool,
    },
    /// A subject and route are frozen (or were already).
    Frozen {
        /// Whether it was not frozen before.
        changed: bool,
    },
    /// A freeze was lifted (or there was none).
    Unfrozen {
        /// Whether there was a freeze.
        changed: bool,
    },
    /// An adjustment was booked, now or when its id was first used.
    Adjusted(Arc<AdjustmentReceipt>),
    /// A webhook was set, removed or advanced (or was so already).
    Webhook {
        /// Whether anything changed.
        changed: bool,
    },
    /// Timer work was done.
    Ticked {
        /// Reservations that expired.
        expired: u32,
        /// Reservations that became USAGE_UNKNOWN.
        unknown: u32,
        /// Ended reservations that were forgotten.
        forgotten: u32,
        /// More is due already.
        more: bool,
    },
    /// The rules version in force.
    Rules {
        /// The version.
        rules_version: u32,
    },
    /// Nothing was changed, and why.
    Refused(Refusal),
}

/// The durable facts of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The reservation.
    pub id: ReservationId,
    /// Its state now.
    pub state: State,
    /// Whom and what it is held for, and on which accounts. Shared by receipts that say the same, which are most
    /// of one subject.
    pub hold: Arc<Hold>,
    /// The digest of the canonical request.
    pub request_digest: [u8; 32],
    /// The policy generation it was admitted under.
    pub generation: u64,
    /// The tier at admission.
    pub tier: Tier,
    /// What was reserved, per unit: what was asked, or less where the request named a minimum.
    pub reserved: Amounts,
    /// Book time of admission, ms.
    pub reserved_at_ms: u64,
    /// The revision that admitted it.
    pub reserved_revision: u64,
    /// When the hold ends (RESERVED) or the usage deadline passes (STARTED), ms.
    pub expires_at_ms: u64,
    /// The operation that was bound.
    pub operation: Option<OperationId>,
    /// Book time of the start, ms.
    pub started_at_ms: Option<u64>,
    /// What it was settled with. If that was estimated, [`Receipt::used`] knows better once it is corrected.
    pub actual: Option<Amounts>,
    /// Book time of its end, ms.
    pub ended_at_ms: Option<u64>,
    /// The revision that ended it.
    pub ended_revision: Option<u64>,
    /// Debt of its lineages that remained right after it was settled, per unit, the largest of each unit.
    pub debt: Amounts,
    /// What most reservations have nothing to say of.
    pub extras: Option<Arc<Extras>>,
    /// What the shadow lane decided of it; `None`: it is in the enforced lane. `tier`, which a gateway acts on,
    /// is NORMAL in the shadow lane.
    pub shadow: Option<Arc<ShadowDecision>>,
}

/// What few reservations have; apart, so that the others do not carry it. Shared by a reservation and its receipts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// What was asked, of the units of which less was granted.
    pub asked: Amounts,
    /// The idempotency key it was made with.
    pub key: Option<IdempotencyKey>,
    /// It was settled with guesses, and what has become of them.
    pub estimate: Option<Estimate>,
    /// The operator who ended it: what it used is that operator's word, not the executor's.
    pub resolved_by: Option<ActorName>,
}

/// What is known of a settlement that was estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// What put it right; `None`: nothing yet.
    pub correction: Option<Correction>,
}

/// An estimated settlement was put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Book time, ms.
    pub at_ms: u64,
    /// The revision that did it.
    pub revision: u64,
    /// What the operation really used.
    pub actual: Amounts,
    /// Debt of its lineages that remained right after it, per unit, the largest of each unit.
    pub debt: Amounts,
}

impl Receipt {
    /// The correction of its estimated settlement, if there was one.
    pub fn correction(&self) -> Option<&Correction> {
        self.extras.as_ref()?.estimate.as_ref()?.correction.as_ref()
    }

    /// What it used, as far as it is known: what a correction says, else what it was settled with.
    pub fn used(&self) -> Option<Amounts> {
        self.correction().map(|correction| correction.actual).or(self.actual)
    }

    /// The lane that it was admitted in, where it settles too.
    pub fn lane(&self) -> Lane {
        if self.shadow.is_some() { Lane::Shadow } else { Lane::Enforced }
    }
}

/// What a receipt says of where its amounts are held. It never changes.
#[derive(Clone, Debug)]
pub struct Hold {
    /// Who and what it is for.
    pub subject: Arc<Subject>,
    /// The amounts, by account.
    pub legs: Box<[LegReceipt]>,
    /// The same, by the places of the accounts in the book; nothing outside of one. Here, so that a reservation
    /// and its receipts share one thing and count its holders once.
    pub(crate) places: SmallVec<[Leg; 8]>,
}

impl Hold {
    /// As receipts have it outside of a book.
    pub fn new(subject: Subject, legs: Box<[LegReceipt]>) -> Hold {
        Hold { subject: Arc::new(subject), legs, places: SmallVec::new() }
    }
}

/// By what receipts say.
impl PartialEq for Hold {
    fn eq(&self, other: &Hold) -> bool {
        self.subject == other.subject && self.legs == other.legs
    }
}

impl Eq for Hold {}

/// One leg of a receipt: the amount on one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegReceipt {
    /// The limit.
    pub limit: LimitId,
    /// Its level.
    pub level: Level,
    /// Its unit.
    pub unit: Unit,
    /// The amount held at admission.
    pub amount: u64,
    /// The account's generation.
    pub generation: u64,
    /// Start of the account's accounting epoch, ms; `None` = `continuous`.
    pub epoch_start_ms: Option<u64>,
}

/// States of a reservation in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Held, not started.
    Reserved,
    /// Bound to an operation that runs.
    Started,
    /// The hold TTL has passed; the units return after a grace.
    Expiring,
    /// Ended by the hold TTL.
    Expired,
    /// Ended by release, or a tombstone.
    Released,
    /// Nobody knows what the operation used; its units stay held.
    UsageUnknown,
    /// Ended with its actual amounts.
    Settled,
    /// As settled, and some lineage was in debt afterwards.
    SettledWithDebt,
}

impl State {
    /// The word used on the wire and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Reserved => "RESERVED",
            State::Started => "STARTED",
            State::Expiring => "EXPIRING",
            State::Expired => "EXPIRED",
            State::Released => "RELEASED",
            State::UsageUnknown => "USAGE_UNKNOWN",
            State::Settled => "SETTLED",
            State::SettledWithDebt => "SETTLED_WITH_DEBT",
        }
    }

    /// Whether its legs are still held.
    pub fn is_open(self) -> bool {
        matches!(self, State::Reserved | State::Started | State::Expiring | State::UsageUnknown)
    }
}

/// The rung of the ladder; the worst over a request's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Below the alert threshold.
    #[default]
    Normal,
    /// From the alert threshold on.
    DegradedLight,
    /// From the degrade threshold on.
    DegradedHeavy,
}

impl Tier {
    /// The word used on the wire and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Normal => "NORMAL",
            Tier::DegradedLight => "DEGRADED_LIGHT",
            Tier::DegradedHeavy => "DEGRADED_HEAVY",
        }
    }
}

/// Why nothing was changed. Ordered as they are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The command makes no sense whatever the book holds, or not under the plan in force.
    Invalid {
        /// The field that is wrong.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The same id with other content.
    Conflict {
        /// The state of what stands under the id.
        state: State,
    },
    /// The reservation's state does not allow it.
    WrongState {
        /// The state.
        state: State,
    },
    /// No such reservation (never made, or ended and forgotten).
    NotFound,
    /// An unknown id from before the book's floor.
    IdTooOld {
        /// The floor, ms.
        floor_ms: u64,
    },
    /// An unknown id from after the book's clock.
    IdInFuture {
        /// The latest time allowed, ms.
        latest_ms: u64,
    },
    /// Another generation is in force than the caller expected.
    GenerationMismatch {
        /// The one in force.
        generation: u64,
    },
    /// The plan would destroy what is held on limits or owed to them, and was not forced to (or cannot be).
    Destructive {
        /// What it would do, by limit id.
        losses: Vec<LimitLoss>,
    },
    /// The same adjustment id with other content.
    AdjustmentConflict,
    /// The accounting epoch that is meant is not the running one: it is closed, and its accounts are final.
    EpochClosed {
        /// Start of the running one, ms; `None` = `continuous`.
        running_start_ms: Option<u64>,
    },
    /// A configured ceiling of the book is reached; nothing is evicted for it.
    Overloaded {
        /// The constant's name.
        ceiling: &'static str,
    },
    /// A limit said no.
    Rejected(Rejection),
}

/// A refusal by a limit. Carries no amounts, so it can never show another tenant's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The policy generation that decided.
    pub generation: u64,
    /// The limit that was hit.
    pub limit: LimitId,
    /// Its level.
    pub level: Level,
    /// Its unit.
    pub unit: Unit,
    /// Why.
    pub reason: Reason,
    /// When the limit resets, ms; `None` for buckets that never refill, concurrency, frozen, never fits.
    pub reset_at_ms: Option<u64>,
    /// How long to wait, never too short, ms; `None` when waiting does not help or nobody can say.
    pub retry_after_ms: Option<u64>,
}

/// Why a limit said no, in the order of reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The subject and route are frozen until an operator lifts it.
    Frozen,
    /// The request is larger than the limit can ever give.
    NeverFits,
    /// The lineage is in debt.
    Debt,
    /// Open reservations fill the limit; some will come back.
    Held,
    /// The limit is spent.
    Spent,
}

impl Reason {
    /// The word used on the wire and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Frozen => "frozen",
            Reason::NeverFits => "never fits",
            Reason::Debt => "debt",
            Reason::Held => "held",
            Reason::Spent => "spent",
        }
    }
}
