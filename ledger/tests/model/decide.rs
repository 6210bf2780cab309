//! Decisions of the naive model: which legs a request has, whether a limit says no, which tier it is.

use holdfast_ledger::answer::{Reason, Tier};
use holdfast_ledger::command::Request;
use holdfast_ledger::plan::{Level, Limit, Plan, Rollout, RolloutBy, Route, Rule};
use holdfast_ledger::record::{Lane, LineageKey};
use holdfast_ledger::{Amounts, Unit};

use crate::lineage::Balance;

/// The limits that count a request, with the amount they count, by id.
pub fn legs_of<'a>(plan: &'a Plan, request: &'a Request, asked: Amounts) -> Vec<(&'a Limit, u64)> {
    plan.limits_for(request).filter_map(|limit| asked.get(limit.unit).map(|amount| (limit, amount))).collect()
}

/// Which balance of a limit a request draws on.
pub fn key_of(limit: &Limit, route: &Route, request: &Request) -> LineageKey {
    let scope = limit.scope;
    LineageKey {
        limit: limit.id.clone(),
        tenant: (scope.level != Level::Global).then(|| request.tenant.clone()),
        user: if scope.level == Level::User { request.user.clone() } else { None },
        route: scope.route.then(|| route.name.clone()),
        model: if scope.model { request.model.clone() } else { None },
        region: if scope.region { request.region.clone() } else { None },
        lane: lane_of(route, request),
    }
}

/// The lane of a request: its subject is hashed, and the range of the hash cut into 100 equal pieces.
pub fn lane_of(route: &Route, request: &Request) -> Lane {
    let (percent, with_user) = match route.rollout {
        Rollout::Shadow => return Lane::Shadow,
        Rollout::Enforce => return Lane::Enforced,
        Rollout::Percent { percent, by } => (percent, by == RolloutBy::User),
    };
    let mut parts = vec!["holdfast.rollout.v1", route.name.as_str(), request.tenant.as_str()];
    parts.extend(request.user.as_ref().filter(|_| with_user).map(|user| user.as_str()));
    let hash = u128::from(xxhash_rust::xxh3::xxh3_64(parts.join("\0").as_bytes()));
    // The first hash that is beyond the share.
    let end = (u128::from(percent) << 64).div_ceil(100);
    if hash < end { Lane::Enforced } else { Lane::Shadow }
}

/// What each unit that was reserved used: held amounts for requests that nothing is said of, 0 for other units and for slots.
pub fn actual_of(reserved: Amounts, said: Amounts) -> Amounts {
    let mut actual = Amounts::NONE;
    for (unit, held) in reserved.iter() {
        let used = match unit {
            Unit::Slots => 0,
            Unit::Requests => said.get(unit).unwrap_or(held),
            Unit::Tokens | Unit::Micros => said.get(unit).unwrap_or(0),
        };
        actual.set(unit, Some(used));
    }
    actual
}

/// The order of reporting: frozen, never fits, debt, then the kinds.
pub fn reason_rank(reason: Reason) -> u8 {
    match reason {
        Reason::Frozen => 0,
        Reason::NeverFits => 1,
        Reason::Debt => 2,
        Reason::Held | Reason::Spent => 3,
    }
}

/// Whether a limit refuses an amount, and why.
pub fn hit(balance: &Balance, amount: u64) -> Option<Reason> {
    let ask = i128::from(amount);
    if matches!(balance.rule.as_ref()?, Rule::Unlimited { .. }) {
        return None;
    }
    let most_ever = balance.most_ever;
    if balance.debt == 0 && ask <= balance.available {
        None
    } else if ask > most_ever.max(balance.available) {
        Some(Reason::NeverFits)
    } else if balance.debt > 0 {
        Some(Reason::Debt)
    } else if balance.available + balance.held >= ask {
        Some(Reason::Held)
    } else {
        Some(Reason::Spent)
    }
}

/// The rung that a limit's ladder gives once the request is counted.
pub fn tier_of(limit: &Limit, balance: &Balance) -> Tier {
    let (Some(ladder), false) = (limit.ladder, matches!(balance.rule, Some(Rule::Unlimited { .. }))) else {
        return Tier::Normal;
    };
    let share = 100 * (balance.held + balance.spent + balance.earlier_repaid);
    // Of nothing everything is used.
    let reaches = |percent: u8| balance.gives <= 0 || share >= i128::from(percent) * balance.gives;
    if reaches(ladder.degrade_percent) {
        Tier::DegradedHeavy
    } else if reaches(ladder.alert_percent) {
        Tier::DegradedLight
    } else {
        Tier::Normal
    }
}
