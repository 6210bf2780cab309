//! Wrong corrections, freezes, roll-backs and questions of operators: each is refused by name, and changes nothing.

use holdfast_proto::{ErrorReason, v1};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::client::*;
use crate::cluster::Cluster;

/// What the book holds and has told, however many commands it has seen.
async fn state(channel: &Channel) -> impl PartialEq + std::fmt::Debug {
    let mut operations = Operations::new(channel.clone());
    let audit = operations.audit(v1::AuditRequest::default()).await.unwrap().into_inner();
    assert!(audit.ok, "{audit:#?}");
    let mut events = Vec::new();
    let all = v1::WatchEventsRequest::default();
    let mut stream = Quotas::new(channel.clone()).watch_events(all).await.unwrap().into_inner();
    while let Some(piece) = stream.message().await.unwrap() {
        events.extend(piece.events);
    }
    (audit.generation, audit.reservations_open, audit.accounts, audit.sums, events)
}

/// A cluster with one reservation that settled exactly, one that is held, and one that is started.
async fn with_reservations() -> (Cluster, Channel, [String; 3]) {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), PLAN).await;
    let mut ledger = Ledger::new(channel.clone());
    let ids = [id(), id(), id()];
    for id in &ids {
        ledger.reserve(reserve(id, "acme", 100)).await.unwrap();
    }
    ledger.start(start(&ids[0], "op")).await.unwrap();
    ledger.settle(settle(&ids[0], "op", 60)).await.unwrap();
    ledger.start(start(&ids[2], "op")).await.unwrap();
    (cluster, channel, ids)
}

fn assert_refused<T: std::fmt::Debug>(answer: Result<T, Status>, reason: ErrorReason, code: Code) {
    let status = answer.expect_err(reason.as_str());
    assert_eq!(failure(&status).reason, reason, "{status:?}");
    assert_eq!(status.code(), code);
}

