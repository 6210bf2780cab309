//! The closed sets of words: units, levels, states, tiers, reasons of a rejection.

use holdfast_ledger::answer::{Reason, State, Tier};
use holdfast_ledger::plan::Level;
use holdfast_ledger::record::LimitKind;
use holdfast_ledger::shadow::Undecided;
use holdfast_ledger::unit::Unit;

use crate::field::FieldError;
use crate::v1;

/// A ledger word that has a number on the wire.
pub trait Word: Copy + Sized {
    /// Its number.
    fn number(self) -> i32;
    /// The word of a number; `None` for 0 and for numbers of a newer definition.
    fn of_number(number: i32) -> Option<Self>;
}

/// The word in a field; an unspecified or unknown number is refused.
pub fn word<T: Word>(field: &str, number: i32) -> Result<T, FieldError> {
    T::of_number(number).ok_or_else(|| match number {
        0 => FieldError::missing(field),
        number => FieldError::new(field, format!("has the number {number}, which is not known here")),
    })
}

macro_rules! words {
    ($ledger:ident, $wire:ty, { $($name:ident,)* }) => {
        impl Word for $ledger {
            fn number(self) -> i32 {
                match self { $($ledger::$name => <$wire>::$name as i32,)* }
            }

            fn of_number(number: i32) -> Option<Self> {
                match <$wire>::try_from(number) {
                    $(Ok(<$wire>::$name) => Some($ledger::$name),)*
                    Ok(<$wire>::Unspecified) | Err(_) => None,
                }
            }
        }
    };
}

words!(Unit, v1::Unit, { Requests, Tokens, Slots, Micros, });
words!(Level, v1::Level, { Global, Tenant, User, });
words!(LimitKind, v1::LimitKind, { Bucket, Concurrency, Total, });
words!(Tier, v1::Tier, { Normal, DegradedLight, DegradedHeavy, });
words!(Reason, v1::RejectionReason, { Frozen, NeverFits, Debt, Held, Spent, });
words!(Undecided, v1::ShadowUndecided, { ReservationMax, LegsMax, AccountsMax, EpochBounds, });
words!(State, v1::ReservationState, {
    Reserved, Started, Expiring, Expired, Released, UsageUnknown, Settled, SettledWithDebt,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unspecified_and_unknown_numbers_are_refused() {
        assert_eq!(word::<Unit>("unit", 0), Err(FieldError::missing("unit")));
        assert!(word::<Unit>("unit", 99).is_err_and(|error| error.problem.contains("99")));
        assert_eq!(word::<Unit>("unit", 2), Ok(Unit::Tokens));
    }
}
