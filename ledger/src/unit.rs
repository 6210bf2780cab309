//! What is counted.

use std::fmt;
use std::str::FromStr;

/// A unit of capacity. All amounts are unsigned integers in the unit's smallest part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Unit {
    /// Calls. Defaults to 1 per reservation.
    Requests = 0,
    /// Tokens of a language model.
    Tokens = 1,
    /// Concurrency: held while the operation runs, never spent. Defaults to 1 per reservation.
    Slots = 2,
    /// Money: millionths of the plan's currency.
    Micros = 3,
}

impl Unit {
    /// Every unit, in the order of their numbers.
    pub const ALL: [Unit; 4] = [Unit::Requests, Unit::Tokens, Unit::Slots, Unit::Micros];

    /// The word used in plans, on the wire and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Requests => "requests",
            Unit::Tokens => "tokens",
            Unit::Slots => "slots",
            Unit::Micros => "micros",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text was none of the units' words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is {0:?}, not one of requests, tokens, slots, micros")]
pub struct UnknownUnit(pub String);

impl FromStr for Unit {
    type Err = UnknownUnit;
    fn from_str(text: &str) -> Result<Self, UnknownUnit> {
        Unit::ALL.into_iter().find(|unit| unit.as_str() == text).ok_or_else(|| UnknownUnit(text.to_owned()))
    }
}

/// An amount for some of the units. A unit that is absent is not part of the request
/// (but `requests` and `slots`, which default to 1 when a reservation is made).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Amounts {
    /// Bit u: unit u is present. Apart from the amounts, because four `Option<u64>` take twice the room.
    present: u8,
    /// 0 where absent, so that equality by field is equality of content.
    amounts: [u64; 4],
}

impl Amounts {
    /// No unit at all.
    pub const NONE: Amounts = Amounts { present: 0, amounts: [0; 4] };

    /// The amount of one unit, if it is present.
    pub fn get(&self, unit: Unit) -> Option<u64> {
        (self.present & (1 << unit as u8) != 0).then_some(self.amounts[unit as usize])
    }

    /// Sets or removes one unit.
    pub fn set(&mut self, unit: Unit, amount: Option<u64>) {
        self.amounts[unit as usize] = amount.unwrap_or(0);
        match amount {
            Some(_) => self.present |= 1 << unit as u8,
            None => self.present &= !(1 << unit as u8),
        }
    }

    /// The same amounts with one unit set.
    #[must_use]
    pub fn with(mut self, unit: Unit, amount: u64) -> Self {
        self.set(unit, Some(amount));
        self
    }

    /// Whether no unit is present.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The units present with their amounts, in the units' order.
    pub fn iter(&self) -> impl Iterator<Item = (Unit, u64)> + '_ {
        Unit::ALL.into_iter().filter_map(|unit| self.get(unit).map(|amount| (unit, amount)))
    }
}

impl fmt::Debug for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(unit, amount)| (unit.as_str(), amount))).finish()
    }
}
