//! Numbers, durations, money and names as a document writes them. No floats: every text is read digit by digit.

use std::str::FromStr;

use super::reader::{Place, Problems, shorten};
use crate::limits::DURATION_MS_MAX;
use crate::unit::{Amounts, Unit};

/// Micro-units in one unit of a currency, and the digits after its point.
const MICROS: u64 = 1_000_000;
const MICROS_DIGITS: usize = 6;

/// An amount, or the word `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Unlimited,
    Amount(u64),
}

/// Decimal digits with underscores between them, as a u64.
fn parse_digits(text: &str) -> Result<u64, String> {
    let shown = shorten(text);
    if let Some(rest) = text.strip_prefix('-')
        && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(format!("is {shown}; it must not be negative"));
    }
    if text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains(['.', 'e', 'E'])
        && text.chars().all(|c| c.is_ascii_digit() || "._eE+-".contains(c))
    {
        return Err(format!("is {shown}; it must be a whole number, written out"));
    }
    let well_formed = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_digit() || c == '_')
        && !text.starts_with('_')
        && !text.ends_with('_')
        && !text.contains("__");
    if !well_formed {
        return Err(format!("is {shown:?}; it must be a whole number such as 50 or 5_000_000"));
    }
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(format!("is {shown}; write it without the leading 0"));
    }
    digits.parse().map_err(|_| format!("is {shown}; at most {} is possible", u64::MAX))
}

/// A text that is meant as a number: quotes would make it text.
fn number_text<'a>(place: &Place<'a>, problems: &mut Problems, wanted: &str) -> Option<&'a str> {
    let (text, quoted) = place.scalar(problems, wanted)?;
    if quoted {
        place.complain(problems, format!("must be {wanted}, is text in quotes; leave out the quotes"));
        return None;
    }
    Some(text)
}

/// Keeps the value or turns the text of the problem into a complaint.
fn settle<T>(place: &Place<'_>, problems: &mut Problems, read: Result<T, String>) -> Option<T> {
    read.map_err(|problem| place.complain(problems, problem)).ok()
}

/// A whole number within bounds.
pub(super) fn read_whole(place: &Place<'_>, problems: &mut Problems, least: u64, most: u64) -> Option<u64> {
    let text = number_text(place, problems, "a whole number")?;
    let value = settle(place, problems, parse_digits(text))?;
    settle(place, problems, check_bounds(value, least, most, ""))
}

fn check_bounds(value: u64, least: u64, most: u64, unit: &str) -> Result<u64, String> {
    if value < least {
        Err(format!("is {value}{unit}; at least {least}{unit} is needed"))
    } else if value > most {
        Err(format!("is {value}{unit}; at most {most}{unit} is possible"))
    } else {
        Ok(value)
    }
}

/// `true` or `false`.
pub(super) fn read_bool(place: &Place<'_>, problems: &mut Problems) -> Option<bool> {
    match place.scalar(problems, "true or false")? {
        ("true", false) => Some(true),
        ("false", false) => Some(false),
        (other, _) => {
            place.complain(problems, format!("must be true or false, is {:?}", shorten(other)));
            None
        }
    }
}

/// `80` or `80%`.
pub(super) fn read_percent(place: &Place<'_>, problems: &mut Problems, least: u64) -> Option<u8> {
    let text = number_text(place, problems, "a percentage such as 80%")?;
    let read = parse_digits(text.strip_suffix('%').unwrap_or(text))
        .and_then(|value| check_bounds(value, least, 100, "%"));
    settle(place, problems, read).and_then(|value| u8::try_from(value).ok())
}

/// A duration: whole milliseconds, or a whole number with one of ms, s, m, h, d.
pub(super) fn read_duration_ms(
    place: &Place<'_>,
    problems: &mut Problems,
    least: u64,
    most: u64,
) -> Option<u64> {
    let text = number_text(place, problems, "a duration such as 30s, 15m or 26h")?;
    let read = parse_duration_ms(text)
        .and_then(|value| check_bounds(value, least, most.min(DURATION_MS_MAX), " ms"));
    settle(place, problems, read)
}

pub(super) fn parse_duration_ms(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c.is_whitespace()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(split);
    let factor = match suffix.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        other => {
            let shown = shorten(other);
            return Err(format!(
                "ends in {shown:?}; a duration is a whole number with ms, s, m, h or d, such as 15m"
            ));
        }
    };
    let count = parse_digits(digits)?;
    count.checked_mul(factor).ok_or_else(|| format!("is {}; that is too long", shorten(text)))
}

