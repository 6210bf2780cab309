//! How a plan is rolled out, and how far what was rolled back has drained.

use holdfast_proto::v1;
use serde_json::{Map, Value};

use super::words::{instant, unit};
use crate::output::{Rows, grouped, put_u64};

/// The document that programs read.
pub fn plan_status_document(status: &v1::PlanStatusResponse) -> Value {
    let mut object = Map::new();
    put_u64(&mut object, "revision", status.revision);
    put_u64(&mut object, "generation", status.generation);
    object.insert("rollouts".into(), status.routes.iter().map(rollout_document).collect());
    object.insert("rollbacks".into(), status.rollbacks.iter().map(rollback_document).collect());
    object.into()
}

fn rollout_document(route: &v1::RouteRollout) -> Value {
    let mut object = Map::new();
    object.insert("route".into(), route.route.clone().into());
    object.insert("rollout".into(), route.rollout.clone().into());
    object.insert("since".into(), route.since_ms.map(instant).into());
    for (name, count) in [
        ("normal", route.normal),
        ("degraded_light", route.degraded_light),
        ("degraded_heavy", route.degraded_heavy),
        ("undecided", route.undecided),
    ] {
        put_u64(&mut object, name, count);
    }
    let mut rejected = Map::new();
    for one in &route.rejected {
        put_u64(&mut rejected, &one.limit, one.count);
    }
    object.insert("rejected".into(), rejected.into());
    object.into()
}

fn rollback_document(rollback: &v1::RollbackStatus) -> Value {
    let mut object = Map::new();
    for (name, value) in [
        ("generation", rollback.generation),
        ("restored", rollback.restored),
        ("first", rollback.first),
        ("last", rollback.last),
        ("at_ms", rollback.at_ms),
        ("reserved", rollback.reserved),
        ("started", rollback.started),
        ("usage_unknown", rollback.usage_unknown),
    ] {
        put_u64(&mut object, name, value);
    }
    object.insert("actor".into(), rollback.actor.clone().into());
    object.insert("drained".into(), rollback.drained.into());
    let mut held = Map::new();
    for amount in &rollback.held {
        put_wide(&mut held, &unit(amount.unit), &amount.amount);
    }
    object.insert("held".into(), held.into());
    let mut debts = Map::new();
    for debt in &rollback.debts {
        put_wide(&mut debts, &debt.limit, &debt.debt);
    }
    object.insert("debts".into(), debts.into());
    object.into()
}

/// A decimal number: as a number if it has 64 bits at most, else as text under the name with `_str`.
fn put_wide(object: &mut Map<String, Value>, name: &str, amount: &str) {
    match amount.parse() {
        Ok(amount) => put_u64(object, name, amount),
        Err(_) => drop(object.insert(format!("{name}_str"), amount.into())),
    }
}

/// What people read.
pub fn plan_status_text(status: &v1::PlanStatusResponse) -> String {
    let mut text = format!("generation {} is in force\n", status.generation);
    if !status.routes.is_empty() {
        let mut rows = Rows::new([
            "route",
            "rollout",
            "since",
            "normal",
            "light",
            "heavy",
            "undecided",
            "would be refused by",
        ]);
        for route in &status.routes {
            let rejected: Vec<String> =
                route.rejected.iter().map(|one| format!("{} {}", one.limit, grouped(one.count))).collect();
            rows.add([
                route.route.clone(),
                route.rollout.clone(),
                route.since_ms.map_or_else(String::new, instant),
                grouped(route.normal),
                grouped(route.degraded_light),
                grouped(route.degraded_heavy),
                grouped(route.undecided),
                rejected.join(", "),
            ]);
        }
        text += &format!("\n{}", rows.text());
    }
    if !status.rollbacks.is_empty() {
        let mut rows =
            Rows::new(["rolled back", "to", "by", "at", "reserved", "started", "unknown", "holding", "owed"]);
        for rollback in &status.rollbacks {
            let held = rollback.held.iter().map(|held| format!("{} {}", held.amount, unit(held.unit)));
            let owed = rollback.debts.iter().map(|debt| format!("{} {}", debt.limit, debt.debt));
            let owed: Vec<String> = owed.collect();
            rows.add([
                format!("{} to {}", rollback.first, rollback.last),
                rollback.restored.to_string(),
                format!("{} ({})", rollback.generation, rollback.actor),
                instant(rollback.at_ms),
                grouped(rollback.reserved),
                grouped(rollback.started),
                grouped(rollback.usage_unknown),
                if rollback.drained { "drained".to_owned() } else { held.collect::<Vec<_>>().join(", ") },
                owed.join(", "),
            ]);
        }
        text += &format!("\n{}", rows.text());
    }
    text
}
