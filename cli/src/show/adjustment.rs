//! An adjustment's receipt.

use holdfast_proto::v1;
use holdfast_proto::v1::adjustment_kind::Kind;
use serde_json::{Map, Value, json};

use super::words::{epoch, instant, unit};
use crate::output::{Rows, grouped, put_u64};

/// The document that programs read.
pub fn adjustment_document(revision: u64, adjustment: &v1::Adjustment) -> Value {
    let request = adjustment.request.clone().unwrap_or_default();
    let subject = request.subject.unwrap_or_default();
    let mut object = Map::new();
    for (name, value) in [
        ("id", json!(request.id)),
        ("limit", json!(subject.limit)),
        ("tenant", json!(subject.tenant)),
        ("user", json!(subject.user)),
        ("route", json!(subject.route)),
        ("model", json!(subject.model)),
        ("region", json!(subject.region)),
        ("unit", unit(adjustment.unit).into()),
        ("epoch", epoch(adjustment.epoch_start_ms).into()),
        ("what", what_document(request.what.as_ref())),
        ("actor", json!(request.actor)),
        ("reason", json!(request.reason)),
        ("before", standing_document(adjustment.before.as_ref())),
        ("after", standing_document(adjustment.after.as_ref())),
    ] {
        object.insert(name.to_owned(), value);
    }
    put_u64(&mut object, "revision", revision);
    put_u64(&mut object, "booked_revision", adjustment.revision);
    put_u64(&mut object, "generation", adjustment.generation);
    put_u64(&mut object, "at_ms", adjustment.at_ms);
    object.into()
}

fn what_document(what: Option<&v1::AdjustmentKind>) -> Value {
    let mut object = Map::new();
    match what.and_then(|what| what.kind.as_ref()) {
        Some(Kind::Grant(amount)) => put_u64(&mut object, "grant", *amount),
        Some(Kind::Take(amount)) => put_u64(&mut object, "take", *amount),
        Some(Kind::Charge(amount)) => put_u64(&mut object, "charge", *amount),
        Some(Kind::Correct(amount)) => put_u64(&mut object, "correct", *amount),
        Some(Kind::SetUsed(used)) => put_u64(&mut object, "set_used", *used),
        Some(Kind::Boost(boost)) => {
            put_u64(&mut object, "boost", boost.amount);
            object.insert("until".into(), instant(boost.until_ms).into());
        }
        Some(Kind::EndBoost(boost)) => drop(object.insert("end_boost".into(), json!(boost))),
        None => {}
    }
    object.into()
}

fn standing_document(standing: Option<&v1::Standing>) -> Value {
    let Some(standing) = standing else { return Value::Null };
    let mut object = Map::new();
    for (name, value) in [
        ("used", Some(standing.used)),
        ("held", Some(standing.held)),
        ("limit", standing.limit),
        ("remaining", standing.remaining),
        ("debt", Some(standing.debt)),
    ] {
        match value {
            Some(value) => put_u64(&mut object, name, value),
            None => drop(object.insert(name.to_owned(), Value::Null)),
        }
    }
    object.into()
}

/// What people read.
pub fn adjustment_text(adjustment: &v1::Adjustment) -> String {
    let request = adjustment.request.clone().unwrap_or_default();
    let limit = request.subject.unwrap_or_default().limit;
    let mut text = format!(
        "adjustment {} of {limit} ({}, epoch {}), booked at revision {}\n\n",
        request.id,
        unit(adjustment.unit),
        epoch(adjustment.epoch_start_ms),
        grouped(adjustment.revision)
    );
    let mut rows = Rows::new(["", "used", "held", "of", "left", "debt"]);
    for (when, standing) in [("before", &adjustment.before), ("after", &adjustment.after)] {
        let standing = (*standing).unwrap_or_default();
        let unlimited = || "unlimited".to_owned();
        rows.add([
            when.to_owned(),
            grouped(standing.used),
            grouped(standing.held),
            standing.limit.map_or_else(unlimited, grouped),
            standing.remaining.map_or_else(unlimited, grouped),
            grouped(standing.debt),
        ]);
    }
    text.push_str(&rows.text());
    text
}