/// Money such as `4000 CNY` or `0.25 CNY` in micros; `None` if the text is not written as money.
fn parse_money(text: &str, currency: Option<&str>) -> Option<Result<u64, String>> {
    let (number, code) = text.split_once(' ')?;
    let code = code.trim();
    Some(match currency {
        Some(currency) if currency == code => parse_decimal_micros(number),
        Some(currency) => Err(format!("is in {:?}; the plan's currency is {currency}", shorten(code))),
        None => Err("is money, and the plan has no \"currency\"".to_owned()),
    })
}

fn parse_decimal_micros(number: &str) -> Result<u64, String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction_well_formed = !fraction.is_empty() && fraction.chars().all(|c| c.is_ascii_digit());
    if !fraction_well_formed || fraction.len() > MICROS_DIGITS {
        let shown = shorten(number);
        return Err(format!(
            "is {shown:?}; money is written as 4000 or 0.25, with at most {MICROS_DIGITS} digits after the point"
        ));
    }
    let micros = format!("{fraction:0<MICROS_DIGITS$}").parse::<u64>().map_err(|error| error.to_string())?;
    let too_much = || format!("is {}; at most {} millionths are possible", shorten(number), u64::MAX);
    parse_digits(whole)?.checked_mul(MICROS).and_then(|whole| whole.checked_add(micros)).ok_or_else(too_much)
}

/// An amount of a unit. For `micros` it may be written as money in the plan's currency.
pub(super) fn read_amount(
    place: &Place<'_>,
    problems: &mut Problems,
    unit: Unit,
    currency: Option<&str>,
) -> Option<u64> {
    let text = number_text(place, problems, "an amount")?;
    let money = if unit == Unit::Micros { parse_money(text, currency) } else { None };
    settle(place, problems, money.unwrap_or_else(|| parse_digits(text)))
}

/// An amount of a unit, or the word `unlimited`.
pub(super) fn read_quantity(
    place: &Place<'_>,
    problems: &mut Problems,
    unit: Unit,
    currency: Option<&str>,
) -> Option<Quantity> {
    match place.scalar(problems, "an amount or unlimited")? {
        ("unlimited", _) => Some(Quantity::Unlimited),
        (text, false) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let shown = shorten(text);
            let hint = problems.hint(text, ["unlimited"]);
            place.complain(problems, format!("must be an amount or unlimited, is {shown:?}{hint}"));
            None
        }
        _ => read_amount(place, problems, unit, currency).map(Quantity::Amount),
    }
}

/// A mapping from units to amounts of at least `least`.
pub(super) fn read_amounts(
    place: &Place<'_>,
    problems: &mut Problems,
    least: u64,
    currency: Option<&str>,
) -> Amounts {
    let mut amounts = Amounts::NONE;
    for (entry, place) in place.entries(problems, "a mapping from units to amounts") {
        let Ok(unit) = entry.key.parse::<Unit>() else {
            let hint = problems.hint(&entry.key, Unit::ALL.map(Unit::as_str));
            problems.add(
                entry.line,
                place.path,
                format!("is not a unit (requests, tokens, slots, micros){hint}"),
            );
            continue;
        };
        if let Some(amount) = read_amount(&place, problems, unit, currency) {
            match check_bounds(amount, least, u64::MAX, "") {
                Ok(amount) => amounts.set(unit, Some(amount)),
                Err(problem) => place.complain(problems, problem),
            }
        }
    }
    amounts
}

/// A name or id with the syntax of [`crate::ids`].
pub(super) fn read_name<T: FromStr>(place: &Place<'_>, problems: &mut Problems, wanted: &str) -> Option<T>
where
    T::Err: std::fmt::Display,
{
    let (text, _) = place.scalar(problems, wanted)?;
    settle(place, problems, text.parse().map_err(|error: T::Err| error.to_string()))
}

/// One of the words given; a complaint with the nearest one otherwise.
pub(super) fn read_word(
    place: &Place<'_>,
    problems: &mut Problems,
    words: &[&'static str],
) -> Option<&'static str> {
    let wanted = format!("one of {}", words.join(", "));
    let (text, _) = place.scalar(problems, &wanted)?;
    let found = words.iter().copied().find(|word| *word == text);
    if found.is_none() {
        let hint = problems.hint(text, words.iter().copied());
        place.complain(problems, format!("must be {wanted}, is {:?}{hint}", shorten(text)));
    }
    found
}
