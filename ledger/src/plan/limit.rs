//! Limits: one rule on one unit at one scope.

use std::fmt;
use std::sync::Arc;

use crate::ids::LimitId;
use crate::plan::{Calendar, Match};
use crate::unit::Unit;

/// One rule on one unit at one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's id, unique in the plan.
    pub id: LimitId,
    /// What it counts.
    pub unit: Unit,
    /// Which attributes of a request key it.
    pub scope: Scope,
    /// Which requests it applies to.
    pub matches: Match,
    /// What an amount of this limit means; the same for every subject.
    pub shape: Shape,
    /// The rule of subjects for which nothing else is said; always of `shape`, or unlimited.
    pub rule: Rule,
    /// Where the tiers DEGRADED_LIGHT and DEGRADED_HEAVY begin; `None`: no ladder.
    pub ladder: Option<Ladder>,
    /// Whether a settle may overdraw this limit past what its debts may grow to; `None`: the route's `debt_max`.
    pub overdraft_max: Option<u64>,
}

/// Which request attributes key a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// global, tenant or tenant + user.
    pub level: Level,
    /// Keyed by the plan's route too.
    pub route: bool,
    /// Keyed by the request's model too.
    pub model: bool,
    /// Keyed by the request's region too.
    pub region: bool,
}

/// The three levels, in the order in which they are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Everybody together.
    #[default]
    Global,
    /// Each tenant.
    Tenant,
    /// Each user of each tenant.
    User,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.level {
            Level::Global => "global",
            Level::Tenant => "tenant",
            Level::User => "tenant+user",
        })?;
        for (keyed, word) in [(self.route, "+route"), (self.model, "+model"), (self.region, "+region")] {
            if keyed {
                f.write_str(word)?;
            }
        }
        Ok(())
    }
}

impl Level {
    /// The word used in plans, on the wire and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Global => "global",
            Level::Tenant => "tenant",
            Level::User => "user",
        }
    }
}

/// A rule without its amounts: the part that no override changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A token bucket.
    Bucket {
        /// Milliseconds in which the amount accrues; at least 1.
        per_ms: u64,
    },
    /// A total per period.
    Period {
        /// The epochs.
        calendar: Arc<Calendar>,
        /// Most unused units carried into the next epoch.
        carry_over: u64,
        /// Whether debt outlives the epoch (the default).
        carry_debt: bool,
    },
    /// A cap on what is held at the same time.
    Concurrency,
}

/// How much, and how it comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A token bucket: refills `amount` every `per_ms`, holds at most `burst`.
    Bucket {
        /// Units refilled per `per_ms`.
        amount: u64,
        /// Milliseconds in which `amount` accrues; at least 1.
        per_ms: u64,
        /// Most units held; at least 1 unless the amount is 0.
        burst: u64,
    },
    /// A total per period.
    Period {
        /// Units per epoch. 0 admits nothing.
        limit: u64,
        /// The epochs.
        calendar: Arc<Calendar>,
        /// Most unused units carried into the next epoch.
        carry_over: u64,
        /// Whether debt outlives the epoch (the default).
        carry_debt: bool,
    },
    /// At most this many at the same time.
    Concurrency {
        /// Units held at the same time. 0 admits nothing.
        limit: u64,
    },
    /// Counted, never refused; shown as null.
    Unlimited {
        /// The epochs that usage is counted in; `None` = the single epoch `continuous` (buckets and concurrency).
        calendar: Option<Arc<Calendar>>,
    },
}

/// Thresholds in percent of the ladder's ratio (docs/ledger.md, "Decisions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// From here on DEGRADED_LIGHT and one alert; default 80.
    pub alert_percent: u8,
    /// From here on DEGRADED_HEAVY; default 95.
    pub degrade_percent: u8,
}

impl Default for Ladder {
    fn default() -> Self {
        Ladder { alert_percent: 80, degrade_percent: 95 }
    }
}
