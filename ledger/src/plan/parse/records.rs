//! Tenants' records, and overrides wherever they stand.

use std::collections::{BTreeMap, BTreeSet};

use super::RECORD_SCHEMA;
use super::document::read_schema;
use super::reader::{Place, Problems};
use super::scalars::{Quantity, read_name, read_quantity};
use crate::ids::{LimitId, TierId};
use crate::plan::{Level, Limit, Override, Overrides, Plan, PlanError, Shape, TenantRecord};

/// What references in a document are checked against.
pub(super) struct Known<'p> {
    pub currency: Option<&'p str>,
    /// `None`: the limit is declared, with a fault of its own that is reported there.
    pub limits: &'p BTreeMap<LimitId, Option<Limit>>,
    pub tiers: BTreeSet<String>,
}

/// [`Known`] for a record that is read under a finished plan.
pub(super) struct KnownPlan<'p> {
    plan: &'p Plan,
    limits: BTreeMap<LimitId, Option<Limit>>,
}

impl<'p> Known<'p> {
    pub fn of_plan(plan: &'p Plan) -> KnownPlan<'p> {
        KnownPlan {
            plan,
            limits: plan.limits.iter().map(|limit| (limit.id.clone(), Some(limit.clone()))).collect(),
        }
    }

    pub fn check_tier(&self, place: &Place<'_>, problems: &mut Problems, tier: &TierId) {
        if !self.tiers.contains(tier.as_str()) {
            let hint = problems.hint(tier.as_str(), self.tiers.iter().map(String::as_str));
            place
                .complain(problems, format!("is {:?}, which is not a tier of the plan{hint}", tier.as_str()));
        }
    }
}

impl KnownPlan<'_> {
    fn known(&self) -> Known<'_> {
        let tiers = self.plan.tiers.keys().map(|tier| tier.as_str().to_owned()).collect();
        Known { currency: self.plan.currency.as_deref(), limits: &self.limits, tiers }
    }
}

/// A record in a document of its own.
pub(super) fn read_record_document(
    root: &Place<'_>,
    problems: &mut Problems,
    plan: &KnownPlan<'_>,
) -> TenantRecord {
    let fields = root.fields(problems, &["schema", "tier", "limits", "users"]);
    read_schema(&fields, problems, RECORD_SCHEMA, false);
    read_record_fields(&fields, problems, &plan.known())
}

/// A record under `tenants` of a plan.
pub(super) fn read_record(place: &Place<'_>, problems: &mut Problems, known: &Known<'_>) -> TenantRecord {
    let fields = place.fields(problems, &["tier", "limits", "users"]);
    read_record_fields(&fields, problems, known)
}

fn read_record_fields(
    fields: &super::reader::Fields<'_>,
    problems: &mut Problems,
    known: &Known<'_>,
) -> TenantRecord {
    let mut record = TenantRecord::default();
    if let Some(place) = fields.get("tier")
        && let Some(tier) = read_name::<TierId>(place, problems, "a tier of the plan")
    {
        known.check_tier(place, problems, &tier);
        record.tier = Some(tier);
    }
    if let Some(place) = fields.get("limits") {
        record.overrides = read_overrides(place, problems, known, false);
    }
    if let Some(place) = fields.get("users") {
        for (entry, place) in place.entries(problems, "a mapping from users to their limits") {
            let inner = place.fields(problems, &["limits"]);
            let overrides = inner.get("limits").map(|place| read_overrides(place, problems, known, true));
            match entry.key.parse() {
                Ok(user) => {
                    record.users.insert(user, overrides.unwrap_or_default());
                }
                Err(error) => problems.add(entry.line, place.path, format!("is a user id that {error}")),
            }
        }
    }
    record
}

