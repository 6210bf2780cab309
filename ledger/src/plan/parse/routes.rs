//! The `routes` of a plan.

use std::collections::BTreeMap;

use super::door::{read_degrade, read_on_unavailable};
use super::matching::read_match;
use super::reader::{Fields, Place, Problems, shorten};
use super::scalars::{read_amounts, read_duration_ms, read_name, read_percent, read_whole};
use crate::ids::RouteName;
use crate::limits::{
    CORRECTION_WINDOW_MS, CORRECTION_WINDOW_MS_MAX, DURATION_MS_MAX, HOLD_TTL_MS, HOLD_TTL_MS_MAX,
    ROUTES_PER_PLAN_MAX, SHARD_TTL_MS, USAGE_DEADLINE_MS, USAGE_DEADLINE_MS_MAX,
};
use crate::plan::{Emergency, Match, Rollout, RolloutBy, Route};
use crate::unit::{Amounts, Unit};

const KEYS: [&str; 16] = [
    "name",
    "match",
    "estimator",
    "reservation_max",
    "hold_ttl",
    "hold_ttl_max",
    "usage_deadline",
    "usage_deadline_max",
    "correction_window",
    "priority",
    "debt_max",
    "execution_max",
    "rollout",
    "degrade",
    "on_unavailable",
    "emergency",
];

/// Reads the list of routes; the first that matches a request admits it.
pub(super) fn read_routes(place: &Place<'_>, problems: &mut Problems, currency: Option<&str>) -> Vec<Route> {
    if !place.is_list() {
        place.complain(problems, format!("must be a list of routes, is {}", place.node.describe()));
        return Vec::new();
    }
    let items = place.items();
    if items.is_empty() {
        place.complain(problems, "is an empty list; without a route nothing is admitted");
    }
    if items.len() > ROUTES_PER_PLAN_MAX {
        place.complain(
            problems,
            format!("has {} routes; at most {ROUTES_PER_PLAN_MAX} are possible", items.len()),
        );
        return Vec::new();
    }
    let mut first_lines = BTreeMap::new();
    let mut takes_all: Option<usize> = None;
    let mut routes = Vec::new();
    for item in &items {
        let Some(route) = read_route(item, problems, currency) else { continue };
        if let Some(first) = first_lines.insert(route.name.clone(), item.line()) {
            item.complain(
                problems,
                format!("has the name {:?} of the route on line {first}", route.name.as_str()),
            );
        }
        match takes_all {
            Some(line) => item
                .complain(problems, format!("is never reached: the route on line {line} takes everything")),
            None if takes_everything(&route.matches) => takes_all = Some(item.line()),
            None => {}
        }
        routes.push(route);
    }
    routes
}

fn takes_everything(matches: &Match) -> bool {
    let any_route = matches.route.is_empty() || matches.route.iter().any(|pattern| pattern == "*");
    any_route && matches.model.is_empty() && matches.region.is_empty()
}

fn read_route(place: &Place<'_>, problems: &mut Problems, currency: Option<&str>) -> Option<Route> {
    let fields = place.fields(problems, &KEYS);
    let name = fields
        .require(problems, "name")
        .and_then(|p| read_name::<RouteName>(p, problems, "the route's name"));
    let matches = fields.get("match").map(|place| read_match(place, problems));
    let estimator_digest = fields.get("estimator").and_then(|place| read_digest(place, problems));
    let mut amounts = |key, least| match fields.get(key) {
        Some(place) => read_amounts(place, problems, least, currency),
        None => Amounts::NONE,
    };
    let reservation_max = amounts("reservation_max", 1);
    let debt_max = amounts("debt_max", 0);
    let execution_max = amounts("execution_max", 1);
    let (hold_ttl_ms, hold_ttl_ms_max) =
        read_span(&fields, problems, ("hold_ttl", "hold_ttl_max"), (HOLD_TTL_MS, HOLD_TTL_MS_MAX));
    let (usage_deadline_ms, usage_deadline_ms_max) = read_span(
        &fields,
        problems,
        ("usage_deadline", "usage_deadline_max"),
        (USAGE_DEADLINE_MS, USAGE_DEADLINE_MS_MAX),
    );
    let correction_window_ms = fields
        .get("correction_window")
        .and_then(|place| read_duration_ms(place, problems, 1, CORRECTION_WINDOW_MS_MAX))
        .unwrap_or(CORRECTION_WINDOW_MS);
    let priority =
        fields.get("priority").and_then(|place| read_whole(place, problems, 0, u64::from(u32::MAX)));
    let rollout = fields.get("rollout").and_then(|place| read_rollout(place, problems)).unwrap_or_default();
    let degrade = fields.get("degrade").map(|place| read_degrade(place, problems)).unwrap_or_default();
    let on_unavailable = fields
        .get("on_unavailable")
        .and_then(|place| read_on_unavailable(place, problems))
        .unwrap_or_default();
    let emergency = fields.get("emergency").and_then(|place| read_emergency(place, problems, currency));
    let name = name?;
    let matches =
        matches.unwrap_or_else(|| Match { route: vec![name.as_str().to_owned()], ..Match::default() });
    Some(Route {
        name,
        matches,
        estimator_digest,
        reservation_max,
        hold_ttl_ms,
        hold_ttl_ms_max,
        usage_deadline_ms,
        usage_deadline_ms_max,
        correction_window_ms,
        priority: priority.and_then(|priority| u32::try_from(priority).ok()).unwrap_or(0),
        debt_max,
        execution_max,
        rollout,
        degrade,
        on_unavailable,
        emergency,
    })
}

