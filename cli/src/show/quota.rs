//! What a subject has used and has left.

use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use super::words::{epoch, instant, level, tier, unit};
use crate::output::{Rows, grouped, put_u64};

/// The document that programs read.
pub fn quota_document(tenant: &str, user: Option<&str>, quota: &v1::GetQuotaResponse) -> Value {
    let mut object = Map::new();
    object.insert("tenant".into(), tenant.into());
    object.insert("user".into(), user.into());
    put_u64(&mut object, "revision", quota.revision);
    put_u64(&mut object, "generation", quota.generation);
    object.insert("at".into(), instant(quota.at_ms).into());
    object.insert("limits".into(), quota.lines.iter().map(line_document).collect());
    object.into()
}

fn line_document(line: &v1::QuotaLine) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("id", line.limit_id.clone().into());
    put("level", level(line.level).into());
    put("unit", unit(line.unit).into());
    put("ratio", (line.ratio_ppm as f64 / 1e6).into());
    put("tier", tier(line.tier).into());
    put("suspended", line.suspended.into());
    put("frozen", line.frozen.into());
    put("lane", lane(line.shadow).into());
    put("reset_at", line.reset_at_ms.map(instant).into());
    put("epoch", epoch(line.epoch_start_ms).into());
    for (name, value) in [("route", &line.route), ("model", &line.model), ("region", &line.region)] {
        if let Some(value) = value {
            put(name, json!(value));
        }
    }
    for (name, value) in [
        ("used", Some(line.used)),
        ("held", Some(line.held)),
        ("limit", line.limit),
        ("remaining", line.remaining),
        ("debt", Some(line.debt)),
        ("generation", Some(line.generation)),
    ] {
        match value {
            Some(value) => put_u64(&mut object, name, value),
            None => drop(object.insert(name.to_owned(), Value::Null)),
        }
    }
    object.into()
}

/// What people read.
pub fn quota_text(quota: &v1::GetQuotaResponse) -> String {
    if quota.lines.is_empty() {
        return "no limit applies\n".to_owned();
    }
    let mut rows = Rows::new([
        "limit", "level", "unit", "used", "held", "of", "left", "ratio", "tier", "resets", "gen", "note",
    ]);
    for line in &quota.lines {
        let unlimited = || "unlimited".to_owned();
        rows.add([
            limit_name(line),
            level(line.level),
            unit(line.unit),
            grouped(line.used),
            grouped(line.held),
            line.limit.map_or_else(unlimited, grouped),
            line.remaining.map_or_else(unlimited, grouped),
            percent(line.ratio_ppm),
            tier(line.tier).to_owned(),
            line.reset_at_ms.map_or_else(String::new, instant),
            line.generation.to_string(),
            note(line),
        ]);
    }
    rows.text()
}

/// The lane's word.
pub fn lane(shadow: bool) -> &'static str {
    if shadow { "shadow" } else { "enforced" }
}

fn percent(ppm: u64) -> String {
    format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1_000)
}

fn limit_name(line: &v1::QuotaLine) -> String {
    let keys: Vec<&str> =
        [&line.route, &line.model, &line.region].into_iter().flatten().map(String::as_str).collect();
    if keys.is_empty() { line.limit_id.clone() } else { format!("{} [{}]", line.limit_id, keys.join(" ")) }
}

fn note(line: &v1::QuotaLine) -> String {
    let mut notes = Vec::new();
    if line.shadow {
        notes.push("shadow".to_owned());
    }
    if line.frozen {
        notes.push("frozen".to_owned());
    }
    if line.suspended {
        notes.push("suspended".to_owned());
    }
    if line.debt > 0 {
        notes.push(format!("debt {}", grouped(line.debt)));
    }
    notes.join(", ")
}
