//! The bounds of accounting epochs, computed by the leader.
//!
//! Time zone data differs between machines and versions, so the book never computes these bounds: the
//! proposer does, ahead of time, and every replica takes them from the entry.

use std::sync::Arc;

use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::plan::{Calendar, Period};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::raft::limits::{EPOCH_BOUNDS_PER_ENTRY_MAX, EPOCHS_AHEAD};

/// Why no bounds can be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// The machine's time zone data does not have it.
    #[error("unknown time zone {0:?}")]
    UnknownZone(String),
    /// Outside the years that calendars are computed for.
    #[error("the instant {0} ms is outside the supported years")]
    OutOfRange(u64),
}

/// A calendar's rule with its zone looked up.
struct Rule {
    period: Period,
    zone: TimeZone,
}

/// Whether `calendar` takes its bounds from outside. `Seconds` and `Lifetime` need none.
pub fn needs_bounds(calendar: &Calendar) -> bool {
    !matches!(calendar.period, Period::Seconds(_) | Period::Lifetime)
}

/// The bounds to put into an entry stamped `at_ms`, given the end of the last epoch that the book
/// knows; `None` if enough epochs after the running one are known already.
///
/// # Errors
/// The zone is unknown here, or the instant outside the supported years.
pub fn bounds_wanted(
    calendar: &Arc<Calendar>,
    at_ms: u64,
    known_until_ms: Option<u64>,
) -> Result<Option<EpochBounds>, CalendarError> {
    if !needs_bounds(calendar) {
        return Ok(None);
    }
    let rule = Rule::of(calendar)?;
    let first = match known_until_ms {
        Some(known) => known,
        None => rule.start_of(at_ms)?,
    };
    let mut until = at_ms;
    for _ in 0..EPOCHS_AHEAD {
        until = rule.next_after(until)?;
    }
    if first >= until {
        return Ok(None);
    }
    // Twice as far as is asked, so that bounds go into every EPOCHS_AHEADth epoch's entry, not into each.
    for _ in 0..EPOCHS_AHEAD {
        until = rule.next_after(until)?;
    }
    let mut bounds_ms = vec![first];
    let mut last = first;
    while last < until && bounds_ms.len() < EPOCH_BOUNDS_PER_ENTRY_MAX {
        last = rule.next_after(last)?;
        bounds_ms.push(last);
    }
    Ok(Some(EpochBounds { calendar: calendar.clone(), bounds_ms }))
}

/// When bounds must be extended at the latest so that an entry stamped then still finds its epoch and
/// the next one covered, ms.
pub fn extend_before_ms(known_until_ms: u64, calendar: &Calendar) -> u64 {
    // The shortest epoch that a calendar can cut: an hour, 23 hours of a day, and so on.
    const HOUR_MS: u64 = 3_600_000;
    let epoch_ms_max = match calendar.period {
        Period::Seconds(_) | Period::Lifetime => return u64::MAX,
        Period::Hour => 2 * HOUR_MS,
        Period::Day => 25 * HOUR_MS,
        Period::Week(_) => 169 * HOUR_MS,
        Period::Month(_) => (31 * 24 + 1) * HOUR_MS,
        Period::Year(_) => (366 * 24 + 1) * HOUR_MS,
        Period::Days(days) => (u64::from(days) * 24 + 1) * HOUR_MS,
    };
    known_until_ms.saturating_sub(epoch_ms_max * (EPOCHS_AHEAD as u64 - 1))
}

impl Rule {
    fn of(calendar: &Calendar) -> Result<Self, CalendarError> {
        let unknown = |_| CalendarError::UnknownZone(calendar.zone.clone());
        Ok(Rule { period: calendar.period, zone: TimeZone::get(&calendar.zone).map_err(unknown)? })
    }

