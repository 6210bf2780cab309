//! What is said of tenants, tiers and users: amounts in place of those of a limit's own rule.

use std::collections::BTreeMap;

use crate::ids::{LimitId, TierId, UserId};

/// Amounts that replace those of a limit's own rule, by limit id.
pub type Overrides = BTreeMap<LimitId, Override>;

/// What an override puts in place of a rule's amount. Period, zone and refill interval stay the limit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// Counted, never refused.
    Unlimited,
    /// Another amount; 0 admits nothing.
    Amount {
        /// Period and concurrency: the limit. Bucket: units refilled per `per_ms`.
        amount: u64,
        /// Bucket only: most units held; `None`: the same as `amount`.
        burst: Option<u64>,
    },
}

/// What is known of one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantRecord {
    /// The tenant's tier; `None`: the plan's default tier.
    pub tier: Option<TierId>,
    /// Rules for this tenant, over those of its tier.
    pub overrides: Overrides,
    /// Rules for single users of this tenant, over everything else.
    pub users: BTreeMap<UserId, Overrides>,
}
