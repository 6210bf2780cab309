//! What the shadow lane decided.

use std::sync::Arc;

use holdfast_ledger::plan::{Rollout, RolloutBy, Route};
use holdfast_ledger::shadow::{ShadowCounts, ShadowDecision};

use crate::field::{FieldError, InField, name, required};
use crate::v1;
use crate::v1::shadow_decision::Decision as Wire;
use crate::words::{Word, word};

impl From<&ShadowDecision> for v1::ShadowDecision {
    fn from(decision: &ShadowDecision) -> Self {
        let decision = match decision {
            ShadowDecision::Admitted { tier } => Wire::Admitted(tier.number()),
            ShadowDecision::Rejected(rejection) => Wire::Rejected(rejection.into()),
            ShadowDecision::Undecided(why) => Wire::Undecided(why.number()),
        };
        v1::ShadowDecision { decision: Some(decision) }
    }
}

impl TryFrom<&v1::ShadowDecision> for ShadowDecision {
    type Error = FieldError;

    fn try_from(wire: &v1::ShadowDecision) -> Result<Self, FieldError> {
        Ok(match required("decision", wire.decision.as_ref())? {
            Wire::Admitted(tier) => ShadowDecision::Admitted { tier: word("admitted", *tier)? },
            Wire::Rejected(rejection) => ShadowDecision::Rejected(rejection.try_into().in_field("rejected")?),
            Wire::Undecided(why) => ShadowDecision::Undecided(word("undecided", *why)?),
        })
    }
}

/// The decision in a field that is absent in the enforced lane.
pub(crate) fn shadow_or_none(
    wire: Option<&v1::ShadowDecision>,
) -> Result<Option<Arc<ShadowDecision>>, FieldError> {
    wire.map(ShadowDecision::try_from).transpose().map(|found| found.map(Arc::new)).in_field("shadow")
}

impl From<&ShadowCounts> for v1::StoredShadow {
    fn from(counts: &ShadowCounts) -> Self {
        let ShadowCounts { route, since_ms, admitted, rejected: _, undecided } = counts;
        v1::StoredShadow {
            route: route.as_str().to_owned(),
            since_ms: *since_ms,
            admitted: admitted.to_vec(),
            rejected: rejected(counts),
            undecided: *undecided,
        }
    }
}

impl TryFrom<v1::StoredShadow> for ShadowCounts {
    type Error = FieldError;

    fn try_from(wire: v1::StoredShadow) -> Result<Self, FieldError> {
        let admitted = wire.admitted.try_into().map_err(|counts: Vec<u64>| {
            FieldError::new("admitted", format!("has {} tiers, not 3", counts.len()))
        })?;
        let count = |one: v1::LimitCount| Ok((name("rejected", &one.limit)?, one.count));
        Ok(ShadowCounts {
            route: name("route", &wire.route)?,
            since_ms: wire.since_ms,
            admitted,
            rejected: wire.rejected.into_iter().map(count).collect::<Result<_, FieldError>>()?,
            undecided: wire.undecided,
        })
    }
}

fn rejected(counts: &ShadowCounts) -> Vec<v1::LimitCount> {
    let count = |(limit, count): (&holdfast_ledger::ids::LimitId, &u64)| v1::LimitCount {
        limit: limit.as_str().to_owned(),
        count: *count,
    };
    counts.rejected.iter().map(count).collect()
}

/// How a route is rolled out and what its shadow lane decided; `None`: it is enforced for everybody.
pub fn encode_rollout(route: &Route, counts: Option<&ShadowCounts>) -> Option<v1::RouteRollout> {
    let rollout = match route.rollout {
        Rollout::Enforce => return None,
        Rollout::Shadow => "shadow".to_owned(),
        Rollout::Percent { percent, by: RolloutBy::Tenant } => format!("{percent}%"),
        Rollout::Percent { percent, by: RolloutBy::User } => format!("{percent}% by user"),
    };
    let [normal, degraded_light, degraded_heavy] = counts.map_or([0; 3], |counts| counts.admitted);
    Some(v1::RouteRollout {
        route: route.name.as_str().to_owned(),
        rollout,
        since_ms: counts.map(|counts| counts.since_ms),
        normal,
        degraded_light,
        degraded_heavy,
        rejected: counts.map(rejected).unwrap_or_default(),
        undecided: counts.map_or(0, |counts| counts.undecided),
    })
}
