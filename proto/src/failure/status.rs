//! A failure as a gRPC status with `google.rpc` details.
//!
//! `ErrorInfo` carries domain, reason and the facts by name; `QuotaFailure` the limit of a rejection;
//! `RetryInfo` the pause, left out when waiting does not help; `BadRequest` every field that is wrong.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use holdfast_ledger::answer::{Rejection, State};
use holdfast_ledger::plan::Level;
use holdfast_ledger::unit::Unit;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, ErrorInfo, FieldViolation, QuotaViolation, StatusExt};

use super::refusal::rejection_reason;
use super::{Facts, Failure, LeaderHint};
use crate::field::FieldError;
use crate::limits::STATUS_PROBLEM_BYTES_MAX;
use crate::reasons::{ERROR_DOMAIN, ErrorReason};

/// Names of the facts in `ErrorInfo.metadata`. They may not be used as free metadata.
mod key {
    pub const REVISION: &str = "revision";
    pub const UNLOGGED_AT_MS: &str = "unlogged_at_ms";
    pub const STATE: &str = "state";
    pub const LEADER_ID: &str = "leader_id";
    pub const LEADER_ADDRESS: &str = "leader_address";
    pub const LIMIT: &str = "limit";
    pub const LEVEL: &str = "level";
    pub const UNIT: &str = "unit";
    pub const GENERATION: &str = "rejection_generation";
    pub const RESET_AT_MS: &str = "reset_at_ms";
}

const STATES: [State; 8] = [
    State::Reserved,
    State::Started,
    State::Expiring,
    State::Expired,
    State::Released,
    State::UsageUnknown,
    State::Settled,
    State::SettledWithDebt,
];

const LEVELS: [Level; 3] = [Level::Global, Level::Tenant, Level::User];

impl Failure {
    /// The status that says it all.
    pub fn to_status(&self) -> Status {
        let facts = &self.facts;
        let mut details = ErrorDetails::new();
        details.set_error_info(self.reason.as_str(), ERROR_DOMAIN, metadata(facts));
        if let Some(rejection) = &facts.rejection {
            let subject = format!("{}:{}", rejection.level.as_str(), rejection.limit);
            let violation =
                QuotaViolation { subject, description: self.message.clone(), ..Default::default() };
            details.set_quota_failure(vec![violation]);
        }
        if let Some(retry_after_ms) = facts.retry_after_ms {
            details.set_retry_info(Some(Duration::from_millis(retry_after_ms)));
        }
        if !facts.violations.is_empty() {
            details.set_bad_request(field_violations(&facts.violations));
        }
        Status::with_error_details(self.reason.code(), &self.message, details)
    }

    /// The failure in a status. `None` when somebody else made the status, or when it carries a
    /// reason that is not in the table or does not go with its code: then nothing may be concluded
    /// from it, least of all that nothing was done.
    pub fn from_status(status: &Status) -> Option<Failure> {
        if status.code() == Code::Ok || status.details().is_empty() {
            return None;
        }
        let details = status.check_error_details().ok()?;
        let info = details.error_info()?;
        let reason: ErrorReason = info.reason.parse().ok()?;
        if info.domain != ERROR_DOMAIN || reason.code() != status.code() {
            return None;
        }
        let retry_after_ms = details
            .retry_info()
            .and_then(|info| info.retry_delay)
            .and_then(|delay| u64::try_from(delay.as_millis()).ok());
        let violations = details.bad_request().map_or(Vec::new(), |bad| {
            let error = |v: &FieldViolation| FieldError::new(&v.field, &v.description);
            bad.field_violations.iter().map(error).collect()
        });
        let facts = Facts { retry_after_ms, violations, ..facts(reason, info, retry_after_ms) };
        Some(Failure { reason, message: status.message().to_owned(), facts: Box::new(facts) })
    }
}

/// As many as a status can carry; the last one then says how many are left out.
fn field_violations(violations: &[FieldError]) -> Vec<FieldViolation> {
    let mut bytes = 0;
    let fits = |error: &&FieldError| {
        bytes += error.field.len() + error.problem.len();
        bytes <= STATUS_PROBLEM_BYTES_MAX
    };
    let mut shown: Vec<_> = violations
        .iter()
        .take_while(fits)
        .map(|error| FieldViolation::new(&error.field, &error.problem))
        .collect();
    if shown.len() < violations.len() {
        let left_out = violations.len() - shown.len();
        shown.push(FieldViolation::new("…", format!("and {left_out} more problems")));
    }
    shown
}

fn metadata(facts: &Facts) -> HashMap<String, String> {
    let mut named: HashMap<String, String> = facts.metadata.clone().into_iter().collect();
    let mut put = |key: &str, value: String| named.insert(key.to_owned(), value);
    if let Some(revision) = facts.revision {
        put(key::REVISION, revision.to_string());
    }
    if let Some(at_ms) = facts.unlogged_at_ms {
        put(key::UNLOGGED_AT_MS, at_ms.to_string());
    }
    if let Some(state) = facts.state {
        put(key::STATE, state.as_str().to_owned());
    }
    if let Some(leader) = &facts.leader {
        put(key::LEADER_ID, leader.node_id.to_string());
        put(key::LEADER_ADDRESS, leader.address.clone());
    }
    if let Some(rejection) = &facts.rejection {
        put(key::LIMIT, rejection.limit.to_string());
        put(key::LEVEL, rejection.level.as_str().to_owned());
        put(key::UNIT, rejection.unit.to_string());
        put(key::GENERATION, rejection.generation.to_string());
        if let Some(reset_at_ms) = rejection.reset_at_ms {
            put(key::RESET_AT_MS, reset_at_ms.to_string());
        }
    }
    named
}

/// What the metadata says. A fact that does not parse is left out: it informs, the reason decides.
fn facts(reason: ErrorReason, info: &ErrorInfo, retry_after_ms: Option<u64>) -> Facts {
    let mut named: BTreeMap<String, String> = info.metadata.clone().into_iter().collect();
    let mut take = |key: &str| named.remove(key);
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let revision = number(take(key::REVISION));
    let unlogged_at_ms = number(take(key::UNLOGGED_AT_MS));
    let state = take(key::STATE).and_then(|text| STATES.into_iter().find(|state| state.as_str() == text));
    let leader = match (number(take(key::LEADER_ID)), take(key::LEADER_ADDRESS)) {
        (Some(node_id), Some(address)) => Some(LeaderHint { node_id, address }),
        _ => None,
    };
    let limit = take(key::LIMIT).and_then(|text| text.parse().ok());
    let level = take(key::LEVEL).and_then(|text| LEVELS.into_iter().find(|level| level.as_str() == text));
    let unit = take(key::UNIT).and_then(|text| text.parse::<Unit>().ok());
    let generation = number(take(key::GENERATION));
    let reset_at_ms = number(take(key::RESET_AT_MS));
    let rejection = match (limit, level, unit, generation, rejection_reason(reason)) {
        (Some(limit), Some(level), Some(unit), Some(generation), Some(reason)) => {
            Some(Rejection { generation, limit, level, unit, reason, reset_at_ms, retry_after_ms })
        }
        _ => None,
    };
    Facts { revision, unlogged_at_ms, state, leader, rejection, metadata: named, ..Facts::default() }
}
