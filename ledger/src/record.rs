//! Everything the book stores, as plain rows: what a snapshot is made of.
//!
//! The order in a snapshot is: one header, then plans, tenants, calendars, lineages, closed accounts,
//! reservations, tombstones, freezes, shadow counts, adjustments, webhooks, statements, events; within a kind by
//! slot, generation, name or sequence.

use std::fmt;
use std::sync::Arc;

use crate::adjust::{AdjustmentRow, Operated};
use crate::answer::{Extras, State, Tier};
use crate::event::{Event, Statement};
use crate::ids::{
    ActorName, LimitId, ModelName, OperationId, RegionName, ReservationId, RouteName, TenantId, UserId,
};
use crate::plan::{Calendar, Ladder, Level, Rule};
use crate::query::{PublishedPlan, TenantVersion};
use crate::shadow::{ShadowCounts, ShadowDecision};
use crate::unit::{Amounts, Unit};
use crate::webhook::WebhookRow;

/// One stored row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// What stands once in the book. Always the first record.
    Header(Header),
    /// A plan that was published.
    Plan(PublishedPlan),
    /// A tenant's record, one per generation that set it.
    Tenant(TenantVersion),
    /// The known bounds of a calendar.
    Calendar(CalendarRow),
    /// A lineage with its current account.
    Lineage(u32, Box<Lineage>),
    /// A closed account that reservations still refer to.
    ClosedAccount(u32, Box<ClosedAccount>),
    /// A reservation, open or remembered.
    Reservation(u32, ReservationRow),
    /// An id that was released before it was seen.
    Tombstone(u32, Tombstone),
    /// A freeze.
    Freeze(Freeze),
    /// What the shadow lane of a route decided.
    Shadow(ShadowCounts),
    /// An adjustment that is remembered.
    Adjustment(AdjustmentRow),
    /// A tenant's webhook.
    Webhook(WebhookRow),
    /// The statement of an archived account.
    Statement(Arc<Statement>),
    /// An event that is still kept.
    Event(Arc<Event>),
}

/// What stands once in the book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Log index of the last entry applied.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// Commands applied so far.
    pub revision: u64,
    /// Book time, ms.
    pub clock_ms: u64,
    /// Unknown ids from before this are refused, ms. Never decreases.
    pub id_floor_ms: u64,
    /// The generation in force; 0: nothing was ever published.
    pub generation: u64,
    /// The rules that `apply` keeps.
    pub rules_version: u32,
    /// The sequence of the last event.
    pub event_sequence: u64,
    /// The digest of the book that the snapshot holds.
    pub digest: u128,
    /// How many records follow the header.
    pub records: u64,
}

/// The known bounds of a calendar: epoch i is `[bounds_ms[i], bounds_ms[i+1])`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarRow {
    /// The calendar.
    pub calendar: Arc<Calendar>,
    /// Strictly increasing.
    pub bounds_ms: Vec<u64>,
}

/// The lane of a lineage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Decides.
    #[default]
    Enforced,
    /// Decides too, but its decisions are only recorded.
    Shadow,
}

impl Lane {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Lane::Enforced => "enforced",
            Lane::Shadow => "shadow",
        }
    }
}

/// What makes a lineage: a limit and the values of its scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineageKey {
    /// The limit.
    pub limit: LimitId,
    /// The tenant, on the tenant and user levels.
    pub tenant: Option<TenantId>,
    /// The user, on the user level.
    pub user: Option<UserId>,
    /// The plan's route, if the limit is keyed by it.
    pub route: Option<RouteName>,
    /// The model, if the limit is keyed by it.
    pub model: Option<ModelName>,
    /// The region, if the limit is keyed by it.
    pub region: Option<RegionName>,
    /// The lane.
    pub lane: Lane,
}

impl LineageKey {
    /// How many of route, model and region it is keyed by, besides its level.
    pub(crate) fn narrowings(&self) -> usize {
        usize::from(self.route.is_some())
            + usize::from(self.model.is_some())
            + usize::from(self.region.is_some())
    }

    /// The level that the key's values give.
    pub fn level(&self) -> Level {
        match (&self.tenant, &self.user) {
            (_, Some(_)) => Level::User,
            (Some(_), None) => Level::Tenant,
            (None, None) => Level::Global,
        }
    }
}

impl fmt::Display for LineageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.limit)?;
        let parts = [
            ("tenant", self.tenant.as_ref().map(TenantId::as_str)),
            ("user", self.user.as_ref().map(UserId::as_str)),
            ("route", self.route.as_ref().map(RouteName::as_str)),
            ("model", self.model.as_ref().map(ModelName::as_str)),
            ("region", self.region.as_ref().map(RegionName::as_str)),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                write!(f, " {name}={value}")?;
            }
        }
        match self.lane {
            Lane::Enforced => Ok(()),
            Lane::Shadow => f.write_str(" lane=shadow"),
        }
    }
}

