//! What programs read as JSON, on whatever surface they meet it.

use holdfast_ledger::answer::Tier;
use holdfast_ledger::unit::Unit;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::v1;
use crate::words::Word;

/// Adds `name`, and `name_str` beside it where a reader with 53-bit numbers would round it.
pub fn put_u64(object: &mut Map<String, Value>, name: &str, value: u64) {
    const EXACT_IN_JAVASCRIPT: u64 = 1 << 53;
    object.insert(name.to_owned(), value.into());
    if value > EXACT_IN_JAVASCRIPT {
        object.insert(format!("{name}_str"), value.to_string().into());
    }
}

/// An instant in UTC as RFC 3339, with milliseconds where it has some; what cannot be one is shown as its number.
pub fn instant(at_ms: u64) -> String {
    match i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
        Some(instant) if at_ms.is_multiple_of(1_000) => format!("{instant:.0}"),
        Some(instant) => format!("{instant:.3}"),
        None => at_ms.to_string(),
    }
}

/// An event, with what its kind has and nothing else.
pub fn event_document(event: &v1::Event) -> Value {
    let mut object = Map::new();
    put_u64(&mut object, "sequence", event.sequence);
    put_u64(&mut object, "revision", event.revision);
    object.insert("at".into(), instant(event.at_ms).into());
    object.insert("kind".into(), event.kind.clone().into());
    let names = [
        ("tenant", &event.tenant),
        ("user", &event.user),
        ("limit", &event.limit),
        ("route", &event.route),
        ("model", &event.model),
        ("region", &event.region),
        ("reservation", &event.reservation),
        ("adjustment", &event.adjustment),
        ("actor", &event.actor),
        ("reason", &event.reason),
        ("amount", &event.amount),
    ];
    for (name, value) in names {
        if let Some(value) = value {
            object.insert(name.to_owned(), value.clone().into());
        }
    }
    if let Some(unit) = Unit::of_number(event.unit) {
        object.insert("unit".into(), unit.as_str().into());
    }
    if let Some(tier) = Tier::of_number(event.tier) {
        object.insert("tier".into(), tier.as_str().into());
    }
    if let Some(start_ms) = event.epoch_start_ms {
        object.insert("epoch".into(), instant(start_ms).into());
    }
    if let Some(percent) = event.percent {
        object.insert("percent".into(), percent.into());
    }
    if let Some(generation) = event.generation {
        put_u64(&mut object, "generation", generation);
    }
    if event.shadow {
        object.insert("lane".into(), "shadow".into());
    }
    if event.forced {
        object.insert("forced".into(), true.into());
    }
    if let (Some(restored), Some(first)) = (event.restored, event.first_rolled_back) {
        put_u64(&mut object, "restored", restored);
        put_u64(&mut object, "first_rolled_back", first);
    }
    object.insert("text".into(), event.text.clone().into());
    object.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_exist_as_text_too() {
        let mut object = Map::new();
        put_u64(&mut object, "small", 1 << 53);
        put_u64(&mut object, "large", (1 << 53) + 1);
        assert!(object.get("small_str").is_none());
        assert_eq!(object.get("large_str"), Some(&Value::from("9007199254740993")));
    }
}
