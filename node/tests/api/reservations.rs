//! What few reservations have, over the wire: grants below the ask, keys, estimates, unknown usage, freezes.

use holdfast_proto::{ErrorReason, v1};
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::Cluster;

const HUNDRED: &str = "
schema: admissionBudget.v1
routes:
  - name: chat.generate
limits:
  tokens: { scope: tenant, unit: tokens, period: { limit: 100, every: lifetime } }
";

async fn with_hundred() -> (Cluster, Channel) {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), HUNDRED).await;
    (cluster, channel)
}

fn tokens(amounts: Option<&v1::Amounts>) -> Option<u64> {
    let tokens = |part: &&v1::UnitAmount| part.unit() == v1::Unit::Tokens;
    amounts?.amounts.iter().find(tokens).map(|part| part.amount)
}

#[tokio::test(flavor = "multi_thread")]
async fn less_is_granted_where_less_will_do() {
    let (_cluster, channel) = with_hundred().await;
    let mut ledger = Ledger::new(channel);
    ledger.reserve(reserve(&id(), "acme", 50)).await.unwrap();
    let mut asked = reserve(&id(), "acme", 90);
    asked.request.as_mut().unwrap().minimum = Some(tokens_of(10));
    let granted = receipt(ledger.reserve(asked.clone()).await.unwrap().into_inner());
    assert_eq!(tokens(granted.reserved.as_ref()), Some(50));
    assert_eq!(tokens(granted.extras.as_ref().unwrap().asked.as_ref()), Some(90));
    assert_eq!(receipt(ledger.reserve(asked.clone()).await.unwrap().into_inner()), granted);
    asked.request.as_mut().unwrap().minimum = None;
    let other = failure(&ledger.reserve(asked).await.unwrap_err());
    assert_eq!(other.reason, ErrorReason::Conflict, "the minimum is part of the request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_answers_for_the_first_reservation_made_with_it() {
    let (_cluster, channel) = with_hundred().await;
    let mut ledger = Ledger::new(channel);
    let keyed = |tokens| {
        let mut reserve = reserve(&id(), "acme", tokens);
        reserve.idempotency_key = Some("order-7".into());
        reserve
    };
    let first = receipt(ledger.reserve(keyed(60)).await.unwrap().into_inner());
    assert_eq!(first.extras.as_ref().unwrap().idempotency_key.as_deref(), Some("order-7"));
    let again = receipt(ledger.reserve(keyed(60)).await.unwrap().into_inner());
    assert_eq!(again, first, "under another id, and held once");
    assert_eq!(failure(&ledger.reserve(keyed(61)).await.unwrap_err()).reason, ErrorReason::Conflict);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_estimate_is_corrected_once() {
    let (_cluster, channel) = with_hundred().await;
    let mut ledger = Ledger::new(channel);
    let id = id();
    ledger.reserve(reserve(&id, "acme", 60)).await.unwrap();
    ledger.start(start(&id, "op")).await.unwrap();
    let estimate = v1::SettleRequest { actual: None, estimated: true, ..settle(&id, "op", 0) };
    let settled = receipt(ledger.settle(estimate).await.unwrap().into_inner());
    assert_eq!(tokens(settled.actual.as_ref()), Some(60));
    let correct = |tokens| v1::CorrectRequest {
        id: id.clone(),
        operation: "op".into(),
        actual: Some(tokens_of(tokens)),
    };
    let corrected = receipt(ledger.correct(correct(5)).await.unwrap().into_inner());
    assert_eq!(tokens(corrected.actual.as_ref()), Some(60), "as it was settled");
    let correction = corrected.extras.as_ref().unwrap().correction.as_ref().unwrap();
    assert_eq!(tokens(correction.actual.as_ref()), Some(5));
    assert_eq!(receipt(ledger.correct(correct(5)).await.unwrap().into_inner()), corrected);
    assert_eq!(failure(&ledger.correct(correct(6)).await.unwrap_err()).reason, ErrorReason::Conflict);
    ledger.reserve(reserve(&crate::client::id(), "acme", 95)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_usage_is_listed_page_by_page_and_resolved() {
    let (_cluster, channel) = with_hundred().await;
    let mut ledger = Ledger::new(channel.clone());
    let mut operations = Operations::new(channel);
    let ids: Vec<_> = (0..3).map(|_| id()).collect();
    for id in &ids {
        ledger.reserve(reserve(id, "acme", 10)).await.unwrap();
        ledger.start(start(id, "op")).await.unwrap();
        let unknown = v1::ReportUnknownRequest { id: id.clone(), operation: "op".into() };
        ledger.report_unknown(unknown).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let ask = v1::ListUnknownRequest { after: after.take(), entries_max: 2, ..Default::default() };
        let page = operations.list_unknown(ask).await.unwrap().into_inner();
        assert!(page.entries.iter().all(|entry| entry.since_ms <= page.at_ms), "{page:?}");
        for entry in page.entries {
            let id = entry.receipt.unwrap().id;
            after = Some(v1::UnknownPlace { since_ms: entry.since_ms, id: id.clone() });
            seen.push(id);
        }
        if !page.more {
            break;
        }
    }
    assert_eq!(seen, ids, "the oldest first, none twice");
    let others = v1::ListUnknownRequest { tenant: Some("other".into()), ..Default::default() };
    assert!(operations.list_unknown(others).await.unwrap().into_inner().entries.is_empty());

    let resolve = |tokens| v1::ResolveUnknownRequest {
        id: ids[0].clone(),
        actual: Some(tokens_of(tokens)),
        actor: "ann".into(),
        reason: "the provider's log".into(),
    };
    let resolved = receipt(operations.resolve_unknown(resolve(4)).await.unwrap().into_inner());
    assert_eq!(resolved.state(), v1::ReservationState::Settled);
    assert_eq!(resolved.extras.as_ref().unwrap().resolved_by.as_deref(), Some("ann"));
    assert_eq!(receipt(operations.resolve_unknown(resolve(4)).await.unwrap().into_inner()), resolved);
    let other = failure(&operations.resolve_unknown(resolve(5)).await.unwrap_err());
    assert_eq!(other.reason, ErrorReason::Conflict);
    let without_reason = v1::ResolveUnknownRequest { reason: String::new(), ..resolve(4) };
    assert_invalid(operations.resolve_unknown(without_reason).await, "reason");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_freezes_and_unfreezes() {
    let (_cluster, channel) = with_hundred().await;
    let mut ledger = Ledger::new(channel.clone());
    let mut operations = Operations::new(channel);
    let freeze = |route: &str, reason: &str| v1::FreezeRequest {
        tenant: "acme".into(),
        user: Some("u1".into()),
        route: route.into(),
        actor: "ann".into(),
        reason: reason.into(),
        ..Default::default()
    };
    assert_invalid(operations.freeze(freeze("chat.generate", "")).await, "reason");
    assert_invalid(operations.freeze(freeze("no.such.route", "abuse")).await, "route");
    assert!(operations.freeze(freeze("chat.generate", "abuse")).await.unwrap().into_inner().changed);
    assert!(!operations.freeze(freeze("chat.generate", "abuse")).await.unwrap().into_inner().changed);
    let frozen = failure(&ledger.reserve(reserve(&id(), "acme", 1)).await.unwrap_err());
    assert_eq!((frozen.reason, frozen.facts.retry_after_ms), (ErrorReason::RejectedFrozen, None));
    let v1::FreezeRequest { tenant, user, route, actor, reason, model, region } =
        freeze("chat.generate", "explained");
    let unfreeze = v1::UnfreezeRequest { tenant, user, route, actor, reason, model, region };
    assert!(operations.unfreeze(unfreeze).await.unwrap().into_inner().changed);
    ledger.reserve(reserve(&id(), "acme", 1)).await.unwrap();
}
