//! A reservation's receipt.

use holdfast_proto::v1;
use serde_json::{Map, Value, json};

use super::quota::lane;
use super::words::{bytes_hex, epoch, instant, level, reason, state, tier, undecided, unit};
use crate::output::{Rows, grouped, put_u64};

/// The document that programs read.
pub fn receipt_document(revision: u64, receipt: &v1::Receipt) -> Value {
    let mut object = Map::new();
    let mut text = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    text("id", receipt.id.clone().into());
    text("state", state(receipt.state).into());
    text("tenant", receipt.tenant.clone().into());
    text("user", receipt.user.clone().into());
    text("route", receipt.route.clone().into());
    text("tier", tier(receipt.tier).into());
    text("operation", receipt.operation.clone().into());
    text("request_digest", bytes_hex(&receipt.request_digest).into());
    text("reserved", amounts_document(receipt.reserved.as_ref()));
    text("actual", receipt.actual.as_ref().map_or(Value::Null, |actual| amounts_document(Some(actual))));
    text("debt", amounts_document(receipt.debt.as_ref()));
    let extras = receipt.extras.clone().unwrap_or_default();
    // Of the units of which less was granted than asked.
    text("asked", amounts_document(extras.asked.as_ref()));
    text("idempotency_key", extras.idempotency_key.into());
    text("estimated", extras.estimated.into());
    text("resolved_by", extras.resolved_by.clone().into());
    text("correction", extras.correction.as_ref().map_or(Value::Null, correction_document));
    text("lane", lane(receipt.shadow.is_some()).into());
    text("shadow", receipt.shadow.as_ref().map_or(Value::Null, shadow_document));
    text("legs", receipt.legs.iter().map(leg_document).collect());
    for (name, value) in [
        ("revision", Some(revision)),
        ("generation", Some(receipt.generation)),
        ("reserved_at_ms", Some(receipt.reserved_at_ms)),
        ("reserved_revision", Some(receipt.reserved_revision)),
        ("expires_at_ms", Some(receipt.expires_at_ms)),
        ("started_at_ms", receipt.started_at_ms),
        ("ended_at_ms", receipt.ended_at_ms),
        ("ended_revision", receipt.ended_revision),
    ] {
        match value {
            Some(value) => put_u64(&mut object, name, value),
            None => drop(object.insert(name.to_owned(), Value::Null)),
        }
    }
    object.into()
}

/// What the shadow lane decided: a decision, and the tier, limit or cause that goes with it.
fn shadow_document(decision: &v1::ShadowDecision) -> Value {
    use v1::shadow_decision::Decision;
    match &decision.decision {
        Some(Decision::Admitted(found)) => json!({"decision": "admitted", "tier": tier(*found)}),
        Some(Decision::Rejected(rejection)) => json!({
            "decision": "rejected",
            "reason": reason(rejection.reason),
            "limit": rejection.limit,
            "level": level(rejection.level),
            "unit": unit(rejection.unit),
            "retry_after_ms": rejection.retry_after_ms,
        }),
        Some(Decision::Undecided(why)) => json!({"decision": "undecided", "why": undecided(*why)}),
        None => Value::Null,
    }
}

fn shadow_text(decision: &v1::ShadowDecision) -> String {
    use v1::shadow_decision::Decision;
    match &decision.decision {
        Some(Decision::Admitted(found)) => format!("would be admitted, {}", tier(*found)),
        Some(Decision::Rejected(rejection)) => {
            format!("would be refused: {} by {}", reason(rejection.reason), rejection.limit)
        }
        Some(Decision::Undecided(why)) => format!("not decided: {}", undecided(*why)),
        None => String::new(),
    }
}

fn amounts_document(amounts: Option<&v1::Amounts>) -> Value {
    let mut object = Map::new();
    for part in amounts.into_iter().flat_map(|amounts| &amounts.amounts) {
        put_u64(&mut object, &unit(part.unit), part.amount);
    }
    object.into()
}

fn correction_document(correction: &v1::Correction) -> Value {
    let mut object = Map::new();
    put_u64(&mut object, "at_ms", correction.at_ms);
    put_u64(&mut object, "revision", correction.revision);
    object.insert("actual".into(), amounts_document(correction.actual.as_ref()));
    object.insert("debt".into(), amounts_document(correction.debt.as_ref()));
    object.into()
}

fn leg_document(leg: &v1::Leg) -> Value {
    let mut object = Map::new();
    object.insert("limit".into(), leg.limit.clone().into());
    object.insert("level".into(), level(leg.level).into());
    object.insert("unit".into(), unit(leg.unit).into());
    put_u64(&mut object, "amount", leg.amount);
    put_u64(&mut object, "generation", leg.generation);
    object.insert("epoch".into(), epoch(leg.epoch_start_ms).into());
    object.into()
}

/// What people read.
pub fn receipt_text(receipt: &v1::Receipt) -> String {
    let mut rows = Rows::new(["reservation", &receipt.id]);
    let mut row = |name: &str, value: String| rows.add_fact(name, value);
    row("state", state(receipt.state).to_owned());
    row("tier", tier(receipt.tier).to_owned());
    if let Some(decision) = &receipt.shadow {
        row("shadow lane", shadow_text(decision));
    }
    row("tenant", receipt.tenant.clone());
    if let Some(user) = &receipt.user {
        row("user", user.clone());
    }
    row("route", receipt.route.clone());
    row("generation", receipt.generation.to_string());
    row("reserved", amounts_text(receipt.reserved.as_ref()));
    let extras = receipt.extras.clone().unwrap_or_default();
    if extras.asked.is_some() {
        row("asked", amounts_text(extras.asked.as_ref()));
    }
    if let Some(key) = extras.idempotency_key {
        row("idempotency key", key);
    }
    row("reserved at", instant(receipt.reserved_at_ms));
    if let Some(operation) = &receipt.operation {
        row("operation", operation.clone());
    }
    if let Some(at_ms) = receipt.started_at_ms {
        row("started at", instant(at_ms));
    }
    match receipt.ended_at_ms {
        Some(at_ms) => row("ended at", instant(at_ms)),
        None => row("expires at", instant(receipt.expires_at_ms)),
    }
    if receipt.actual.is_some() {
        row(if extras.estimated { "estimated" } else { "actual" }, amounts_text(receipt.actual.as_ref()));
    }
    if let Some(operator) = &extras.resolved_by {
        row("by the word of", operator.clone());
    }
    if let Some(correction) = &extras.correction {
        row("corrected to", amounts_text(correction.actual.as_ref()));
        row("corrected at", instant(correction.at_ms));
    }
    if receipt.debt.as_ref().is_some_and(|debt| !debt.amounts.is_empty()) {
        row("debt", amounts_text(receipt.debt.as_ref()));
    }
    let mut text = rows.text();
    if !receipt.legs.is_empty() {
        text.push('\n');
        text.push_str(&legs_text(&receipt.legs));
    }
    text
}

fn legs_text(legs: &[v1::Leg]) -> String {
    let mut rows = Rows::new(["limit", "level", "unit", "held", "epoch"]);
    for leg in legs {
        rows.add([
            leg.limit.clone(),
            level(leg.level),
            unit(leg.unit),
            grouped(leg.amount),
            epoch(leg.epoch_start_ms),
        ]);
    }
    rows.text()
}

/// Amounts for people.
pub fn amounts_text(amounts: Option<&v1::Amounts>) -> String {
    let parts: Vec<String> = amounts
        .into_iter()
        .flat_map(|amounts| &amounts.amounts)
        .map(|part| format!("{} {}", grouped(part.amount), unit(part.unit)))
        .collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}
