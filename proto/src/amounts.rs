//! Amounts per unit.

use holdfast_ledger::unit::{Amounts, Unit};

use crate::field::FieldError;
use crate::v1;
use crate::words::{Word, word};

impl From<Amounts> for v1::Amounts {
    fn from(amounts: Amounts) -> Self {
        let pair = |(unit, amount): (Unit, u64)| v1::UnitAmount { unit: unit.number(), amount };
        v1::Amounts { amounts: amounts.iter().map(pair).collect() }
    }
}

impl TryFrom<&v1::Amounts> for Amounts {
    type Error = FieldError;

    /// Refuses unknown units and units that are named twice. What an amount may be is the ledger's matter.
    fn try_from(wire: &v1::Amounts) -> Result<Self, FieldError> {
        let mut amounts = Amounts::NONE;
        for v1::UnitAmount { unit, amount } in &wire.amounts {
            let unit: Unit = word("unit", *unit)?;
            if amounts.get(unit).is_some() {
                return Err(FieldError::new(unit.as_str(), "is named twice"));
            }
            amounts.set(unit, Some(*amount));
        }
        Ok(amounts)
    }
}

/// Amounts that may be left out, which means no unit at all.
pub(crate) fn amounts_or_none(wire: Option<&v1::Amounts>) -> Result<Amounts, FieldError> {
    wire.map_or(Ok(Amounts::NONE), Amounts::try_from)
}

/// On the wire an empty list and an absent one are the same where absence has no meaning of its own.
pub(crate) fn none_if_empty(amounts: Amounts) -> Option<v1::Amounts> {
    (amounts != Amounts::NONE).then(|| amounts.into())
}

/// Refuses an explicit 0 where it can only be a mistake (spec: allowed for `micros`, a free model).
pub(crate) fn check_nonzero(amounts: &Amounts) -> Result<(), FieldError> {
    match amounts.iter().find(|(unit, amount)| *amount == 0 && *unit != Unit::Micros) {
        Some((unit, _)) => Err(FieldError::new(unit.as_str(), "must not be 0; leave it out")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(pairs: &[(i32, u64)]) -> v1::Amounts {
        v1::Amounts { amounts: pairs.iter().map(|&(unit, amount)| v1::UnitAmount { unit, amount }).collect() }
    }

    #[test]
    fn unknown_and_repeated_units_are_refused_by_name() {
        let refused = |pairs| Amounts::try_from(&wire(pairs)).map_err(|error| error.to_string());
        assert!(refused(&[(77, 1)]).is_err_and(|text| text.contains("unit: has the number 77")));
        assert_eq!(refused(&[(2, 1), (2, 1)]), Err("tokens: is named twice".to_owned()));
        assert_eq!(refused(&[(2, u64::MAX)]), Ok(Amounts::NONE.with(Unit::Tokens, u64::MAX)));
    }

    #[test]
    fn zero_is_a_mistake_but_for_money() {
        assert!(check_nonzero(&Amounts::NONE.with(Unit::Micros, 0)).is_ok());
        for unit in [Unit::Requests, Unit::Tokens, Unit::Slots] {
            assert!(check_nonzero(&Amounts::NONE.with(unit, 0)).is_err_and(|e| e.field == unit.as_str()));
        }
    }
}