/// What kind of limit a lineage belongs to, in the order in which refusals are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitKind {
    /// A token bucket.
    Bucket,
    /// A cap on what is held at the same time.
    Concurrency,
    /// A total per period.
    Total,
}

/// The columns of the account equation. 128 bits, because amounts of 64 bits are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// What it opened with: carried in from its predecessor or the epoch before.
    pub opening: u128,
    /// Minted by a bucket's rate.
    pub refilled: u128,
    /// Minted by a grant: an epoch's, a bucket's first fill, or what an unlimited rule counts.
    pub granted: u128,
    /// Minted by a correction downward.
    pub corrected: u128,
    /// Minted from a closed shard's unused amounts.
    pub shards_back: u128,
    /// Minted from what a closed account of the same epoch gave back.
    pub moved_in: u128,
    /// Minted by a changed rule.
    pub rule_raise: u128,
    /// Minted to let a debt go at the epoch's end.
    pub forgiven: u128,
    /// Debt made here.
    pub overdraft_issued: u128,
    /// Free to reserve.
    pub available: u128,
    /// Held by open reservations.
    pub reserved: u128,
    /// Used by settled ones.
    pub spent: u128,
    /// Retired to emergency shards.
    pub to_shards: u128,
    /// Retired to the successor.
    pub carried_forward: u128,
    /// Retired to nobody.
    pub forfeited: u128,
    /// Debt repaid here.
    pub overdraft_repaid: u128,
}

/// One row of the book: a lineage under one generation in one accounting epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number within the lineage, from 0.
    pub number: u32,
    /// The generation in which the lineage's effective rule last changed.
    pub generation: u64,
    /// Start of the accounting epoch, ms; `None` = `continuous`.
    pub epoch_start_ms: Option<u64>,
    /// The columns.
    pub columns: Columns,
    /// Legs on it of reservations that are open or remembered.
    pub legs: u32,
}

/// A lineage with its current account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Which one it is.
    pub key: Arc<LineageKey>,
    /// Its unit.
    pub unit: Unit,
    /// Its kind, which an unlimited rule keeps.
    pub kind: LimitKind,
    /// The effective rule that its current account is under; `None`: the limit was withdrawn.
    pub rule: Option<Rule>,
    /// The ladder of its limit.
    pub ladder: Option<Ladder>,
    /// The debt that its limit allows; `None`: the route's.
    pub overdraft_max: Option<u64>,
    /// The generation up to which changes of its rule have been looked at.
    pub seen_generation: u64,
    /// Book time up to which it has been replayed, ms.
    pub replayed_ms: u64,
    /// What of a unit has accrued, in parts of the rule's `per_ms`.
    pub refill_remainder: u64,
    /// Number of the running epoch's first account.
    pub epoch_first: u32,
    /// End of the running accounting epoch, ms; `None`: there is none.
    pub epoch_end_ms: Option<u64>,
    /// The current account, open unless the limit was withdrawn.
    pub current: Account,
    /// Overdraft issued less repaid, over all its accounts ever.
    pub debt: u128,
    /// The earliest generation under which what is owed was admitted; 0: nothing is owed.
    pub debt_generation: u64,
    /// What was carried into the running epoch.
    pub carried_in: u128,
    /// Debt of earlier epochs that was repaid in the running one.
    pub earlier_repaid: u128,
    /// The running epoch's usage (spent + reserved + to shards − corrected) on its earlier accounts.
    /// Negative only where more was corrected than was ever used.
    pub past_used: i128,
    /// The running epoch's overdraft issued less repaid on its earlier accounts.
    pub past_debt: i128,
    /// Thresholds that were crossed in the running epoch, whatever the ladder is by now: bit p = p percent.
    pub crossed: u128,
    /// Overdraft issued less repaid on accounts of any epoch that were archived.
    pub archived_debt: i128,
    /// Usage of the running epoch on accounts that were archived. Negative where one of them holds the
    /// correction of another's usage.
    pub archived_used: i128,
    /// Legs on any of its accounts of reservations that are open or remembered.
    pub legs: u32,
    /// When it may be dropped, if nothing happens before, ms; `None`: not while it has legs.
    pub drop_at_ms: Option<u64>,
    /// What operators have put on top of the rule; `None`: nothing, which is usual.
    pub operated: Option<Box<Operated>>,
}

/// A closed account that reservations still refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedAccount {
    /// Slot of its lineage.
    pub lineage: u32,
    /// The account.
    pub account: Account,
}

/// A reservation's amount on one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Slot of the lineage.
    pub lineage: u32,
    /// Number of the account within it.
    pub account: u32,
    /// The amount.
    pub amount: u64,
}

/// Who and what a reservation is for. Shared by the reservations of one admission path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// Who pays.
    pub tenant: TenantId,
    /// The user within the tenant.
    pub user: Option<UserId>,
    /// The plan's route that admitted it.
    pub route: RouteName,
}