/// A duration and the longest that a caller may ask for, which is never less.
fn read_span(
    fields: &Fields<'_>,
    problems: &mut Problems,
    (key, key_max): (&str, &str),
    (default, default_max): (u64, u64),
) -> (u64, u64) {
    let given = fields.get(key).map(|place| read_duration_ms(place, problems, 1, DURATION_MS_MAX));
    let given_max = fields.get(key_max).map(|place| read_duration_ms(place, problems, 1, DURATION_MS_MAX));
    let longest = match given_max {
        Some(longest) => longest,
        None => Some(default_max.max(given.flatten().unwrap_or(default))),
    };
    let usual = given.unwrap_or_else(|| Some(default.min(longest.unwrap_or(default))));
    if let (Some(usual), Some(longest), Some(place)) = (usual, longest, fields.get(key_max))
        && usual > longest
    {
        place.complain(problems, format!("is {longest} ms, less than {key:?} with {usual} ms"));
    }
    (usual.unwrap_or(default), longest.unwrap_or(default_max))
}

fn read_digest(place: &Place<'_>, problems: &mut Problems) -> Option<String> {
    let (text, _) = place.scalar(problems, "a digest, sha256: and 64 hexadecimal digits")?;
    let hex = text.strip_prefix("sha256:").unwrap_or("");
    if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Some(text.to_owned());
    }
    let shown = shorten(text);
    place.complain(
        problems,
        format!("is {shown:?}; a digest is sha256: and 64 hexadecimal digits in lower case"),
    );
    None
}

fn read_rollout(place: &Place<'_>, problems: &mut Problems) -> Option<Rollout> {
    if place.is_map() {
        let fields = place.fields(problems, &["percent", "by"]);
        let percent = fields.require(problems, "percent").and_then(|place| read_percent(place, problems, 0));
        let by = match fields.get("by") {
            Some(place) => read_rollout_by(place, problems),
            None => Some(RolloutBy::default()),
        };
        return Some(Rollout::Percent { percent: percent?, by: by? });
    }
    let wanted = "enforce, shadow or a percentage such as 5%";
    match place.scalar(problems, wanted)? {
        ("enforce", _) => Some(Rollout::Enforce),
        ("shadow", _) => Some(Rollout::Shadow),
        (text, false) if text.ends_with('%') => {
            let by = RolloutBy::default();
            read_percent(place, problems, 0).map(|percent| Rollout::Percent { percent, by })
        }
        (text, _) => {
            let hint = problems.hint(text, ["enforce", "shadow"]);
            place.complain(problems, format!("must be {wanted}, is {:?}{hint}", shorten(text)));
            None
        }
    }
}

fn read_rollout_by(place: &Place<'_>, problems: &mut Problems) -> Option<RolloutBy> {
    match place.scalar(problems, "tenant or user")? {
        ("tenant", _) => Some(RolloutBy::Tenant),
        ("user", _) => Some(RolloutBy::User),
        (text, _) => {
            let hint = problems.hint(text, ["tenant", "user"]);
            place.complain(problems, format!("must be tenant or user, is {:?}{hint}", shorten(text)));
            None
        }
    }
}

fn read_emergency(place: &Place<'_>, problems: &mut Problems, currency: Option<&str>) -> Option<Emergency> {
    let fields = place.fields(problems, &["per_gateway_max", "total_max", "per_user_max", "ttl"]);
    let mut amounts =
        |key| fields.require(problems, key).map(|place| read_amounts(place, problems, 1, currency));
    let (per_gateway_max, total_max) = (amounts("per_gateway_max"), amounts("total_max"));
    let per_user_max = fields.get("per_user_max").map(|place| read_amounts(place, problems, 1, currency));
    let ttl_ms = match fields.get("ttl") {
        Some(place) => read_duration_ms(place, problems, 1_000, DURATION_MS_MAX)?,
        None => SHARD_TTL_MS,
    };
    let (per_gateway_max, total_max) = (per_gateway_max?, total_max?);
    for unit in Unit::ALL {
        match (per_gateway_max.get(unit), total_max.get(unit)) {
            (Some(each), Some(total)) if each > total => {
                place.complain(
                    problems,
                    format!("gives one gateway {each} {unit}, more than all together ({total})"),
                );
            }
            (Some(_), None) => {
                place.complain(problems, format!("bounds {unit} per gateway and not in total"))
            }
            _ => {}
        }
    }
    Some(Emergency { per_gateway_max, total_max, per_user_max: per_user_max.unwrap_or_default(), ttl_ms })
}
