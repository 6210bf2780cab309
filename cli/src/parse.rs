//! Values on the command line: amounts per unit, durations, names.

use holdfast_ledger::unit::{Amounts, Unit};

/// One `unit=amount` argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitAmount {
    /// The unit.
    pub unit: Unit,
    /// How much of it.
    pub amount: u64,
}

/// Reads `tokens=1200`. Underscores may group the digits.
pub fn unit_amount(text: &str) -> Result<UnitAmount, String> {
    let (unit, amount) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not UNIT=AMOUNT, for example tokens=1200"))?;
    let unit = unit.parse::<Unit>().map_err(|e| format!("the unit {e}"))?;
    Ok(UnitAmount { unit, amount: whole_number(amount)? })
}

/// Reads a whole number of at most 64 bits.
pub fn whole_number(text: &str) -> Result<u64, String> {
    text.replace('_', "")
        .parse::<u64>()
        .map_err(|_| format!("{text:?} is not a whole number from 0 to {}", u64::MAX))
}

/// Puts the arguments together; a unit that is named twice is a mistake.
pub fn amounts(parts: &[UnitAmount]) -> Result<Amounts, String> {
    let mut amounts = Amounts::NONE;
    for part in parts {
        if amounts.get(part.unit).is_some() {
            return Err(format!("{} is given twice", part.unit));
        }
        amounts.set(part.unit, Some(part.amount));
    }
    Ok(amounts)
}

/// Reads an instant as RFC 3339, for example `2026-12-01T00:00:00Z`; gives milliseconds since the Unix epoch.
pub fn instant_ms(text: &str) -> Result<u64, String> {
    let instant: Result<jiff::Timestamp, _> = text.parse();
    let ms = instant.ok().and_then(|instant| u64::try_from(instant.as_millisecond()).ok());
    ms.ok_or_else(|| format!("{text:?} is not an instant such as 2026-12-01T00:00:00Z"))
}

/// Reads `1500ms`, `30s`, `5m`, `26h`, `7d`; gives milliseconds.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let problem = || format!("{text:?} is not a duration such as 1500ms, 30s, 5m, 26h or 7d");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(problem)?;
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(problem)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn amounts_name_what_is_wrong() {
        assert_eq!(unit_amount("tokens=1_200").unwrap(), UnitAmount { unit: Unit::Tokens, amount: 1200 });
        assert_eq!(unit_amount("tokens=18446744073709551615").unwrap().amount, u64::MAX);
        for (text, part) in [
            ("tokens", "UNIT=AMOUNT"),
            ("coins=1", "coins"),
            ("tokens=-1", "whole number"),
            ("tokens=1.5", "whole number"),
            ("tokens=18446744073709551616", "whole number"),
        ] {
            let problem = unit_amount(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        let twice = [unit_amount("tokens=1").unwrap(), unit_amount("tokens=2").unwrap()];
        assert_eq!(amounts(&twice).unwrap_err(), "tokens is given twice");
    }

    #[test]
    fn instants_need_their_offset() {
        assert_eq!(instant_ms("2026-12-01T00:00:00Z").unwrap(), 1_796_083_200_000);
        assert_eq!(instant_ms("2026-12-01T01:00:00.5+01:00").unwrap(), 1_796_083_200_500);
        for text in ["", "2026-12-01", "2026-12-01T00:00:00", "1969-01-01T00:00:00Z", "tomorrow"] {
            assert!(instant_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_their_unit() {
        assert_eq!(duration_ms("1500ms").unwrap(), 1_500);
        assert_eq!(duration_ms("26h").unwrap(), 93_600_000);
        for text in ["", "10", "s", "1.5s", "-1s", "1y", "99999999999999999999s", "18446744073709551615d"] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
    }
}
