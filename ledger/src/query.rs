//! What the book shows when it is asked: quotas, counts, audit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::answer::{Receipt, Tier};
use crate::ids::{ActorName, LimitId, ModelName, RegionName, RouteName, TenantId, UserId};
use crate::plan::{Level, Plan, TenantRecord};
use crate::record::{Columns, Lane, LineageKey};
use crate::unit::Unit;

/// A plan as it was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPlan {
    /// The generation that its publishing gave.
    pub generation: u64,
    /// The document, word for word.
    pub document: Arc<str>,
    /// What it means.
    pub plan: Arc<Plan>,
    /// Book time of its publishing, ms.
    pub published_at_ms: u64,
    /// Who published it.
    pub actor: ActorName,
    /// What it rolled back; `None`: an ordinary publish.
    pub roll_back: Option<RolledBack>,
}

/// What a publish rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolledBack {
    /// The generation of the plan whose content it published again.
    pub restored: u64,
    /// The first generation that was rolled back. The last one is that before its own.
    pub first: u64,
}

/// How far the generations of one roll-back have drained. They admit nothing any more; what they admitted goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// The generation that the roll-back gave.
    pub generation: u64,
    /// What it rolled back.
    pub rolled_back: RolledBack,
    /// Book time of the roll-back, ms.
    pub at_ms: u64,
    /// Who rolled back.
    pub actor: ActorName,
    /// Open reservations that the generations admitted, by state.
    pub reserved: u64,
    /// Of them, started.
    pub started: u64,
    /// Of them, with unknown usage.
    pub usage_unknown: u64,
    /// What they hold, per unit, in the order of [`Unit::ALL`]. One that several limits count is counted once.
    pub held: [u128; 4],
    /// Debt that settlements of theirs began, by limit, as far as it is not repaid.
    pub debts: BTreeMap<LimitId, DrainDebt>,
}

/// Debt of one limit that a roll-back waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainDebt {
    /// How many of the limit's lineages are in debt.
    pub lineages: u64,
    /// What they owe together, in the limit's unit.
    pub debt: u128,
}

impl Drain {
    /// Whether nothing is open any more.
    pub fn is_done(&self) -> bool {
        self.reserved + self.started + self.usage_unknown == 0 && self.debts.is_empty()
    }
}

/// A tenant's record as it was set by command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantVersion {
    /// The tenant.
    pub tenant: TenantId,
    /// The generation that setting it gave.
    pub generation: u64,
    /// The whole record; `None`: it was removed.
    pub record: Option<Arc<TenantRecord>>,
    /// Book time, ms.
    pub set_at_ms: u64,
    /// Who set it.
    pub actor: ActorName,
}

/// One lineage's quota as it stands at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLine {
    /// The limit.
    pub limit: LimitId,
    /// Its level.
    pub level: Level,
    /// Its unit.
    pub unit: Unit,
    /// The user, on the user level.
    pub user: Option<UserId>,
    /// The plan's route, if the limit is keyed by it.
    pub route: Option<RouteName>,
    /// The model, if the limit is keyed by it.
    pub model: Option<ModelName>,
    /// The region, if the limit is keyed by it.
    pub region: Option<RegionName>,
    /// The lane. What the shadow lane says of suspension, freezes and tiers holds for nobody.
    pub lane: Lane,
    /// Spent in this epoch and to shards, corrections taken off; 0 for concurrency. For a bucket: what is missing of its burst and not held.
    pub used: u64,
    /// Held by open reservations of this epoch.
    pub held: u64,
    /// What the epoch gives in all (with what was carried in), the burst, or the cap; `None`: unlimited.
    pub limit_amount: Option<u64>,
    /// Available now; `None`: unlimited.
    pub remaining: Option<u64>,
    /// The ratio of the ladder, parts per million, rounded down; over 1 000 000 when over the limit; 0 if unlimited.
    pub ratio_ppm: u64,
    /// The tier that the ratio gives; NORMAL without a ladder.
    pub tier: Tier,
    /// The lineage's debt.
    pub debt: u64,
    /// Whether that debt suspends admissions.
    pub suspended: bool,
    /// Whether a freeze stands on the subject, for any route.
    pub frozen: bool,
    /// When the epoch ends, or the bucket is full again, ms; `None`: never, or nothing to reset.
    pub reset_at_ms: Option<u64>,
    /// The generation in which the effective rule last changed.
    pub generation: u64,
    /// Start of the accounting epoch, ms; `None` = `continuous`.
    pub epoch_start_ms: Option<u64>,
}

/// A reservation whose usage nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownUsage {
    /// Since when, ms.
    pub since_ms: u64,
    /// Its receipt.
    pub receipt: Receipt,
}

/// What a subject used of a limit in an accounting epoch that has ended, over all its generations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochStatement {
    /// The limit with its scope values.
    pub lineage: Arc<LineageKey>,
    /// Its unit.
    pub unit: Unit,
    /// Start of the accounting epoch, ms.
    pub epoch_start_ms: u64,
    /// The last generation that it has an account of.
    pub generation: u64,
    /// Spent and to shards, corrections taken off.
    pub used: u64,
    /// Held by reservations that were made in it and are still open: what they use will be added.
    pub held: u64,
    /// The sum of each column over the epoch's accounts that were used.
    pub columns: Columns,
}

/// How many of everything the book holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Held, not started (EXPIRING ones included until their units return).
    pub reserved: u64,
    /// Started.
    pub started: u64,
    /// With unknown usage.
    pub usage_unknown: u64,
    /// Ended and still remembered.
    pub remembered: u64,
    /// Released before they were seen, and still remembered.
    pub tombstones: u64,
    /// Accounts, open and closed.
    pub accounts: u64,
    /// Lineages.
    pub lineages: u64,
    /// Lineages in debt.
    pub indebted: u64,
    /// Freezes that stand.
    pub frozen: u64,
    /// Since when the oldest USAGE_UNKNOWN has been so, ms; `None`: there is none.
    pub oldest_unknown_ms: Option<u64>,
}

/// What a full audit found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// Whether there is no violation.
    pub ok: bool,
    /// The revision at which it was made.
    pub revision: u64,
    /// The book's digest there, recomputed from all rows.
    pub digest: u128,
    /// Accounts, open and closed.
    pub accounts: u64,
    /// Open reservations.
    pub open_reservations: u64,
    /// The sum of each column over all accounts, by unit, in the order of [`Unit::ALL`].
    pub sums: [Columns; 4],
    /// What is wrong, the first [`crate::limits::VIOLATIONS_SHOWN_MAX`] of them.
    pub violations: Vec<Violation>,
}

/// A broken rule of the account equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: ViolatedRule,
    /// The account, reservation or row it was found on.
    pub place: String,
    /// The columns and figures that disagree.
    pub detail: String,
}

/// The rules that a violation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolatedRule {
    /// The equation.
    C1,
    /// A column was negative or wrapped.
    C2,
    /// A column shrank that only grows.
    C3,
    /// `reserved` is not the sum of the open legs.
    C4,
    /// `to_shards` is not the sum of the shards' amounts.
    C5,
    /// In debt and yet something available.
    C6,
    /// The available amount is not what usage and rule give.
    C7,
    /// A bucket holds more than its burst.
    C8,
    /// A successor's opening is not what its predecessor carried forward.
    C9,
    /// A derived index or sum disagrees with the rows.
    Index,
    /// The incremental digest disagrees with the rows.
    Digest,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.rule, self.place, self.detail)
    }
}
