//! What a plan tells the gateways of a route: how they degrade its requests, and what they do without the ledger.
//! The book keeps it with the plan and decides nothing by it.

use super::matching::pattern_matches;
use crate::answer::Tier;
use crate::ids::ModelName;

/// How a gateway rewrites the requests of a route, by the tier that they were admitted at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Degrade {
    /// At DEGRADED_LIGHT.
    pub light: Rewrite,
    /// At DEGRADED_HEAVY.
    pub heavy: Rewrite,
}

/// How a request is made cheaper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Models in place of others: the first pattern that fits. A model that none fits stays.
    pub models: Vec<(String, ModelName)>,
    /// Most tokens of the completion.
    pub max_tokens: Option<u64>,
    /// Fields of the request that are left out.
    pub without: Vec<String>,
}

/// What a gateway does with a request of a route when the ledger is out of reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnavailable {
    /// Refuses it.
    #[default]
    Closed,
    /// Admits it from the gateway's emergency shard, if it has one.
    Shard,
    /// Lets it through uncounted.
    Open,
}

impl Degrade {
    /// What is done at a tier; `None`: nothing.
    pub fn at(&self, tier: Tier) -> Option<&Rewrite> {
        match tier {
            Tier::Normal => None,
            Tier::DegradedLight => Some(&self.light),
            Tier::DegradedHeavy => Some(&self.heavy),
        }
    }
}

impl Rewrite {
    /// The model that takes the place of this one; `None`: it stays.
    pub fn model(&self, model: &str) -> Option<&ModelName> {
        let found = self.models.iter().find(|(pattern, _)| pattern_matches(pattern, model));
        found.map(|(_, model)| model)
    }
}

impl OnUnavailable {
    /// The word for it in a plan.
    pub fn as_str(self) -> &'static str {
        match self {
            OnUnavailable::Closed => "closed",
            OnUnavailable::Shard => "shard",
            OnUnavailable::Open => "open",
        }
    }
}
