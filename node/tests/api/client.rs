//! Calls in few words, and what their failures say.

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::{ErrorReason, Failure, v1};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::cluster::eventually;

pub const PLAN: &str = include_str!("../../../scripts/plans/three-level.yaml");

pub type Ledger = v1::ledger_client::LedgerClient<Channel>;
pub type Plans = v1::plans_client::PlansClient<Channel>;
pub type Quotas = v1::quotas_client::QuotasClient<Channel>;
pub type Operations = v1::operations_client::OperationsClient<Channel>;

/// A fresh reservation id of this moment.
pub fn id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    ReservationId::from_parts(now, NEXT.fetch_add(1, Ordering::Relaxed).into()).to_string()
}

/// A reserve of tokens for a tenant on the sample plan's first route.
pub fn reserve(id: &str, tenant: &str, tokens: u64) -> v1::ReserveRequest {
    v1::ReserveRequest {
        id: id.into(),
        attempt: 1,
        request: Some(v1::Request {
            tenant: tenant.into(),
            user: Some("u1".into()),
            route: "chat.generate".into(),
            amounts: Some(tokens_of(tokens)),
            ..v1::Request::default()
        }),
        idempotency_key: None,
    }
}

pub fn tokens_of(amount: u64) -> v1::Amounts {
    v1::Amounts { amounts: vec![v1::UnitAmount { unit: v1::Unit::Tokens.into(), amount }] }
}

pub fn start(id: &str, operation: &str) -> v1::StartRequest {
    v1::StartRequest { id: id.into(), operation: operation.into() }
}

pub fn settle(id: &str, operation: &str, tokens: u64) -> v1::SettleRequest {
    v1::SettleRequest {
        id: id.into(),
        operation: operation.into(),
        actual: Some(tokens_of(tokens)),
        estimated: false,
    }
}

/// Publishes a plan, whatever was in force. A leader may be too new to stamp, and then has done nothing.
pub async fn publish(channel: Channel, document: &str) -> v1::PublishResponse {
    let request = v1::PublishRequest {
        expected_generation: None,
        document: document.into(),
        actor: "test".into(),
        ..Default::default()
    };
    eventually("the plan is published", async || {
        match Plans::new(channel.clone()).publish(request.clone()).await {
            Ok(published) => Some(published.into_inner()),
            Err(status) => {
                let failure = failure(&status);
                assert!(failure.reason.is_retryable() && failure.reason.has_no_side_effects(), "{failure}");
                None
            }
        }
    })
    .await
}

/// The receipt in an answer.
pub fn receipt(answer: v1::CommandAnswer) -> v1::Receipt {
    match answer.outcome {
        Some(v1::command_answer::Outcome::Receipt(receipt)) => receipt,
        other => panic!("no receipt: {other:?}"),
    }
}

/// Our failure in a status, whose code must be the one of its reason.
pub fn failure(status: &Status) -> Failure {
    let failure = Failure::from_status(status).unwrap_or_else(|| panic!("a bare status: {status:?}"));
    assert_eq!(status.code(), failure.reason.code());
    failure
}

/// Asserts that a call was refused as invalid, for the field.
pub fn assert_invalid<T: std::fmt::Debug>(answer: Result<T, Status>, field: &str) {
    let status = answer.expect_err(field);
    let failure = failure(&status);
    assert_eq!(failure.reason, ErrorReason::Invalid, "{failure}");
    assert_eq!(status.code(), Code::InvalidArgument);
    let fields: Vec<_> = failure.facts.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert!(fields.contains(&field), "{field} is not among {fields:?}: {failure}");
}
