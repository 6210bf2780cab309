//! Rules and ladders.

use std::sync::Arc;

use holdfast_ledger::plan::{Calendar, Ladder, Rule};

use crate::field::{FieldError, InField, required};
use crate::v1;
use crate::v1::stored_rule::Rule as Wire;

impl From<&Rule> for v1::StoredRule {
    fn from(rule: &Rule) -> Self {
        let rule = match rule {
            Rule::Bucket { amount, per_ms, burst } => {
                Wire::Bucket(v1::StoredBucket { amount: *amount, per_ms: *per_ms, burst: *burst })
            }
            Rule::Period { limit, calendar, carry_over, carry_debt } => Wire::Period(v1::StoredPeriod {
                limit: *limit,
                calendar: Some(calendar.as_ref().into()),
                carry_over: *carry_over,
                carry_debt: *carry_debt,
            }),
            Rule::Concurrency { limit } => Wire::Concurrency(v1::StoredConcurrency { limit: *limit }),
            Rule::Unlimited { calendar } => {
                Wire::Unlimited(v1::StoredUnlimited { calendar: calendar.as_deref().map(v1::Calendar::from) })
            }
        };
        v1::StoredRule { rule: Some(rule) }
    }
}

impl TryFrom<v1::StoredRule> for Rule {
    type Error = FieldError;

    fn try_from(wire: v1::StoredRule) -> Result<Self, FieldError> {
        Ok(match required("rule", wire.rule)? {
            Wire::Bucket(v1::StoredBucket { amount, per_ms, burst }) => {
                Rule::Bucket { amount, per_ms, burst }
            }
            Wire::Period(v1::StoredPeriod { limit, calendar, carry_over, carry_debt }) => Rule::Period {
                limit,
                calendar: decode_calendar(&required("calendar", calendar)?)?,
                carry_over,
                carry_debt,
            },
            Wire::Concurrency(v1::StoredConcurrency { limit }) => Rule::Concurrency { limit },
            Wire::Unlimited(v1::StoredUnlimited { calendar }) => {
                Rule::Unlimited { calendar: calendar.as_ref().map(decode_calendar).transpose()? }
            }
        })
    }
}

fn decode_calendar(wire: &v1::Calendar) -> Result<Arc<Calendar>, FieldError> {
    Calendar::try_from(wire).map(Arc::new).in_field("calendar")
}

impl From<Ladder> for v1::StoredLadder {
    fn from(Ladder { alert_percent, degrade_percent }: Ladder) -> Self {
        v1::StoredLadder { alert_percent: alert_percent.into(), degrade_percent: degrade_percent.into() }
    }
}

impl TryFrom<v1::StoredLadder> for Ladder {
    type Error = FieldError;

    fn try_from(wire: v1::StoredLadder) -> Result<Self, FieldError> {
        Ok(Ladder {
            alert_percent: small("alert_percent", wire.alert_percent)?,
            degrade_percent: small("degrade_percent", wire.degrade_percent)?,
        })
    }
}

/// A number that the ledger keeps in a byte.
pub(super) fn small(field: &str, number: u32) -> Result<u8, FieldError> {
    u8::try_from(number).map_err(|_| FieldError::new(field, format!("is {number}, not below 256")))
}