    /// The start of the epoch that `at_ms` is in.
    fn start_of(&self, at_ms: u64) -> Result<u64, CalendarError> {
        if self.period == Period::Hour {
            let at = timestamp(at_ms)?;
            let local_s = at.as_second() + i64::from(self.zone.to_offset(at).seconds());
            let start_s = at.as_second() - local_s.rem_euclid(3600);
            // Right after a shift that is not of whole hours the hour began before it.
            return seconds_to_ms(start_s, at_ms);
        }
        let zoned = timestamp(at_ms)?.to_zoned_datetime(self.zone.clone());
        let out = || CalendarError::OutOfRange(at_ms);
        self.instant_of(self.first_day(zoned.date()).ok_or_else(out)?, at_ms)
    }

    /// The first bound after `at_ms`.
    fn next_after(&self, at_ms: u64) -> Result<u64, CalendarError> {
        if self.period == Period::Hour {
            return self.next_hour(at_ms);
        }
        let zoned = timestamp(at_ms)?.to_zoned_datetime(self.zone.clone());
        let out = || CalendarError::OutOfRange(at_ms);
        let first = self.first_day(zoned.date()).ok_or_else(out)?;
        let mut next = self.following(first).ok_or_else(out)?;
        // A day that the zone skipped altogether starts when the day after it starts.
        loop {
            let bound = self.instant_of(next, at_ms)?;
            if bound > at_ms {
                return Ok(bound);
            }
            next = self.following(next).ok_or_else(out)?;
        }
    }

    /// The first instant after `at_ms` at which the zone's clocks show a full hour.
    fn next_hour(&self, at_ms: u64) -> Result<u64, CalendarError> {
        let at = timestamp(at_ms)?;
        let offset_s = i64::from(self.zone.to_offset(at).seconds());
        let local_s = at.as_second() + offset_s;
        let plain_s = at.as_second() - local_s.rem_euclid(3600) + 3600;
        let shift = self.zone.following(at).next().map(|t| t.timestamp().as_second());
        let next_s = match shift {
            Some(shift_s) if shift_s <= plain_s => {
                let new_offset_s =
                    i64::from(self.zone.to_offset(timestamp(seconds_to_ms(shift_s, at_ms)?)?).seconds());
                shift_s + (-(shift_s + new_offset_s)).rem_euclid(3600)
            }
            _ => plain_s,
        };
        seconds_to_ms(next_s, at_ms)
    }

    /// The first day of the epoch that `date` is in.
    fn first_day(&self, date: Date) -> Option<Date> {
        match self.period {
            Period::Week(first) => {
                let back = (date.weekday().to_monday_one_offset() + 7 - i8::try_from(first).ok()?) % 7;
                date.checked_sub(Span::new().try_days(back).ok()?).ok()
            }
            Period::Month(first) => {
                let start = date.with().day(i8::try_from(first).ok()?).build().ok()?;
                if start <= date {
                    Some(start)
                } else {
                    start.checked_sub(Span::new().try_months(1).ok()?).ok()
                }
            }
            Period::Year(first) => {
                let start = date.with().month(i8::try_from(first).ok()?).day(1).build().ok()?;
                if start <= date {
                    Some(start)
                } else {
                    start.checked_sub(Span::new().try_years(1).ok()?).ok()
                }
            }
            Period::Days(days) => {
                let since = Date::constant(1970, 1, 1).until(date).ok()?.get_days();
                date.checked_sub(Span::new().try_days(since.rem_euclid(i32::from(days.max(1)))).ok()?).ok()
            }
            Period::Day | Period::Hour | Period::Seconds(_) | Period::Lifetime => Some(date),
        }
    }

    /// The first day of the epoch after the one that starts on `first`.
    fn following(&self, first: Date) -> Option<Date> {
        let span = match self.period {
            Period::Week(_) => Span::new().try_days(7),
            Period::Month(_) => Span::new().try_months(1),
            Period::Year(_) => Span::new().try_years(1),
            Period::Days(days) => Span::new().try_days(days.max(1)),
            Period::Day | Period::Hour | Period::Seconds(_) | Period::Lifetime => Span::new().try_days(1),
        };
        first.checked_add(span.ok()?).ok()
    }

