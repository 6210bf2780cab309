//! How time is cut into accounting epochs.

use std::fmt;

/// How time is cut into accounting epochs. Half-open: the start belongs to the epoch, the end to the next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Calendar {
    /// The period.
    pub period: Period,
    /// IANA time zone; `UTC` by default, and always `UTC` for `Seconds` and `Lifetime`, which ignore it.
    pub zone: String,
}

/// The length of an accounting epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// This many seconds, counted from the Unix epoch; bounds are computed in `apply`.
    Seconds(u32),
    /// A clock hour in the zone.
    Hour,
    /// A calendar day in the zone, 23 to 25 hours.
    Day,
    /// Seven days from the given weekday, 1 = Monday to 7 = Sunday.
    Week(u8),
    /// A calendar month from the given day, 1 to 28.
    Month(u8),
    /// A calendar year from the first of the given month, 1 to 12.
    Year(u8),
    /// This many calendar days, counted from 1970-01-01 in the zone.
    Days(u16),
    /// For ever: one epoch.
    Lifetime,
}

impl Period {
    /// Whether the epochs' bounds depend on a time zone, so that the leader has to compute them.
    pub fn wants_bounds(self) -> bool {
        !matches!(self, Period::Seconds(_) | Period::Lifetime)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Seconds(n) => write!(f, "{n}s"),
            Period::Hour => f.write_str("hour"),
            Period::Day => f.write_str("day"),
            Period::Week(first) => write!(f, "week from weekday {first}"),
            Period::Month(1) => f.write_str("month"),
            Period::Month(first) => write!(f, "month from day {first}"),
            Period::Year(1) => f.write_str("year"),
            Period::Year(first) => write!(f, "year from month {first}"),
            Period::Days(n) => write!(f, "{n}d"),
            Period::Lifetime => f.write_str("lifetime"),
        }
    }
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.period.wants_bounds() {
            write!(f, "{} in {}", self.period, self.zone)
        } else {
            self.period.fmt(f)
        }
    }
}
