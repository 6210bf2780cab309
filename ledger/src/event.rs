//! What the book tells the world besides its answers: events, and effects for a history index.

use std::sync::Arc;

use crate::adjust::AdjustmentReceipt;
use crate::answer::{Receipt, Tier};
use crate::ids::{ActorName, AdjustmentId, LimitId, ReservationId, RouteName, TenantId, UserId};
use crate::plan::Level;
use crate::record::{Columns, FreezeScope, Lane, LineageKey};
use crate::unit::Unit;

/// Something that happened, with its place in the one order of all events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Dense, from 1.
    pub sequence: u64,
    /// Book time, ms.
    pub at_ms: u64,
    /// The revision of the command it belongs to; for timer work, of the last command before it.
    pub revision: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A lineage crossed a threshold of its ladder; once per lineage, epoch and threshold.
    Crossed {
        /// The lineage.
        lineage: Arc<LineageKey>,
        /// Start of its accounting epoch, ms; `None` = `continuous`.
        epoch_start_ms: Option<u64>,
        /// The threshold, percent.
        percent: u8,
        /// The tier that begins there.
        tier: Tier,
    },
    /// A lineage went into debt: its subjects are suspended until it is repaid.
    Indebted {
        /// The lineage.
        lineage: Arc<LineageKey>,
        /// The reservation whose settlement did it; `None`: an operator's charge.
        reservation: Option<ReservationId>,
    },
    /// A lineage's debt was repaid in full.
    Repaid {
        /// The lineage.
        lineage: Arc<LineageKey>,
    },
    /// A lineage's debt ended with its accounting epoch (`carry_debt: false`).
    Forgiven {
        /// The lineage.
        lineage: Arc<LineageKey>,
        /// The amount.
        amount: u128,
    },
    /// A boost ended by its time. One that an operator ended is [`EventKind::Adjusted`].
    BoostEnded {
        /// The lineage.
        lineage: Arc<LineageKey>,
        /// The adjustment that had begun it.
        boost: AdjustmentId,
    },
    /// A settlement went past the maximum debt or the execution hard cap. It was booked in full.
    Breached {
        /// The reservation.
        reservation: ReservationId,
        /// What is frozen, if anything is: the narrowest of its scopes and its route.
        scope: FreezeScope,
        /// Its lane. In the shadow lane nothing is ever frozen.
        lane: Lane,
        /// The unit.
        unit: Unit,
        /// The limit past whose debt it went; `None`: the execution hard cap.
        limit: Option<LimitId>,
        /// The level that was frozen; `Global`: nothing was, since the global level is never frozen by itself.
        frozen: Level,
    },
    /// An operator lifted a freeze.
    Unfrozen {
        /// What it is on.
        scope: FreezeScope,
        /// Who.
        actor: ActorName,
        /// Why.
        reason: String,
    },
    /// An operator said what an operation used that nobody else knew of.
    UnknownResolved {
        /// The reservation, ended by it.
        reservation: ReservationId,
        /// Its tenant.
        tenant: TenantId,
        /// Its user.
        user: Option<UserId>,
        /// The plan's route.
        route: RouteName,
        /// Who.
        actor: ActorName,
        /// On what grounds.
        reason: String,
    },
    /// An operator froze a route for a subject.
    Frozen {
        /// What it is on.
        scope: FreezeScope,
        /// Who.
        actor: ActorName,
        /// Why.
        reason: String,
    },
    /// An operator's adjustment was booked, or a boost begun or ended.
    Adjusted(Arc<AdjustmentReceipt>),
    /// A plan that changes something was published.
    PlanPublished {
        /// The generation it gave.
        generation: u64,
        /// Whether it was forced to destroy what limits held or were owed.
        forced: bool,
        /// Who.
        actor: ActorName,
    },
    /// A plan was rolled back; it follows the event of the publish that did it.
    RolledBack {
        /// The generation that it gave.
        generation: u64,
        /// The generation whose plan is in force again.
        restored: u64,
        /// The first of the generations that were rolled back, up to the one before `generation`.
        first: u64,
        /// Who.
        actor: ActorName,
    },
    /// A tenant's webhook was set, changed or removed. Neither address nor key is told.
    WebhookSet {
        /// The tenant.
        tenant: TenantId,
        /// Whether there is none any more.
        removed: bool,
        /// Who.
        actor: ActorName,
    },
    /// A tenant's record was set or removed, and that changed something.
    TenantSet {
        /// The generation it gave.
        generation: u64,
        /// The tenant.
        tenant: TenantId,
        /// Who.
        actor: ActorName,
    },
}

/// What a node's history index is told. Drained after each entry; never part of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A reservation ended, or its estimated settlement was corrected.
    Ended(Arc<Receipt>),
    /// An event.
    Event(Arc<Event>),
    /// An account that had been used was archived.
    Statement(Arc<Statement>),
}

/// What remains of an archived account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The lineage.
    pub lineage: Arc<LineageKey>,
    /// The lineage's unit.
    pub unit: Unit,
    /// The account's generation.
    pub generation: u64,
    /// Start of its accounting epoch, ms; `None` = `continuous`.
    pub epoch_start_ms: Option<u64>,
    /// Its final columns.
    pub columns: Columns,
    /// Book time at which it was archived, ms.
    pub at_ms: u64,
}
