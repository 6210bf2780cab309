//! Calendars and the bounds of their epochs.

use std::sync::Arc;

use holdfast_ledger::command::EpochBounds;
use holdfast_ledger::plan::{Calendar, Period};

use crate::field::{FieldError, InField, required};
use crate::v1;
use crate::v1::calendar::Period as Wire;

impl From<&Calendar> for v1::Calendar {
    fn from(Calendar { period, zone }: &Calendar) -> Self {
        let (period, count) = match *period {
            Period::Seconds(count) => (Wire::Seconds, count),
            Period::Hour => (Wire::Hour, 0),
            Period::Day => (Wire::Day, 0),
            Period::Week(weekday) => (Wire::Week, weekday.into()),
            Period::Month(day) => (Wire::Month, day.into()),
            Period::Year(month) => (Wire::Year, month.into()),
            Period::Days(count) => (Wire::Days, count.into()),
            Period::Lifetime => (Wire::Lifetime, 0),
        };
        v1::Calendar { period: period as i32, count, zone: zone.clone() }
    }
}

impl TryFrom<&v1::Calendar> for Calendar {
    type Error = FieldError;

    fn try_from(wire: &v1::Calendar) -> Result<Self, FieldError> {
        let number = wire.period;
        let unknown =
            || FieldError::new("period", format!("has the number {number}, which is not known here"));
        let small = || {
            u8::try_from(wire.count)
                .map_err(|_| FieldError::new("count", format!("is {}, not below 256", wire.count)))
        };
        let period =
            match Wire::try_from(number).map_err(|_| unknown())? {
                Wire::Unspecified => return Err(FieldError::missing("period")),
                Wire::Seconds => Period::Seconds(wire.count),
                Wire::Hour => Period::Hour,
                Wire::Day => Period::Day,
                Wire::Week => Period::Week(small()?),
                Wire::Month => Period::Month(small()?),
                Wire::Year => Period::Year(small()?),
                Wire::Days => {
                    let count = u16::try_from(wire.count);
                    Period::Days(count.map_err(|_| {
                        FieldError::new("count", format!("is {}, not below 65536", wire.count))
                    })?)
                }
                Wire::Lifetime => Period::Lifetime,
            };
        Ok(Calendar { period, zone: wire.zone.clone() })
    }
}

impl From<&EpochBounds> for v1::EpochBounds {
    fn from(EpochBounds { calendar, bounds_ms }: &EpochBounds) -> Self {
        v1::EpochBounds { calendar: Some(calendar.as_ref().into()), bounds_ms: bounds_ms.clone() }
    }
}

impl TryFrom<v1::EpochBounds> for EpochBounds {
    type Error = FieldError;

    fn try_from(wire: v1::EpochBounds) -> Result<Self, FieldError> {
        let calendar = Calendar::try_from(&required("calendar", wire.calendar)?).in_field("calendar")?;
        Ok(EpochBounds { calendar: Arc::new(calendar), bounds_ms: wire.bounds_ms })
    }
}
