//! The `prices` of a plan.

use std::collections::BTreeMap;

use super::matching::check_pattern;
use super::reader::{Place, Problems};
use super::scalars::{read_amount, read_word};
use crate::limits::PRICES_PER_PLAN_MAX;
use crate::plan::{Price, PriceBook, UnknownPrice};
use crate::unit::Unit;

/// Reads `{models: {pattern: price}, unknown: refuse or a price}`.
pub(super) fn read_prices(
    place: &Place<'_>,
    problems: &mut Problems,
    currency: Option<&str>,
) -> Option<PriceBook> {
    if currency.is_none() && place.is_map() {
        place.complain(problems, "has prices, and the plan has no currency");
    }
    let fields = place.fields(problems, &["models", "unknown"]);
    let unknown = match fields.get("unknown") {
        None => UnknownPrice::Refuse,
        Some(place) if place.is_map() => UnknownPrice::Ceiling(read_price(place, problems, currency)?),
        Some(place) => read_word(place, problems, &["refuse"]).map(|_| UnknownPrice::Refuse)?,
    };
    let mut models = BTreeMap::new();
    if let Some(place) = fields.require(problems, "models") {
        let entries = place.entries(problems, "a mapping from models to prices");
        if entries.len() > PRICES_PER_PLAN_MAX {
            let count = entries.len();
            place.complain(
                problems,
                format!("has {count} models; at most {PRICES_PER_PLAN_MAX} are possible"),
            );
            return None;
        }
        for (entry, place) in entries {
            if let Err(problem) = check_pattern(&entry.key) {
                problems.add(entry.line, place.path, problem);
            } else if let Some(price) = read_price(&place, problems, currency) {
                models.insert(entry.key.clone(), price);
            }
        }
    }
    Some(PriceBook { models, unknown })
}

fn read_price(place: &Place<'_>, problems: &mut Problems, currency: Option<&str>) -> Option<Price> {
    let fields = place.fields(problems, &["input", "output", "cached", "reasoning"]);
    let mut class = |key: &str, required: bool| {
        let place = if required { fields.require(problems, key) } else { fields.get(key) };
        place.map(|place| read_amount(place, problems, Unit::Micros, currency))
    };
    let (input, output) = (class("input", true), class("output", true));
    let (cached, reasoning) = (class("cached", false), class("reasoning", false));
    let (input, output) = (input??, output??);
    let cached = cached.unwrap_or(Some(input))?;
    let reasoning = reasoning.unwrap_or(Some(output))?;
    Some(Price { input, output, cached, reasoning })
}
