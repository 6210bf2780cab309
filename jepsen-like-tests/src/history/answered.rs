//! What an answer said, in a form that is both readable JSON and comparable with a ledger answer.

use holdfast_ledger::answer::{Answer, Extras, Receipt};
use holdfast_proto::Failure;
use serde::{Deserialize, Serialize};

use super::call::{Words, amounts_to_words};

/// An answer to one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// The reservation's receipt.
    Receipt(Box<ReceiptFacts>),
    /// A tombstone stands for the id.
    Tombstone,
    /// A read found nothing.
    Absent,
    /// The book refused.
    Refused(RefusalFacts),
    /// A subject is frozen.
    Frozen {
        /// False if it was frozen already.
        changed: bool,
    },
    /// A subject is frozen no more.
    Unfrozen {
        /// False if it was not frozen.
        changed: bool,
    },
    /// A plan was published.
    Published {
        /// The generation in force.
        generation: u64,
        /// False if it was in force already.
        changed: bool,
    },
}

/// The facts of a receipt. All of them are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptFacts {
    /// The reservation.
    pub id: String,
    /// The state's word.
    pub state: String,
    /// Who pays.
    pub tenant: String,
    /// The user.
    pub user: Option<String>,
    /// The plan's route.
    pub route: String,
    /// The generation at admission.
    pub generation: u64,
    /// The tier's word.
    pub tier: String,
    /// What was reserved.
    pub reserved: Words,
    /// Where it is held.
    pub legs: Vec<LegFacts>,
    /// Book time of admission.
    pub reserved_at_ms: u64,
    /// The revision that admitted it.
    pub reserved_revision: u64,
    /// End of the hold, or the usage deadline.
    pub expires_at_ms: u64,
    /// The operation bound at start.
    pub operation: Option<String>,
    /// Book time of the start.
    pub started_at_ms: Option<u64>,
    /// What it used.
    pub actual: Option<Words>,
    /// Book time of its end.
    pub ended_at_ms: Option<u64>,
    /// The revision that ended it.
    pub ended_revision: Option<u64>,
    /// Debt right after it was settled.
    pub debt: Words,
    /// What few reservations have.
    #[serde(default, skip_serializing_if = "ExtraFacts::is_empty")]
    pub extras: ExtraFacts,
}

/// The facts that few receipts have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraFacts {
    /// What was asked, of units of which less was granted.
    pub asked: Words,
    /// The idempotency key it was made with.
    pub key: Option<String>,
    /// Whether its settlement was estimated.
    pub estimated: bool,
    /// What its estimate was corrected to.
    pub corrected: Option<Words>,
    /// The operator by whose word it ended.
    pub resolved_by: Option<String>,
}

impl ExtraFacts {
    fn of(extras: &Extras) -> Self {
        let correction = extras.estimate.and_then(|estimate| estimate.correction);
        ExtraFacts {
            asked: amounts_to_words(&extras.asked),
            key: extras.key.as_ref().map(ToString::to_string),
            estimated: extras.estimate.is_some(),
            corrected: correction.map(|correction| amounts_to_words(&correction.actual)),
            resolved_by: extras.resolved_by.as_ref().map(ToString::to_string),
        }
    }

    fn is_empty(&self) -> bool {
        *self == ExtraFacts::default()
    }
}

/// One leg of a receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegFacts {
    /// The limit.
    pub limit: String,
    /// The level's word.
    pub level: String,
    /// The unit's word.
    pub unit: String,
    /// Held at admission.
    pub amount: u64,
    /// The account's generation.
    pub generation: u64,
    /// The account's epoch.
    pub epoch_start_ms: Option<u64>,
}

/// Why the call was refused: the word of the error table and the typed facts that go with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalFacts {
    /// The reason's word, as on the wire.
    pub reason: String,
    /// The state named by a conflict or a wrong state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The limit that was hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// How long to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// It was refused from applied state for this instant, and no log entry stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlogged_at_ms: Option<u64>,
}

