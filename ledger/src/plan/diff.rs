//! What changes from one plan to another.
//!
//! Both plans are written out as facts (thing, attribute, value) in the words of the document, and the facts are compared.

use std::collections::BTreeMap;
use std::fmt;

use crate::plan::{
    Ladder, Limit, Match, Override, Overrides, Plan, Price, PriceBook, Rewrite, Rollout, RolloutBy, Route,
    Rule, Shape, TenantRecord, UnknownPrice,
};
use crate::unit::Amounts;

/// One difference between two plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, in the words of the document: `limits.tenant-qps.amount`. A thing that is added or removed whole
    /// is one change, with the thing's own path.
    pub path: String,
    /// The value before; `None`: added.
    pub before: Option<String>,
    /// The value after; `None`: removed.
    pub after: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { path, before, after } = self;
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "~ {path}: {before} → {after}"),
            (None, Some(after)) => write!(f, "+ {path}: {after}"),
            (Some(before), None) => write!(f, "- {path}: {before}"),
            (None, None) => write!(f, "  {path}"),
        }
    }
}

/// Attributes of one thing.
type Facts = BTreeMap<String, String>;

impl Plan {
    /// What `other` changes of this plan, sorted by path. Equal plans have no changes, and different ones have some.
    pub fn diff(&self, other: &Plan) -> Vec<Change> {
        let (before, after) = (self.facts(), other.facts());
        let mut changes = Vec::new();
        for (thing, old) in &before {
            match after.get(thing) {
                Some(new) => compare(thing, old, new, &mut changes),
                None => {
                    changes.push(Change { path: thing.clone(), before: Some(write_facts(old)), after: None })
                }
            }
        }
        for (thing, new) in after.iter().filter(|(thing, _)| !before.contains_key(*thing)) {
            changes.push(Change { path: thing.clone(), before: None, after: Some(write_facts(new)) });
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        let mut things = BTreeMap::new();
        let mut whole = Facts::new();
        put(&mut whole, "currency", self.currency.as_ref());
        put(&mut whole, "id_window", Some(format!("{} ms", self.id_window_ms)));
        put(&mut whole, "expiring_grace", Some(format!("{} ms", self.expiring_grace_ms)));
        put(&mut whole, "events_kept", Some(format!("{} ms", self.events_kept_ms)));
        put(&mut whole, "defaults.tier", self.default_tier.as_ref());
        let order: Vec<_> = self.routes.iter().map(|route| route.name.as_str()).collect();
        put(&mut whole, "routes", Some(order.join(", ")));
        put_overrides(&mut whole, "defaults.user.limits", &self.default_user);
        things.insert(String::new(), whole);
        things.extend(self.prices.iter().map(|prices| ("prices".to_owned(), price_facts(prices))));
        things.extend(self.routes.iter().map(|route| (format!("routes.{}", route.name), route_facts(route))));
        things.extend(self.limits.iter().map(|limit| (format!("limits.{}", limit.id), limit_facts(limit))));
        for (tier, overrides) in &self.tiers {
            let mut facts = Facts::new();
            put_overrides(&mut facts, "limits", overrides);
            put(&mut facts, "weight", self.weights.get(tier));
            things.insert(format!("tiers.{tier}"), facts);
        }
        things
            .extend(self.tenants.iter().map(|(id, record)| (format!("tenants.{id}"), record_facts(record))));
        things
    }
}

fn compare(thing: &str, old: &Facts, new: &Facts, changes: &mut Vec<Change>) {
    let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
    for key in keys.filter(|key| old.get(*key) != new.get(*key)) {
        let path = if thing.is_empty() { key.clone() } else { format!("{thing}.{key}") };
        changes.push(Change { path, before: old.get(key).cloned(), after: new.get(key).cloned() });
    }
}

fn write_facts(facts: &Facts) -> String {
    let written: Vec<_> = facts.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    if written.is_empty() { "{}".to_owned() } else { written.join(", ") }
}

fn put(facts: &mut Facts, key: &str, value: Option<impl fmt::Display>) {
    if let Some(value) = value {
        facts.insert(key.to_owned(), value.to_string());
    }
}

fn put_overrides(facts: &mut Facts, path: &str, overrides: &Overrides) {
    for (limit, found) in overrides {
        let value = match found {
            Override::Unlimited => "unlimited".to_owned(),
            Override::Amount { amount, burst: None } => amount.to_string(),
            Override::Amount { amount, burst: Some(burst) } => format!("{amount}, burst {burst}"),
        };
        facts.insert(format!("{path}.{limit}"), value);
    }
}

fn record_facts(record: &TenantRecord) -> Facts {
    let TenantRecord { tier, overrides, users } = record;
    let mut facts = Facts::new();
    put(&mut facts, "tier", tier.as_ref());
    put_overrides(&mut facts, "limits", overrides);
    for (user, overrides) in users {
        if overrides.is_empty() {
            put(&mut facts, &format!("users.{user}"), Some("{}"));
        }
        put_overrides(&mut facts, &format!("users.{user}.limits"), overrides);
    }
    facts
}

fn put_match(facts: &mut Facts, matches: &Match) {
    let Match { route, model, region } = matches;
    for (key, patterns) in [("match.route", route), ("match.model", model), ("match.region", region)] {
        put(facts, key, (!patterns.is_empty()).then(|| patterns.join(", ")));
    }
}

fn put_amounts(facts: &mut Facts, path: &str, amounts: &Amounts) {
    for (unit, amount) in amounts.iter() {
        put(facts, &format!("{path}.{unit}"), Some(amount));
    }
}

fn route_facts(route: &Route) -> Facts {
    let mut facts = Facts::new();
    put_match(&mut facts, &route.matches);
    put(&mut facts, "estimator", route.estimator_digest.as_ref());
    put_amounts(&mut facts, "reservation_max", &route.reservation_max);
    put_amounts(&mut facts, "debt_max", &route.debt_max);
    put_amounts(&mut facts, "execution_max", &route.execution_max);
    for (key, ms) in [
        ("hold_ttl", route.hold_ttl_ms),
        ("hold_ttl_max", route.hold_ttl_ms_max),
        ("usage_deadline", route.usage_deadline_ms),
        ("usage_deadline_max", route.usage_deadline_ms_max),
        ("correction_window", route.correction_window_ms),
    ] {
        put(&mut facts, key, Some(format!("{ms} ms")));
    }
    put(&mut facts, "priority", Some(route.priority));
    let rollout = match route.rollout {
        Rollout::Shadow => "shadow".to_owned(),
        Rollout::Percent { percent, by: RolloutBy::Tenant } => format!("{percent}%"),
        Rollout::Percent { percent, by: RolloutBy::User } => format!("{percent}% by user"),
        Rollout::Enforce => "enforce".to_owned(),
    };
    put(&mut facts, "rollout", Some(rollout));
    put_rewrite(&mut facts, "degrade.light", &route.degrade.light);
    put_rewrite(&mut facts, "degrade.heavy", &route.degrade.heavy);
    put(&mut facts, "on_unavailable", Some(route.on_unavailable.as_str()));
    if let Some(emergency) = &route.emergency {
        put_amounts(&mut facts, "emergency.per_gateway_max", &emergency.per_gateway_max);
        put_amounts(&mut facts, "emergency.total_max", &emergency.total_max);
        put_amounts(&mut facts, "emergency.per_user_max", &emergency.per_user_max);
        put(&mut facts, "emergency.ttl", Some(format!("{} ms", emergency.ttl_ms)));
    }
    facts
}

fn put_rewrite(facts: &mut Facts, path: &str, rewrite: &Rewrite) {
    let Rewrite { models, max_tokens, without } = rewrite;
    let models: Vec<_> = models.iter().map(|(from, to)| format!("{from} → {to}")).collect();
    put(facts, &format!("{path}.model"), (!models.is_empty()).then(|| models.join(", ")));
    put(facts, &format!("{path}.max_tokens"), *max_tokens);
    put(facts, &format!("{path}.without"), (!without.is_empty()).then(|| without.join(", ")));
}

fn price_facts(prices: &PriceBook) -> Facts {
    let PriceBook { models, unknown } = prices;
    let written = |price: &Price| {
        let Price { input, output, cached, reasoning } = price;
        format!("input {input}, output {output}, cached {cached}, reasoning {reasoning}")
    };
    let mut facts: Facts =
        models.iter().map(|(model, price)| (format!("models.{model}"), written(price))).collect();
    let unknown = match unknown {
        UnknownPrice::Refuse => "refuse".to_owned(),
        UnknownPrice::Ceiling(price) => written(price),
    };
    put(&mut facts, "unknown", Some(unknown));
    facts
}

fn limit_facts(limit: &Limit) -> Facts {
    let mut facts = Facts::new();
    put(&mut facts, "unit", Some(limit.unit));
    put(&mut facts, "scope", Some(limit.scope));
    put_match(&mut facts, &limit.matches);
    match &limit.shape {
        Shape::Bucket { per_ms } => put(&mut facts, "bucket.per", Some(format!("{per_ms} ms"))),
        Shape::Period { calendar, carry_over, carry_debt } => {
            put(&mut facts, "period.every", Some(calendar));
            put(&mut facts, "period.carry_over", Some(carry_over));
            put(&mut facts, "period.carry_debt", Some(carry_debt));
        }
        Shape::Concurrency => put(&mut facts, "concurrency", Some("slots")),
    }
    match &limit.rule {
        Rule::Bucket { amount, burst, .. } => {
            put(&mut facts, "amount", Some(amount));
            put(&mut facts, "burst", Some(burst));
        }
        Rule::Period { limit, .. } | Rule::Concurrency { limit } => put(&mut facts, "amount", Some(limit)),
        Rule::Unlimited { .. } => put(&mut facts, "amount", Some("unlimited")),
    }
    let ladder = limit.ladder.map(|Ladder { alert_percent, degrade_percent }| {
        format!("alert {alert_percent}%, degrade {degrade_percent}%")
    });
    put(&mut facts, "ladder", Some(ladder.as_deref().unwrap_or("none")));
    put(&mut facts, "overdraft_max", limit.overdraft_max);
    facts
}
