//! What operators book: adjustments of capacity and of usage, and boosts.

use std::sync::Arc;

use crate::ids::{ActorName, AdjustmentId};
use crate::record::LineageKey;
use crate::unit::Unit;

/// See [`crate::Command::Adjust`]. Two of them are the same command if all of this is equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjust {
    /// The operator's id for it. The same id with the same content is booked once.
    pub id: AdjustmentId,
    /// The limit with its scope values; always of the enforced lane.
    pub lineage: Arc<LineageKey>,
    /// Start of the accounting epoch that is meant, ms; `None`: the running one, whichever it is.
    pub epoch_start_ms: Option<u64>,
    /// What to book.
    pub what: Adjustment,
    /// Who.
    pub actor: ActorName,
    /// Why.
    pub reason: String,
}

/// What an adjustment books. Two signed quantities, each with a word for either sign: capacity (grant, take)
/// and usage (charge, correct).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// More capacity in the running epoch: repays debt, then fills `available`.
    Grant(u64),
    /// Less capacity in the running epoch: what is available of it is forfeited. Never makes debt.
    Take(u64),
    /// More usage, as if it had been settled: from `available`, and what is not there becomes debt.
    Charge(u64),
    /// Less usage than was booked in the running epoch: repays debt, then fills `available`.
    Correct(u64),
    /// A charge or a correction, whichever makes the usage of the running epoch this much.
    SetUsed(u64),
    /// The limit gives more until an instant: a total in every epoch, a cap at once, a bucket in rate and burst.
    Boost {
        /// How much more.
        amount: u64,
        /// Book time at which it ends, ms.
        until_ms: u64,
    },
    /// Ends a boost at once.
    EndBoost {
        /// The adjustment that began it.
        boost: AdjustmentId,
    },
}

/// The durable answer to an adjustment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjustmentReceipt {
    /// What was asked.
    pub command: Adjust,
    /// The limit's unit.
    pub unit: Unit,
    /// Book time, ms.
    pub at_ms: u64,
    /// The revision that booked it.
    pub revision: u64,
    /// The generation of the account it was booked on.
    pub generation: u64,
    /// Start of that account's epoch, ms; `None` = `continuous`.
    pub epoch_start_ms: Option<u64>,
    /// How the lineage stood before.
    pub before: Standing,
    /// How it stands afterwards.
    pub after: Standing,
}

/// A lineage's figures in the running epoch; those over 64 bits saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// As [`crate::QuotaLine::used`].
    pub used: u64,
    /// As [`crate::QuotaLine::held`].
    pub held: u64,
    /// As [`crate::QuotaLine::limit_amount`].
    pub limit_amount: Option<u64>,
    /// As [`crate::QuotaLine::remaining`].
    pub remaining: Option<u64>,
    /// The lineage's debt.
    pub debt: u64,
}

/// An adjustment that is remembered: until its id can no longer be taken for a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjustmentRow {
    /// Its receipt.
    pub receipt: Arc<AdjustmentReceipt>,
    /// When it may be forgotten, ms.
    pub forget_at_ms: u64,
}

/// What operators have put on top of a lineage's rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operated {
    /// Granted less taken in the running epoch. Not used for buckets, whose grants are just tokens.
    pub net: i128,
    /// The boosts that run, in the order in which they were booked.
    pub boosts: Vec<Boost>,
}

/// A boost that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boost {
    /// The adjustment that began it.
    pub id: AdjustmentId,
    /// How much more the limit gives.
    pub amount: u64,
    /// Book time at which it ends, ms.
    pub until_ms: u64,
}
