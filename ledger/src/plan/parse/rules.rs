//! The rule of a limit: bucket, period or concurrency.

use std::sync::Arc;

use super::ZoneData;
use super::reader::{Fields, Place, Problems, shorten};
use super::scalars::{
    Quantity, parse_duration_ms, read_amount, read_bool, read_duration_ms, read_quantity, read_whole,
    read_word,
};
use crate::limits::DURATION_MS_MAX;
use crate::plan::{Calendar, Period, Rule, Shape};
use crate::unit::Unit;

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const ZONE_BYTES_MAX: usize = 64;

/// Exactly one of `bucket`, `period` and `concurrency`, of a kind that fits the unit.
pub(super) fn read_rule(
    fields: &Fields<'_>,
    problems: &mut Problems,
    unit: Option<Unit>,
    currency: Option<&str>,
    zones: &ZoneData<'_>,
) -> Option<(Shape, Rule)> {
    let kinds = ["bucket", "period", "concurrency"].map(|key| fields.get(key).map(|place| (key, place)));
    let mut kinds = kinds.into_iter().flatten();
    let Some((kind, place)) = kinds.next() else {
        if fields.whole.is_map() {
            fields.whole.complain(problems, "needs one of \"bucket\", \"period\", \"concurrency\"");
        }
        return None;
    };
    for (other, place) in kinds {
        place.complain(
            problems,
            format!("stands beside {kind:?}; a limit has one of them ({other} can be a second limit)"),
        );
    }
    match (unit, kind) {
        (Some(Unit::Slots), "bucket" | "period") => {
            place.complain(
                problems,
                "cannot count slots, which are held and never spent; they need \"concurrency\"",
            );
        }
        (Some(unit), "concurrency") if unit != Unit::Slots => {
            place.complain(
                problems,
                format!("cannot count {unit}; what is held at the same time has the unit slots"),
            );
        }
        _ => {}
    }
    // With an unknown unit the amounts are still read, as plain numbers, so that their faults are reported too.
    let unit = unit.unwrap_or(Unit::Requests);
    match kind {
        "bucket" => read_bucket(place, problems, unit, currency),
        "period" => read_period(place, problems, unit, currency, zones),
        _ => read_concurrency(place, problems),
    }
}

/// Keeps shape and amount if they go together.
fn finish_rule(
    place: &Place<'_>,
    problems: &mut Problems,
    shape: Shape,
    quantity: Quantity,
    burst: Option<u64>,
) -> Option<(Shape, Rule)> {
    let rule = match quantity {
        Quantity::Unlimited if burst.is_some() => {
            place.complain(problems, "is unlimited and has a burst; leave out the burst");
            return None;
        }
        Quantity::Unlimited => shape.unlimited(),
        Quantity::Amount(amount) => {
            if let Err(problem) = check_rule_amounts(&shape, amount, burst) {
                place.complain(problems, problem);
                return None;
            }
            shape.with_amount(amount, burst)
        }
    };
    Some((shape, rule))
}

/// Whether a limit of this shape can have these amounts.
pub(super) fn check_rule_amounts(shape: &Shape, amount: u64, burst: Option<u64>) -> Result<(), String> {
    match (shape, burst) {
        (Shape::Bucket { .. }, Some(0)) if amount > 0 => {
            Err("has burst 0, so it never admits anything".to_owned())
        }
        (Shape::Bucket { .. }, Some(burst)) if amount == 0 && burst > 0 => {
            Err(format!("has amount 0, which admits nothing, and burst {burst}"))
        }
        (Shape::Period { carry_over, .. }, _) if amount.checked_add(*carry_over).is_none() => Err(format!(
            "is {amount} with a carry_over of {carry_over}; together at most {} are possible",
            u64::MAX
        )),
        _ => Ok(()),
    }
}

fn read_bucket(
    place: &Place<'_>,
    problems: &mut Problems,
    unit: Unit,
    currency: Option<&str>,
) -> Option<(Shape, Rule)> {
    let fields = place.fields(problems, &["amount", "per", "burst"]);
    let amount = fields.require(problems, "amount").and_then(|p| read_quantity(p, problems, unit, currency));
    let per_ms = match fields.get("per") {
        Some(place) => read_duration_ms(place, problems, 1, DURATION_MS_MAX),
        None => Some(1_000),
    };
    let burst = match fields.get("burst") {
        Some(place) => Some(read_amount(place, problems, unit, currency)?),
        None => None,
    };
    finish_rule(place, problems, Shape::Bucket { per_ms: per_ms? }, amount?, burst)
}

fn read_concurrency(place: &Place<'_>, problems: &mut Problems) -> Option<(Shape, Rule)> {
    let quantity = if place.is_map() {
        let fields = place.fields(problems, &["limit"]);
        fields.require(problems, "limit").and_then(|place| read_quantity(place, problems, Unit::Slots, None))
    } else {
        read_quantity(place, problems, Unit::Slots, None)
    };
    finish_rule(place, problems, Shape::Concurrency, quantity?, None)
}