/// Amounts by limit id. `of_user`: only limits of the user level make sense.
pub(super) fn read_overrides(
    place: &Place<'_>,
    problems: &mut Problems,
    known: &Known<'_>,
    of_user: bool,
) -> Overrides {
    let mut overrides = Overrides::new();
    for (entry, place) in place.entries(problems, "a mapping from limits to amounts") {
        let Some((id, declared)) = known.limits.get_key_value(entry.key.as_str()) else {
            let hint = problems.hint(&entry.key, known.limits.keys().map(LimitId::as_str));
            problems.add(entry.line, place.path, format!("is not a limit of the plan{hint}"));
            continue;
        };
        let Some(limit) = declared else { continue };
        if let Err(problem) = check_level(limit, of_user) {
            problems.add(entry.line, place.path, problem);
            continue;
        }
        if let Some(found) = read_override(&place, problems, limit, known.currency) {
            match check_override(limit, found) {
                Ok(()) => {
                    overrides.insert(id.clone(), found);
                }
                Err(problem) => place.complain(problems, problem),
            }
        }
    }
    overrides
}

/// An amount, `unlimited`, or a mapping of `amount` and `burst`.
fn read_override(
    place: &Place<'_>,
    problems: &mut Problems,
    limit: &Limit,
    currency: Option<&str>,
) -> Option<Override> {
    let (amount, burst) = if place.is_map() {
        let fields = place.fields(problems, &["amount", "burst"]);
        let amount =
            fields.require(problems, "amount").and_then(|p| read_quantity(p, problems, limit.unit, currency));
        let burst = match fields.get("burst") {
            Some(place) => Some(super::scalars::read_amount(place, problems, limit.unit, currency)?),
            None => None,
        };
        (amount?, burst)
    } else {
        (read_quantity(place, problems, limit.unit, currency)?, None)
    };
    match amount {
        Quantity::Amount(amount) => Some(Override::Amount { amount, burst }),
        Quantity::Unlimited if burst.is_some() => {
            place.complain(problems, "is unlimited and has a burst; leave out the burst");
            None
        }
        Quantity::Unlimited => Some(Override::Unlimited),
    }
}

fn check_level(limit: &Limit, of_user: bool) -> Result<(), String> {
    match limit.scope.level {
        Level::Global => Err("is a limit of the global level, which has one amount for all".to_owned()),
        Level::Tenant if of_user => {
            Err("is a limit of the tenant level; users have limits of the user level".to_owned())
        }
        Level::Tenant | Level::User => Ok(()),
    }
}

fn check_override(limit: &Limit, found: Override) -> Result<(), String> {
    match (found, &limit.shape) {
        (Override::Unlimited, _) => Ok(()),
        (Override::Amount { burst: Some(_), .. }, Shape::Period { .. } | Shape::Concurrency) => {
            Err("has a burst; only buckets have one".to_owned())
        }
        (Override::Amount { amount, burst }, shape) => super::rules::check_rule_amounts(shape, amount, burst),
    }
}

/// See [`Plan::check_record`].
pub(super) fn check_record(plan: &Plan, record: &TenantRecord) -> Vec<PlanError> {
    let mut problems = Problems::default();
    if let Some(tier) = &record.tier
        && !plan.tiers.contains_key(tier)
    {
        problems.add(0, "tier", format!("is {:?}, which is not a tier of the plan", tier.as_str()));
    }
    check_overrides(plan, &record.overrides, false, "limits", &mut problems);
    for (user, overrides) in &record.users {
        check_overrides(plan, overrides, true, &format!("users.{user}.limits"), &mut problems);
    }
    problems.into_errors()
}

fn check_overrides(plan: &Plan, overrides: &Overrides, of_user: bool, path: &str, problems: &mut Problems) {
    for (id, found) in overrides {
        let checked = match plan.limit(id) {
            None => Err("is not a limit of the plan".to_owned()),
            Some(limit) => check_level(limit, of_user).and_then(|()| check_override(limit, *found)),
        };
        if let Err(problem) = checked {
            problems.add(0, format!("{path}.{id}"), problem);
        }
    }
}
