//! What a publish would destroy.

use std::fmt;

use crate::ids::LimitId;
use crate::unit::Unit;

/// What a publish would destroy of one limit: holds and debts that nothing would count any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitLoss {
    /// The limit.
    pub limit: LimitId,
    /// What it counts now.
    pub unit: Unit,
    /// What would be done to it.
    pub change: LossyChange,
    /// Open reservations that hold something on what would be lost.
    pub reservations: u64,
    /// How much they hold there, in `unit`.
    pub held: u128,
    /// Debt that would suspend nobody any more, in `unit`.
    pub debt: u128,
}

/// A change of a limit by which its balances are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossyChange {
    /// The plan has it no more.
    Removed,
    /// It is keyed by other attributes of a request: its balances would begin anew.
    Rescoped,
    /// It becomes a bucket, a total or a cap that it was not: its balances would begin anew.
    KindChanged,
    /// It would count another unit. Never done: a limit that counts something else has another id.
    UnitChanged {
        /// What it would count.
        to: Unit,
    },
    /// Its `micros` would be of another currency, which is a change of unit.
    CurrencyChanged,
}

impl LossyChange {
    /// Whether it may be forced.
    pub fn is_forceable(self) -> bool {
        match self {
            LossyChange::Removed | LossyChange::Rescoped | LossyChange::KindChanged => true,
            LossyChange::UnitChanged { .. } | LossyChange::CurrencyChanged => false,
        }
    }
}

impl fmt::Display for LossyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossyChange::Removed => f.write_str("would be removed"),
            LossyChange::Rescoped => f.write_str("would have another scope"),
            LossyChange::KindChanged => f.write_str("would be of another kind"),
            LossyChange::UnitChanged { to } => write!(f, "would count {to}, which needs a new limit id"),
            LossyChange::CurrencyChanged => {
                f.write_str("would count another currency, which needs a new limit id")
            }
        }
    }
}

impl fmt::Display for LimitLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitLoss { limit: _, unit, change, reservations, held, debt } = self;
        let holders = if *reservations == 1 { "reservation holds" } else { "reservations hold" };
        write!(f, "{change}: {reservations} open {holders} {held} {unit} on it")?;
        if *debt > 0 { write!(f, ", and it is owed {debt}") } else { Ok(()) }
    }
}