fn read_period(
    place: &Place<'_>,
    problems: &mut Problems,
    unit: Unit,
    currency: Option<&str>,
    zones: &ZoneData<'_>,
) -> Option<(Shape, Rule)> {
    let fields = place.fields(problems, &["limit", "every", "starts_on", "zone", "carry_over", "carry_debt"]);
    let limit = fields.require(problems, "limit").and_then(|p| read_quantity(p, problems, unit, currency));
    let period =
        fields.require(problems, "every").and_then(|p| read_every(p, fields.get("starts_on"), problems));
    let zone = match fields.get("zone") {
        Some(place) => read_zone(place, problems, period, zones),
        None => Some("UTC".to_owned()),
    };
    let carry_over = match fields.get("carry_over") {
        Some(place) => read_amount(place, problems, unit, currency),
        None => Some(0),
    };
    let carry_debt = match fields.get("carry_debt") {
        Some(place) => read_bool(place, problems),
        None => Some(true),
    };
    if period == Some(Period::Lifetime) {
        for key in ["carry_over", "carry_debt"] {
            if let Some(place) = fields.get(key) {
                place.complain(problems, "means nothing for a lifetime, which has no next period");
            }
        }
    }
    let calendar = Arc::new(Calendar { period: period?, zone: zone? });
    let shape = Shape::Period { calendar, carry_over: carry_over?, carry_debt: carry_debt? };
    finish_rule(place, problems, shape, limit?, None)
}

/// `hour`, `day`, `week`, `month`, `year`, `lifetime`, `30d` for days, or a duration of whole seconds such as `90s`.
fn read_every(place: &Place<'_>, starts_on: Option<&Place<'_>>, problems: &mut Problems) -> Option<Period> {
    let (text, _) = place.scalar(problems, "a period such as month, day, 30d or 60s")?;
    let period = match text {
        "hour" => Period::Hour,
        "day" => Period::Day,
        "week" => Period::Week(read_start(starts_on, problems, "a weekday", &WEEKDAYS, 7)?),
        "month" => Period::Month(read_start(starts_on, problems, "a day of the month", &[], 28)?),
        "year" => Period::Year(read_start(starts_on, problems, "a month", &MONTHS, 12)?),
        "lifetime" => Period::Lifetime,
        _ => match parse_length(text) {
            Ok(period) => period,
            Err(problem) => {
                let words = ["hour", "day", "week", "month", "year", "lifetime"];
                let hint = problems.hint(text, words);
                place.complain(problems, format!("is {:?}; {problem}{hint}", shorten(text)));
                return None;
            }
        },
    };
    if let Some(place) = starts_on
        && !matches!(period, Period::Week(_) | Period::Month(_) | Period::Year(_))
    {
        place.complain(problems, "means something only for a week, a month or a year");
    }
    Some(period)
}

fn parse_length(text: &str) -> Result<Period, String> {
    let general =
        "a period is hour, day, week, month, year, lifetime, days such as 30d, or seconds such as 60s";
    let duration_ms = parse_duration_ms(text).map_err(|_| general.to_owned())?;
    if !text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(general.to_owned());
    }
    if let Some(days) = text.strip_suffix('d') {
        let days = days.trim().parse::<u16>().ok().filter(|days| (1..=366).contains(days));
        return days
            .map(Period::Days)
            .ok_or_else(|| "at most 366 days are possible, and at least 1".to_owned());
    }
    let seconds = u32::try_from(duration_ms / 1_000).ok().filter(|_| duration_ms <= DURATION_MS_MAX);
    match seconds {
        Some(seconds) if seconds > 0 && duration_ms % 1_000 == 0 => Ok(Period::Seconds(seconds)),
        _ => Err("a period is a whole number of seconds, at least 1, at most 366 days".to_owned()),
    }
}

/// What a week, month or year starts on: a word, or its number from 1.
fn read_start(
    place: Option<&Place<'_>>,
    problems: &mut Problems,
    what: &str,
    words: &[&'static str],
    most: u64,
) -> Option<u8> {
    let Some(place) = place else { return Some(1) };
    let (text, _) = place.scalar(problems, what)?;
    let number = if !words.is_empty() && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let word = read_word(place, problems, words)?;
        words.iter().position(|known| *known == word).map(|at| at as u64 + 1)
    } else {
        read_whole(place, problems, 1, most)
    };
    number.and_then(|number| u8::try_from(number).ok())
}

/// A zone by its syntax, and by the zone data of whoever has some.
fn read_zone(
    place: &Place<'_>,
    problems: &mut Problems,
    period: Option<Period>,
    zones: &ZoneData<'_>,
) -> Option<String> {
    let (text, _) = place.scalar(problems, "a time zone such as UTC or Asia/Shanghai")?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_+-/".contains(c);
    let well_formed = text.len() <= ZONE_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(allowed)
        && text.split('/').all(|part| !part.is_empty());
    if !well_formed {
        place.complain(
            problems,
            format!("is {:?}; a time zone is written like UTC or Asia/Shanghai", shorten(text)),
        );
        return None;
    }
    if period.is_some_and(|period| !period.wants_bounds()) {
        place.complain(problems, "means nothing for a period that no calendar cuts");
        return None;
    }
    if !zones(text) {
        place.complain(problems, format!("is {text:?}; the time zone data does not have it"));
        return None;
    }
    Some(text.to_owned())
}