impl Answered {
    /// What the ledger's answer says; `None` for answers that no client call gets (ticks, rules).
    pub fn of(answer: &Answer) -> Option<Answered> {
        Some(match answer {
            Answer::Reservation(receipt) => Answered::Receipt(Box::new(ReceiptFacts::of(receipt))),
            Answer::Tombstone { .. } => Answered::Tombstone,
            Answer::Frozen { changed } => Answered::Frozen { changed: *changed },
            Answer::Unfrozen { changed } => Answered::Unfrozen { changed: *changed },
            Answer::Published { generation, changed } => {
                Answered::Published { generation: *generation, changed: *changed }
            }
            Answer::Refused(refusal) => Answered::Refused((&Failure::from(refusal)).into()),
            _ => return None,
        })
    }
}

impl ReceiptFacts {
    /// The facts of a ledger receipt.
    pub fn of(receipt: &Receipt) -> ReceiptFacts {
        ReceiptFacts {
            id: receipt.id.to_string(),
            state: receipt.state.as_str().to_owned(),
            tenant: receipt.hold.subject.tenant.to_string(),
            user: receipt.hold.subject.user.as_ref().map(ToString::to_string),
            route: receipt.hold.subject.route.to_string(),
            generation: receipt.generation,
            tier: receipt.tier.as_str().to_owned(),
            reserved: amounts_to_words(&receipt.reserved),
            legs: receipt
                .hold
                .legs
                .iter()
                .map(|leg| LegFacts {
                    limit: leg.limit.to_string(),
                    level: leg.level.as_str().to_owned(),
                    unit: leg.unit.as_str().to_owned(),
                    amount: leg.amount,
                    generation: leg.generation,
                    epoch_start_ms: leg.epoch_start_ms,
                })
                .collect(),
            reserved_at_ms: receipt.reserved_at_ms,
            reserved_revision: receipt.reserved_revision,
            expires_at_ms: receipt.expires_at_ms,
            operation: receipt.operation.as_ref().map(ToString::to_string),
            started_at_ms: receipt.started_at_ms,
            actual: receipt.actual.as_ref().map(amounts_to_words),
            ended_at_ms: receipt.ended_at_ms,
            ended_revision: receipt.ended_revision,
            debt: amounts_to_words(&receipt.debt),
            extras: receipt.extras.as_deref().map(ExtraFacts::of).unwrap_or_default(),
        }
    }

    /// Whether the two can be receipts of one reservation: everything that was fixed at admission is equal.
    pub fn same_admission(&self, other: &ReceiptFacts) -> bool {
        self.id == other.id
            && self.tenant == other.tenant
            && self.user == other.user
            && self.route == other.route
            && self.generation == other.generation
            && self.tier == other.tier
            && self.reserved == other.reserved
            && (&self.extras.asked, &self.extras.key) == (&other.extras.asked, &other.extras.key)
            && self.legs == other.legs
            && self.reserved_at_ms == other.reserved_at_ms
            && self.reserved_revision == other.reserved_revision
    }

    /// What it used, as far as it is known.
    pub fn used(&self) -> Option<&Words> {
        self.extras.corrected.as_ref().or(self.actual.as_ref())
    }

    /// How far along its life it is; a later answer never has a smaller one.
    pub fn rank(&self) -> u8 {
        match self.state.as_str() {
            "RESERVED" => 0,
            "EXPIRING" | "STARTED" => 1,
            "USAGE_UNKNOWN" => 2,
            _ => 3,
        }
    }
}

impl From<&Failure> for RefusalFacts {
    fn from(failure: &Failure) -> Self {
        RefusalFacts {
            reason: failure.reason.as_str().to_owned(),
            state: failure.facts.state.map(|state| state.as_str().to_owned()),
            limit: failure.facts.rejection.as_ref().map(|rejection| rejection.limit.to_string()),
            retry_after_ms: failure.facts.retry_after_ms,
            unlogged_at_ms: failure.facts.unlogged_at_ms,
        }
    }
}