    /// The first instant of a day in the zone (00:00, or later where a shift skips midnight).
    fn instant_of(&self, date: Date, at_ms: u64) -> Result<u64, CalendarError> {
        let out = |_| CalendarError::OutOfRange(at_ms);
        let start =
            date.to_zoned_datetime(self.zone.clone()).and_then(|zoned| zoned.start_of_day()).map_err(out)?;
        seconds_to_ms(start.timestamp().as_second(), at_ms)
    }
}

fn timestamp(at_ms: u64) -> Result<Timestamp, CalendarError> {
    let out = || CalendarError::OutOfRange(at_ms);
    Timestamp::from_millisecond(i64::try_from(at_ms).map_err(|_| out())?).map_err(|_| out())
}

fn seconds_to_ms(seconds: i64, at_ms: u64) -> Result<u64, CalendarError> {
    // An epoch that began before 1970 is taken to begin with it: the book knows no earlier time.
    let _ = at_ms;
    Ok(u64::try_from(seconds).unwrap_or(0) * 1_000)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn calendar(period: Period, zone: &str) -> Arc<Calendar> {
        Arc::new(Calendar { period, zone: zone.into() })
    }

    fn ms(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_millisecond() as u64
    }

    fn bounds(period: Period, zone: &str, at: &str) -> Vec<u64> {
        bounds_wanted(&calendar(period, zone), ms(at), None).unwrap().unwrap().bounds_ms
    }

    fn hours(bounds: &[u64]) -> Vec<u64> {
        bounds.windows(2).map(|w| (w[1] - w[0]) / HOUR).collect()
    }

    #[test]
    fn days_of_amsterdam_have_23_and_25_hours_when_the_clocks_change() {
        let spring = bounds(Period::Day, "Europe/Amsterdam", "2026-03-28T12:00:00Z");
        assert_eq!(spring[0], ms("2026-03-27T23:00:00Z"));
        assert_eq!(&hours(&spring)[..3], &[24, 23, 24]);
        let autumn = bounds(Period::Day, "Europe/Amsterdam", "2026-10-24T12:00:00Z");
        assert_eq!(&hours(&autumn)[..3], &[24, 25, 24]);
        assert_eq!(autumn[1], ms("2026-10-24T22:00:00Z"));
    }

    #[test]
    fn months_of_tokyo_start_at_its_midnight() {
        let found = bounds(Period::Month(1), "Asia/Tokyo", "2026-07-31T14:59:59.999Z");
        assert_eq!(found[0], ms("2026-06-30T15:00:00Z"));
        assert_eq!(found[1], ms("2026-07-31T15:00:00Z"));
        let found = bounds(Period::Month(1), "Asia/Tokyo", "2026-07-31T15:00:00Z");
        assert_eq!(found[0], ms("2026-07-31T15:00:00Z"));
    }

    #[test]
    fn the_month_after_february_is_march() {
        let found = bounds(Period::Month(1), "UTC", "2027-02-20T00:00:00Z");
        assert_eq!(&found[..2], &[ms("2027-02-01T00:00:00Z"), ms("2027-03-01T00:00:00Z")]);
    }

    #[test]
    fn anchors_move_weeks_months_and_years() {
        // 2026-11-30 is a Monday.
        let at = "2026-11-30T10:00:00Z";
        assert_eq!(bounds(Period::Week(1), "UTC", at)[0], ms("2026-11-30T00:00:00Z"));
        assert_eq!(
            bounds(Period::Week(7), "UTC", at)[..2],
            [ms("2026-11-29T00:00:00Z"), ms("2026-12-06T00:00:00Z")]
        );
        assert_eq!(
            bounds(Period::Month(28), "UTC", at)[..2],
            [ms("2026-11-28T00:00:00Z"), ms("2026-12-28T00:00:00Z")]
        );
        assert_eq!(bounds(Period::Month(28), "UTC", "2026-03-01T00:00:00Z")[0], ms("2026-02-28T00:00:00Z"));
        assert_eq!(
            bounds(Period::Year(4), "UTC", at)[..2],
            [ms("2026-04-01T00:00:00Z"), ms("2027-04-01T00:00:00Z")]
        );
        assert_eq!(bounds(Period::Year(12), "UTC", at)[0], ms("2025-12-01T00:00:00Z"));
    }

    #[test]
    fn blocks_of_days_count_from_1970() {
        let found = bounds(Period::Days(30), "UTC", "1970-02-15T00:00:00Z");
        assert_eq!(&found[..3], &[30 * 24 * HOUR, 60 * 24 * HOUR, 90 * 24 * HOUR]);
    }

    #[test]
    fn hours_follow_the_clock_on_the_wall() {
        let found = bounds(Period::Hour, "Asia/Kolkata", "2026-01-01T00:10:00Z");
        assert_eq!(&found[..2], &[ms("2025-12-31T23:30:00Z"), ms("2026-01-01T00:30:00Z")]);
        // Lord Howe shifts by half an hour: 02:00 becomes 02:30, so one of its hours has 30 minutes less.
        let spring = bounds(Period::Hour, "Australia/Lord_Howe", "2026-10-03T14:40:00Z");
        let lengths: Vec<u64> = spring.windows(2).map(|w| (w[1] - w[0]) / 60_000).collect();
        assert!(lengths.iter().all(|l| *l == 60 || *l == 90), "{lengths:?}");
        assert!(lengths.contains(&90), "{lengths:?}");
        let utc = bounds(Period::Hour, "Europe/Amsterdam", "2026-10-24T23:10:00Z");
        assert!(hours(&utc).iter().all(|h| *h == 1), "the hour that comes twice is two epochs");
    }

    #[test]
    fn a_midnight_that_does_not_exist_starts_later() {
        // Beirut's clocks went from 00:00 to 01:00 on 2022-03-27.
        let found = bounds(Period::Day, "Asia/Beirut", "2022-03-26T12:00:00Z");
        assert_eq!(found[1], ms("2022-03-26T22:00:00Z"));
        assert_eq!(&hours(&found)[..3], &[24, 23, 24]);
    }

    #[test]
    fn bounds_continue_what_is_known_without_a_gap_and_only_when_they_run_out() {
        let cal = calendar(Period::Day, "UTC");
        let at = ms("2026-11-30T10:00:00Z");
        let day = |n: u64| ms("2026-11-30T00:00:00Z") + n * 24 * HOUR;
        let first = bounds_wanted(&cal, at, None).unwrap().unwrap();
        assert_eq!(first.bounds_ms[0], day(0));
        let known = *first.bounds_ms.last().unwrap();
        assert_eq!(bounds_wanted(&cal, at, Some(known)).unwrap(), None);
        let late = bounds_wanted(&cal, known - HOUR, Some(known)).unwrap().unwrap();
        assert_eq!(late.bounds_ms[0], known);
        assert!(extend_before_ms(known, &cal) < known - 24 * HOUR);
        // After a long silence everything passed over is listed too.
        let silent = bounds_wanted(&cal, at, Some(day(0) - 100 * 24 * HOUR)).unwrap().unwrap();
        assert!(
            silent.bounds_ms.len() > 100 && silent.bounds_ms.windows(2).all(|w| w[1] - w[0] == 24 * HOUR)
        );
        let forever = bounds_wanted(&calendar(Period::Hour, "UTC"), at, Some(0)).unwrap().unwrap();
        assert_eq!(forever.bounds_ms.len(), EPOCH_BOUNDS_PER_ENTRY_MAX);
    }

    #[test]
    fn unknown_zones_are_named_and_periods_without_bounds_need_no_zone() {
        let wrong = bounds_wanted(&calendar(Period::Day, "Mars/Olympus"), 0, None);
        assert_eq!(wrong, Err(CalendarError::UnknownZone("Mars/Olympus".into())));
        for period in [Period::Seconds(60), Period::Lifetime] {
            assert_eq!(bounds_wanted(&calendar(period, "Mars/Olympus"), 0, None), Ok(None));
        }
    }
}
