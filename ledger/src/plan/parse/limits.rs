//! The `limits` of a plan.

use std::collections::BTreeMap;

use super::ZoneData;
use super::matching::read_match;
use super::reader::{Fields, Place, Problems, shorten};
use super::rules::read_rule;
use super::scalars::{read_amount, read_percent, read_word};
use crate::ids::LimitId;
use crate::limits::LIMITS_PER_PLAN_MAX;
use crate::plan::{Ladder, Level, Limit, Match, Scope, Shape};
use crate::unit::Unit;

const KEYS: [&str; 8] =
    ["unit", "scope", "match", "bucket", "period", "concurrency", "ladder", "overdraft_max"];

/// Reads the mapping of limits. `None` stands for one that is declared and has a fault of its own.
pub(super) fn read_limits(
    place: &Place<'_>,
    problems: &mut Problems,
    currency: Option<&str>,
    zones: &ZoneData<'_>,
) -> BTreeMap<LimitId, Option<Limit>> {
    let mut limits = BTreeMap::new();
    let entries = place.entries(problems, "a mapping from limit ids to limits");
    if entries.len() > LIMITS_PER_PLAN_MAX {
        let count = entries.len();
        place.complain(problems, format!("has {count} limits; at most {LIMITS_PER_PLAN_MAX} are possible"));
        return limits;
    }
    for (entry, place) in entries {
        match entry.key.parse::<LimitId>() {
            Ok(id) => {
                let limit = read_limit(&place, problems, id.clone(), currency, zones);
                limits.insert(id, limit);
            }
            Err(error) => problems.add(entry.line, place.path, format!("is a limit id that {error}")),
        }
    }
    limits
}

fn read_limit(
    place: &Place<'_>,
    problems: &mut Problems,
    id: LimitId,
    currency: Option<&str>,
    zones: &ZoneData<'_>,
) -> Option<Limit> {
    let fields = place.fields(problems, &KEYS);
    let words = Unit::ALL.map(Unit::as_str);
    let unit = fields.require(problems, "unit").and_then(|place| read_word(place, problems, &words));
    let unit = unit.and_then(|word| word.parse::<Unit>().ok());
    let scope = fields.require(problems, "scope").and_then(|place| read_scope(place, problems));
    let matches = fields.get("match").map_or_else(Match::default, |place| read_match(place, problems));
    if unit == Some(Unit::Micros) && currency.is_none() {
        place.complain(problems, "counts money (micros), and the plan has no \"currency\"");
    }
    let rule = read_rule(&fields, problems, unit, currency, zones);
    let shape = rule.as_ref().map(|(shape, _)| shape);
    let ladder = read_ladder(&fields, problems, shape);
    let overdraft_max = match (fields.get("overdraft_max"), unit) {
        (Some(place), Some(unit)) => Some(read_amount(place, problems, unit, currency)?),
        _ => None,
    };
    let (shape, rule) = rule?;
    Some(Limit { id, unit: unit?, scope: scope?, matches, shape, rule, ladder, overdraft_max })
}

/// `global`, `tenant` or `tenant+user`, each with any of `+route`, `+model`, `+region`; `user` is short for `tenant+user`.
fn read_scope(place: &Place<'_>, problems: &mut Problems) -> Option<Scope> {
    let wanted = "global, tenant or tenant+user, with any of +route, +model, +region";
    let (text, _) = place.scalar(problems, wanted)?;
    let mut scope = Scope::default();
    let mut seen = Vec::new();
    for (at, word) in text.split('+').map(str::trim).enumerate() {
        let known = match (at, word) {
            (0, "global") => true,
            (0, "tenant") => {
                scope.level = Level::Tenant;
                true
            }
            (0, "user") => {
                scope.level = Level::User;
                true
            }
            (1, "user") if scope.level == Level::Tenant => {
                scope.level = Level::User;
                true
            }
            (1.., "route") => set_once(&mut scope.route),
            (1.., "model") => set_once(&mut scope.model),
            (1.., "region") => set_once(&mut scope.region),
            _ => false,
        };
        if !known {
            let hint = problems.hint(word, ["global", "tenant", "user", "route", "model", "region"]);
            let hint = if seen.contains(&word) { "; it stands there twice".to_owned() } else { hint };
            place.complain(problems, format!("must be {wanted}, is {:?}{hint}", shorten(text)));
            return None;
        }
        seen.push(word);
    }
    Some(scope)
}

fn set_once(flag: &mut bool) -> bool {
    !std::mem::replace(flag, true)
}

/// `none`, or `{alert: 80%, degrade: 95%}`. Period limits have one unless they say `none`.
fn read_ladder(fields: &Fields<'_>, problems: &mut Problems, shape: Option<&Shape>) -> Option<Ladder> {
    let Some(place) = fields.get("ladder") else {
        return matches!(shape, Some(Shape::Period { .. })).then(Ladder::default);
    };
    if !place.is_map() {
        read_word(place, problems, &["none"]);
        return None;
    }
    if let Some(Shape::Bucket { .. }) = shape {
        place.complain(problems, "means nothing for a bucket, which has no total to be a share of");
    }
    let inner = place.fields(problems, &["alert", "degrade"]);
    let mut percent =
        |key, default| inner.get(key).map_or(Some(default), |place| read_percent(place, problems, 1));
    let usual = Ladder::default();
    let (alert, degrade) = (percent("alert", usual.alert_percent), percent("degrade", usual.degrade_percent));
    let (alert_percent, degrade_percent) = (alert?, degrade?);
    if alert_percent > degrade_percent {
        place.complain(
            problems,
            format!("alerts at {alert_percent}%, after it degrades at {degrade_percent}%"),
        );
    }
    Some(Ladder { alert_percent, degrade_percent })
}
