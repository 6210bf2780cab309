//! What the model says: the parts of answers that the spec fixes.

use holdfast_ledger::answer::{Reason, State, Tier};
use holdfast_ledger::ids::{LimitId, OperationId, RouteName};
use holdfast_ledger::loss::LossyChange;
use holdfast_ledger::plan::{Level, Rule};
use holdfast_ledger::record::LineageKey;
use holdfast_ledger::{Amounts, Unit};

use crate::lineage::Balance;

/// What the model says of a command; the parts of an answer that the spec fixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Receipt(Box<Sketch>),
    Tombstone,
    Published {
        generation: u64,
        changed: bool,
    },
    Frozen {
        changed: bool,
    },
    Unfrozen {
        changed: bool,
    },
    Webhook {
        changed: bool,
    },
    Adjusted(Box<Booked>),
    AdjustmentConflict,
    EpochClosed(Option<u64>),
    Done,
    Invalid,
    Conflict(State),
    WrongState(State),
    NotFound,
    IdTooOld(u64),
    IdInFuture(u64),
    GenerationMismatch(u64),
    /// Limit, change, open reservations, held, owed.
    Destructive(Vec<(LimitId, LossyChange, u64, i128, i128)>),
    Rejected(Box<No>),
}

/// The parts of a rejection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct No {
    pub generation: u64,
    pub limit: LimitId,
    pub level: Level,
    pub unit: Unit,
    pub reason: Reason,
    /// What would have to fit for an admission; cases for waiting are tried out on these.
    pub asks: Vec<(LineageKey, u64)>,
    /// Nobody knows when a slot comes back: the wait is a hint.
    pub hint: bool,
}

/// The parts of an adjustment's receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booked {
    pub generation: u64,
    pub epoch_start_ms: Option<u64>,
    pub before: Figures,
    pub after: Figures,
}

/// Limit, remaining, held, used (of totals), debt.
pub type Figures = (Option<i128>, Option<i128>, i128, Option<i128>, i128);

/// What is shown of a balance.
pub fn figures_of(balance: &Balance) -> Figures {
    let unlimited = matches!(balance.rule, Some(Rule::Unlimited { .. }) | None);
    // Lines are 64 bits wide and saturate: an amount that is over twice the largest limit is shown as the largest number.
    let cut = |amount: i128| amount.min(i128::from(u64::MAX));
    (
        (!unlimited).then_some(cut(balance.gives)),
        (!unlimited).then_some(cut(balance.available)),
        cut(balance.held),
        balance.epoch.map(|_| cut(balance.spent)),
        cut(balance.debt),
    )
}

/// The parts of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    pub state: State,
    pub generation: u64,
    pub route: RouteName,
    pub tier: Tier,
    pub reserved: Amounts,
    /// What was asked, of units of which less was granted.
    pub cut: Amounts,
    /// Limit, amount, generation, start of the epoch.
    pub legs: Vec<(LimitId, u64, u64, Option<u64>)>,
    pub reserved_at_ms: u64,
    pub reserved_revision: u64,
    pub expires_at_ms: u64,
    pub operation: Option<OperationId>,
    pub started_at_ms: Option<u64>,
    pub actual: Option<Amounts>,
    pub estimated: bool,
    /// Whether an operator said what it used.
    pub resolved: bool,
    /// What the estimate was corrected to, and the debt after it.
    pub corrected: Option<(Amounts, Amounts)>,
    pub ended_at_ms: Option<u64>,
    pub debt: Amounts,
    /// `None`: enforced.
    pub shadow: Option<Shadow>,
}

/// What the shadow lane decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shadow {
    Admitted(Tier),
    /// Generation, limit, level, unit and reason.
    Rejected(u64, Option<LimitId>, Level, Unit, Reason),
    Undecided,
}

impl Shadow {
    pub fn of(no: &No) -> Shadow {
        Shadow::rejected(no.generation, &no.limit, no.level, no.unit, no.reason)
    }

    /// Which limit a freeze names is left open.
    pub fn rejected(generation: u64, limit: &LimitId, level: Level, unit: Unit, reason: Reason) -> Shadow {
        match reason {
            Reason::Frozen => Shadow::Rejected(generation, None, Level::Tenant, Unit::Requests, reason),
            _ => Shadow::Rejected(generation, Some(limit.clone()), level, unit, reason),
        }
    }

    /// Without what is not counted apart.
    pub fn counted(self) -> Shadow {
        match self {
            Shadow::Rejected(_, limit, ..) => {
                Shadow::Rejected(0, limit, Level::Tenant, Unit::Requests, Reason::Spent)
            }
            other => other,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Shadow::Admitted(Tier::Normal) => "shadow admitted",
            Shadow::Admitted(_) => "shadow degraded",
            Shadow::Rejected(.., Reason::Frozen) => "shadow frozen",
            Shadow::Rejected(.., Reason::Debt) => "shadow debt",
            Shadow::Rejected(..) => "shadow rejected",
            Shadow::Undecided => "shadow undecided",
        }
    }
}

/// The words under which a verdict is counted as met.
pub fn words_for(verdict: &Verdict) -> Vec<&'static str> {
    match verdict {
        Verdict::Receipt(sketch) => {
            let state = match sketch.state {
                State::Reserved => "reserved",
                State::Started => "started",
                State::Expiring => "expiring",
                State::Expired => "expired",
                State::Released => "released",
                State::UsageUnknown => "unknown",
                State::Settled => "settled",
                State::SettledWithDebt => "settled with debt",
            };
            let tier = match sketch.tier {
                Tier::Normal => "tier normal",
                Tier::DegradedLight => "tier light",
                Tier::DegradedHeavy => "tier heavy",
            };
            let mut words = vec![state, tier];
            if !sketch.cut.is_empty() {
                words.push("granted less");
            }
            words
        }
        Verdict::Tombstone => vec!["tombstone"],
        Verdict::Published { .. } => vec!["published"],
        Verdict::Frozen { .. } => vec!["frozen by an operator"],
        Verdict::Unfrozen { .. } => vec!["unfrozen"],
        Verdict::Webhook { .. } => vec!["webhook"],
        Verdict::Adjusted(_) => vec!["adjusted"],
        Verdict::AdjustmentConflict => vec!["adjustment conflict"],
        Verdict::EpochClosed(_) => vec!["epoch closed"],
        Verdict::Done => vec![],
        Verdict::Invalid => vec!["invalid"],
        Verdict::Conflict(_) => vec!["conflict"],
        Verdict::WrongState(State::Expiring) => vec!["wrong state", "expiring"],
        Verdict::WrongState(State::Expired) => vec!["wrong state", "expired"],
        Verdict::WrongState(_) => vec!["wrong state"],
        Verdict::NotFound => vec!["not found"],
        Verdict::IdTooOld(_) => vec!["id too old"],
        Verdict::IdInFuture(_) => vec!["id in future"],
        Verdict::GenerationMismatch(_) => vec!["generation mismatch"],
        Verdict::Destructive(_) => vec!["destructive"],
        Verdict::Rejected(no) => vec![match no.reason {
            Reason::Frozen => "frozen",
            Reason::NeverFits => "never fits",
            Reason::Debt => "debt",
            Reason::Held => "held",
            Reason::Spent => "spent",
        }],
    }
}