/// A reservation, open or remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRow {
    /// Its id.
    pub id: ReservationId,
    /// The digest of the canonical request.
    pub request_digest: [u8; 32],
    /// Who and what it is for.
    pub subject: Arc<Subject>,
    /// The generation it was admitted under.
    pub generation: u64,
    /// The tier at admission.
    pub tier: Tier,
    /// Its stored state; never EXPIRING, which follows from the time.
    pub state: State,
    /// What was reserved.
    pub reserved: Amounts,
    /// Where.
    pub legs: Arc<[Leg]>,
    /// Book time of admission, ms.
    pub reserved_at_ms: u64,
    /// The revision that admitted it.
    pub reserved_revision: u64,
    /// End of the hold or usage deadline, ms.
    pub expires_at_ms: u64,
    /// The grace of EXPIRING that it was admitted with, ms.
    pub grace_ms: u64,
    /// The operation that was bound.
    pub operation: Option<OperationId>,
    /// Book time of the start, ms; 0: not started.
    pub started_at_ms: u64,
    /// Since when its usage has been unknown, ms; 0: it is not.
    pub unknown_at_ms: u64,
    /// What the shadow lane decided of it; `None`: it is in the enforced lane.
    pub shadow: Option<Arc<ShadowDecision>>,
    /// Its end.
    pub ended: Option<Box<Ended>>,
    /// What most reservations do not have.
    pub extras: Option<Arc<Extras>>,
}

/// How a reservation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Book time, ms.
    pub at_ms: u64,
    /// The revision that ended it; for timer work, of the last command before it.
    pub revision: u64,
    /// When it may be forgotten, ms.
    pub forget_at_ms: u64,
    /// What it used; nothing unless it was settled.
    pub actual: Amounts,
    /// Debt that remained, per unit.
    pub debt: Amounts,
}

/// An id that was released before it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The id.
    pub id: ReservationId,
    /// Book time of the release, ms.
    pub at_ms: u64,
    /// When it may be forgotten, ms.
    pub forget_at_ms: u64,
}

/// What a freeze is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FreezeScope {
    /// The tenant.
    pub tenant: TenantId,
    /// The user; `None`: the whole tenant.
    pub user: Option<UserId>,
    /// The plan's route.
    pub route: RouteName,
    /// The model; `None`: whatever the model.
    pub model: Option<ModelName>,
    /// The region; `None`: wherever it is served.
    pub region: Option<RegionName>,
}

impl FreezeScope {
    /// The whole of a route for a tenant or one of its users.
    pub fn of_route(tenant: TenantId, user: Option<UserId>, route: RouteName) -> FreezeScope {
        FreezeScope { tenant, user, route, model: None, region: None }
    }
}

impl fmt::Display for FreezeScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FreezeScope { tenant, user, route, model, region } = self;
        write!(f, "{tenant}")?;
        if let Some(user) = user {
            write!(f, " {user}")?;
        }
        write!(f, " on {route}")?;
        if let Some(model) = model {
            write!(f, " model={model}")?;
        }
        match region {
            Some(region) => write!(f, " region={region}"),
            None => Ok(()),
        }
    }
}

/// A freeze: nothing is admitted for its scope until an operator lifts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// What it is on.
    pub scope: FreezeScope,
    /// Book time, ms.
    pub at_ms: u64,
    /// Who or what did it.
    pub cause: FreezeCause,
}

/// Who or what froze a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeCause {
    /// A settlement went past a maximum.
    Breach {
        /// The reservation that was settled.
        reservation: ReservationId,
        /// The limit that a rejection names.
        limit: LimitId,
        /// Its level.
        level: Level,
        /// The unit that was breached.
        unit: Unit,
    },
    /// An operator.
    Operator {
        /// Who.
        actor: ActorName,
        /// Why.
        reason: String,
    },
}

/// Why records do not make a book.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The first record is not a header, or a second one follows.
    #[error("a snapshot has one header, as its first record")]
    Header,
    /// Fewer or more records than the header says.
    #[error("the header announces {announced} records, {found} were found")]
    Records {
        /// By the header.
        announced: u64,
        /// In the snapshot.
        found: u64,
    },
    /// Two rows in one slot, under one id or with one name.
    #[error("{0} stands twice")]
    Duplicate(String),
    /// A row refers to one that is not there.
    #[error("{0} refers to a row that is not there")]
    Dangling(String),
    /// The rows' digest is not the header's.
    #[error("the rows' digest is {found:032x}, the header says {announced:032x}")]
    Digest {
        /// By the header.
        announced: u128,
        /// Of the rows.
        found: u128,
    },
    /// Written under rules that this version of the ledger does not keep.
    #[error("rules version {0} is not supported")]
    RulesVersion(u32),
}
