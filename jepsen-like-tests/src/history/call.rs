//! What a client can ask, in a form that is both readable JSON and comparable with a ledger command.

use std::collections::BTreeMap;

use holdfast_ledger::command::Command;
use holdfast_ledger::ids::UserId;
use holdfast_ledger::record::FreezeScope;
use holdfast_ledger::{Amounts, Unit};
use serde::{Deserialize, Serialize};

/// Amounts by the unit's word.
pub type Words = BTreeMap<String, u64>;

/// One call. The id it concerns stands in the [`super::Operation`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Call {
    /// Hold amounts.
    Reserve {
        /// Who pays.
        tenant: String,
        /// The user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// The route.
        route: String,
        /// Per unit.
        amounts: Words,
        /// Of these units less may be granted, down to this.
        #[serde(default, skip_serializing_if = "Words::is_empty")]
        minimum: Words,
        /// The idempotency key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Bind an operation.
    Start {
        /// The operation.
        operation: String,
    },
    /// End with actual amounts.
    Settle {
        /// The operation.
        operation: String,
        /// Per unit.
        actual: Words,
        /// What is not said is a guess, to be corrected once.
        #[serde(default)]
        estimated: bool,
    },
    /// Put an estimated settlement right.
    Correct {
        /// The operation.
        operation: String,
        /// Per unit.
        actual: Words,
    },
    /// Say that nobody knows what it used.
    ReportUnknown {
        /// The operation.
        operation: String,
    },
    /// An operator says what it used.
    Resolve {
        /// Per unit.
        actual: Words,
    },
    /// An operator stops admissions for a subject.
    Freeze {
        /// Whom.
        #[serde(flatten)]
        subject: FrozenSubject,
    },
    /// An operator lifts that.
    Unfreeze {
        /// Whom.
        #[serde(flatten)]
        subject: FrozenSubject,
    },
    /// End unused.
    Release,
    /// A linearizable read of one reservation.
    Get,
    /// Publish a plan.
    Publish {
        /// The document.
        document: String,
    },
}

/// Whom a freeze is on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FrozenSubject {
    /// The tenant.
    pub tenant: String,
    /// The user; absent: all of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The plan's route.
    pub route: String,
}

impl FrozenSubject {
    fn is(&self, scope: &FreezeScope) -> bool {
        let FreezeScope { tenant, user, route, model, region } = scope;
        self.tenant == tenant.as_str()
            && self.user.as_deref() == user.as_ref().map(UserId::as_str)
            && self.route == route.as_str()
            && model.is_none()
            && region.is_none()
    }
}

impl Call {
    /// Whether it is a command (and not a read).
    pub fn is_write(&self) -> bool {
        !matches!(self, Call::Get)
    }

    /// The word for messages.
    pub fn word(&self) -> &'static str {
        match self {
            Call::Reserve { .. } => "reserve",
            Call::Start { .. } => "start",
            Call::Settle { .. } => "settle",
            Call::Correct { .. } => "correct",
            Call::ReportUnknown { .. } => "report unknown",
            Call::Resolve { .. } => "resolve",
            Call::Freeze { .. } => "freeze",
            Call::Unfreeze { .. } => "unfreeze",
            Call::Release => "release",
            Call::Get => "get",
            Call::Publish { .. } => "publish",
        }
    }

    /// Whether `command` is what this call, about the reservation `id`, asks for. The attempt
    /// number does not count: a retry is the same call.
    pub fn asks_for(&self, id: &str, command: &Command) -> bool {
        match (self, command) {
            (Call::Reserve { tenant, user, route, amounts, minimum, key }, Command::Reserve(reserve)) => {
                reserve.id.to_string() == id
                    && reserve.request.tenant.as_str() == tenant
                    && reserve.request.user.as_ref().map(|user| user.as_str()) == user.as_deref()
                    && reserve.request.route.as_str() == route
                    && with_defaults(&reserve.request.amounts) == with_defaults(&amounts_from_words(amounts))
                    && amounts_to_words(&reserve.request.minimum) == *minimum
                    && reserve.key.as_ref().map(|key| key.as_str()) == key.as_deref()
            }
            (Call::Start { operation }, Command::Start(start)) => {
                start.id.to_string() == id && start.operation.as_str() == operation
            }
            (Call::Settle { operation, actual, estimated }, Command::Settle(settle)) => {
                settle.id.to_string() == id
                    && settle.operation.as_str() == operation
                    && amounts_to_words(&settle.actual) == *actual
                    && settle.estimated == *estimated
            }
            (Call::Correct { operation, actual }, Command::Correct(correct)) => {
                correct.id.to_string() == id
                    && correct.operation.as_str() == operation
                    && amounts_to_words(&correct.actual) == *actual
            }
            (Call::ReportUnknown { operation }, Command::ReportUnknown(report)) => {
                report.id.to_string() == id && report.operation.as_str() == operation
            }
            (Call::Resolve { actual }, Command::ResolveUnknown(resolve)) => {
                resolve.id.to_string() == id && amounts_to_words(&resolve.actual) == *actual
            }
            (Call::Freeze { subject }, Command::Freeze(freeze)) => subject.is(&freeze.scope),
            (Call::Unfreeze { subject }, Command::Unfreeze(unfreeze)) => subject.is(&unfreeze.scope),
            (Call::Release, Command::Release(release)) => release.id.to_string() == id,
            (Call::Publish { document }, Command::PublishPlan(publish)) => *publish.document == **document,
            _ => false,
        }
    }
}

/// `requests` and `slots` default to 1 wherever a request enters; a caller may have left them out.
fn with_defaults(amounts: &Amounts) -> Amounts {
    let mut filled = *amounts;
    for unit in [Unit::Requests, Unit::Slots] {
        if filled.get(unit).is_none() {
            filled.set(unit, Some(1));
        }
    }
    filled
}

/// Amounts by their words.
pub fn amounts_to_words(amounts: &Amounts) -> Words {
    amounts.iter().map(|(unit, amount)| (unit.as_str().to_owned(), amount)).collect()
}

/// Amounts from their words; words that are no unit are left out (a history that has one was
/// written by something else, and its comparison then fails).
pub fn amounts_from_words(words: &Words) -> Amounts {
    let mut amounts = Amounts::NONE;
    for (word, amount) in words {
        if let Ok(unit) = word.parse::<Unit>() {
            amounts.set(unit, Some(*amount));
        }
    }
    amounts
}