fn amounts(list: &[(v1::Unit, u64)]) -> Option<v1::Amounts> {
    let one = |(unit, amount): &(v1::Unit, u64)| v1::UnitAmount { unit: (*unit).into(), amount: *amount };
    Some(v1::Amounts { amounts: list.iter().map(one).collect() })
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_and_estimates() {
    let (_cluster, channel, [settled, held, started]) = with_reservations().await;
    let before = state(&channel).await;
    let mut ledger = Ledger::new(channel.clone());
    let correct = |id: &str, operation: &str, actual| v1::CorrectRequest {
        id: id.into(),
        operation: operation.into(),
        actual,
    };
    let fifty = || amounts(&[(v1::Unit::Tokens, 50)]);
    for (request, field) in [
        (correct("?", "op", fifty()), "id"),
        (correct(&settled, "", fifty()), "operation"),
        (correct(&settled, "o p", fifty()), "operation"),
        (correct(&settled, "op", amounts(&[(v1::Unit::Unspecified, 1)])), "actual.unit"),
        (correct(&settled, "op", amounts(&[(v1::Unit::Tokens, 1), (v1::Unit::Tokens, 2)])), "actual.tokens"),
    ] {
        assert_invalid(ledger.correct(request).await, field);
    }
    let conflict = (ErrorReason::Conflict, Code::FailedPrecondition);
    // What was settled exactly has no correction but its own amounts, and nobody else's operation has a word.
    assert_refused(ledger.correct(correct(&settled, "op", fifty())).await, conflict.0, conflict.1);
    assert_refused(ledger.correct(correct(&settled, "other", fifty())).await, conflict.0, conflict.1);
    let wrong_state = (ErrorReason::WrongState, Code::FailedPrecondition);
    assert_refused(ledger.correct(correct(&held, "op", fifty())).await, wrong_state.0, wrong_state.1);
    assert_refused(ledger.correct(correct(&started, "op", fifty())).await, wrong_state.0, wrong_state.1);
    assert_refused(
        ledger.correct(correct(&id(), "op", fifty())).await,
        ErrorReason::NotFound,
        Code::NotFound,
    );
    let estimate =
        |id: &str, operation: &str| v1::SettleRequest { estimated: true, ..settle(id, operation, 1) };
    assert_refused(ledger.settle(estimate(&started, "other")).await, conflict.0, conflict.1);
    assert_refused(ledger.settle(estimate(&held, "op")).await, wrong_state.0, wrong_state.1);
    assert_eq!(state(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn minima_and_keys() {
    let (_cluster, channel, _) = with_reservations().await;
    let before = state(&channel).await;
    let mut ledger = Ledger::new(channel.clone());
    let with = |minimum, key: Option<&str>| {
        let mut wire = reserve(&id(), "acme", 10);
        wire.request.as_mut().unwrap().minimum = minimum;
        wire.idempotency_key = key.map(Into::into);
        wire
    };
    let tokens = |amount| amounts(&[(v1::Unit::Tokens, amount)]);
    for (wire, field) in [
        (with(tokens(11), None), "minimum"),
        (with(tokens(u64::MAX), None), "minimum"),
        (with(amounts(&[(v1::Unit::Micros, 1)]), None), "minimum"),
        (with(None, Some("")), "idempotency_key"),
        (with(None, Some("a\nb")), "idempotency_key"),
        (with(None, Some(&"k".repeat(129))), "idempotency_key"),
    ] {
        assert_invalid(ledger.reserve(wire).await, field);
    }
    // The same key for other content, under an id of its own.
    ledger.reserve(with(None, Some("order-1"))).await.unwrap();
    let after = state(&channel).await;
    assert_ne!(after, before);
    let mut other = reserve(&id(), "acme", 11);
    other.idempotency_key = Some("order-1".into());
    assert_refused(ledger.reserve(other).await, ErrorReason::Conflict, Code::FailedPrecondition);
    assert_eq!(state(&channel).await, after);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_words_and_freezes() {
    let (_cluster, channel, [settled, held, started]) = with_reservations().await;
    let before = state(&channel).await;
    let mut operations = Operations::new(channel.clone());
    let resolve = |id: &str, change: fn(&mut v1::ResolveUnknownRequest)| {
        let mut request = v1::ResolveUnknownRequest {
            id: id.into(),
            actual: Some(tokens_of(1)),
            actor: "kim".into(),
            reason: "asked the provider".into(),
        };
        change(&mut request);
        request
    };
    for (request, field) in [
        (resolve("?", |_| {}), "id"),
        (resolve(&started, |request| request.actor.clear()), "actor"),
        (resolve(&started, |request| request.reason.clear()), "reason"),
        (resolve(&started, |request| request.reason = "x".repeat(1_025)), "reason"),
    ] {
        assert_invalid(operations.resolve_unknown(request).await, field);
    }
    // An operator's word ends what is unknown and nothing else.
    let wrong_state = (ErrorReason::WrongState, Code::FailedPrecondition);
    for id in [&held, &started] {
        assert_refused(operations.resolve_unknown(resolve(id, |_| {})).await, wrong_state.0, wrong_state.1);
    }
    assert!(operations.resolve_unknown(resolve(&settled, |_| {})).await.is_err());
    let nobody = operations.resolve_unknown(resolve(&id(), |_| {})).await;
    assert_refused(nobody, ErrorReason::NotFound, Code::NotFound);

    let freeze = |change: fn(&mut v1::FreezeRequest)| {
        let mut request = v1::FreezeRequest {
            tenant: "acme".into(),
            route: "chat.generate".into(),
            actor: "kim".into(),
            reason: "abuse".into(),
            ..Default::default()
        };
        change(&mut request);
        request
    };
    for (request, field) in [
        (freeze(|request| request.tenant.clear()), "tenant"),
        (freeze(|request| request.user = Some("a b".into())), "user"),
        (freeze(|request| request.route.clear()), "route"),
        (freeze(|request| request.route = "no.such.route".into()), "route"),
        (freeze(|request| request.actor = "k i m".into()), "actor"),
        (freeze(|request| request.reason.clear()), "reason"),
    ] {
        assert_invalid(operations.freeze(request).await, field);
    }
    assert_eq!(state(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn roll_backs_and_what_is_asked_of_the_past_and_of_the_future() {
    let (_cluster, channel, _) = with_reservations().await;
    let before = state(&channel).await;
    let mut plans = Plans::new(channel.clone());
    let to = |generation, actor: &str| v1::RollbackRequest {
        generation,
        actor: actor.into(),
        ..Default::default()
    };
    for (request, field) in [(to(0, "kim"), "generation"), (to(7, "kim"), "generation"), (to(1, ""), "actor")]
    {
        assert_invalid(plans.rollback(request).await, field);
    }
    assert_eq!(state(&channel).await, before);
    publish(channel.clone(), &PLAN.replace("amount: 500", "amount: 400")).await;
    let before = state(&channel).await;
    let stale = v1::RollbackRequest { expected_generation: Some(9), ..to(1, "kim") };
    let mismatch = (ErrorReason::GenerationMismatch, Code::Aborted);
    assert_refused(plans.rollback(stale).await, mismatch.0, mismatch.1);

    let mut operations = Operations::new(channel.clone());
    let of = |tenant: Option<&str>, after: Option<v1::UnknownPlace>| v1::ListUnknownRequest {
        tenant: tenant.map(Into::into),
        after,
        ..Default::default()
    };
    assert_invalid(operations.list_unknown(of(Some("a b"), None)).await, "tenant");
    let place = v1::UnknownPlace { since_ms: 1, id: "?".into() };
    assert_invalid(operations.list_unknown(of(None, Some(place))).await, "after.id");

    // Events that are not there yet are no error: there are none.
    let mut quotas = Quotas::new(channel.clone());
    let future = v1::WatchEventsRequest { from: 1_000_000, ..Default::default() };
    let mut stream = quotas.watch_events(future).await.unwrap().into_inner();
    while let Some(piece) = stream.message().await.unwrap() {
        assert!(piece.events.is_empty(), "{piece:?}");
    }
    assert_eq!(state(&channel).await, before);
}
