//! Everything wrong that a client can send: refused by name, and nothing is changed.

use holdfast_proto::{ErrorReason, v1};
use tonic::Request;
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::Cluster;

/// What must be as before when something was refused.
#[derive(Debug, PartialEq)]
struct Book {
    generation: u64,
    reservations_open: u64,
    tokens: Vec<(u64, u64)>,
}

async fn book(channel: &Channel) -> Book {
    let audit =
        Operations::new(channel.clone()).audit(v1::AuditRequest::default()).await.unwrap().into_inner();
    assert!(audit.ok, "{audit:#?}");
    let ask = v1::GetQuotaRequest { tenant: "acme".into(), user: Some("u1".into()), ..Default::default() };
    let quota = Quotas::new(channel.clone()).get_quota(ask).await.unwrap().into_inner();
    let tokens = quota.lines.iter().filter(|line| line.unit() == v1::Unit::Tokens);
    Book {
        generation: audit.generation,
        reservations_open: audit.reservations_open,
        tokens: tokens.map(|line| (line.used, line.held)).collect(),
    }
}

async fn with_plan() -> (Cluster, Channel) {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), PLAN).await;
    (cluster, channel)
}

fn changed(change: impl Fn(&mut v1::ReserveRequest, &mut v1::Request)) -> v1::ReserveRequest {
    let mut wire = reserve(&id(), "acme", 10);
    let mut request = wire.request.take().unwrap();
    change(&mut wire, &mut request);
    wire.request = Some(request);
    wire
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_reserve_names_its_field() {
    let (_cluster, channel) = with_plan().await;
    let before = book(&channel).await;
    let unit = |unit, amount| Some(v1::Amounts { amounts: vec![v1::UnitAmount { unit, amount }] });
    let (tokens, requests) = (v1::Unit::Tokens.into(), v1::Unit::Requests.into());
    type Change<'a> = &'a dyn Fn(&mut v1::ReserveRequest, &mut v1::Request);
    let cases: &[(&str, Change)] = &[
        ("id", &|wire, _| wire.id = "not-a-ulid".into()),
        ("id", &|wire, _| wire.id.clear()),
        ("attempt", &|wire, _| wire.attempt = 0),
        ("request.tenant", &|_, request| request.tenant.clear()),
        ("request.tenant", &|_, request| request.tenant = "a b".into()),
        ("request.tenant", &|_, request| request.tenant = "x".repeat(129)),
        ("request.user", &|_, request| request.user = Some("<u>".into())),
        ("request.route", &|_, request| request.route = "-x".into()),
        ("request.model", &|_, request| request.model = Some(String::new())),
        ("request.region", &|_, request| request.region = Some("é".into())),
        ("request.amounts.tokens", &|_, request| request.amounts = unit(tokens, 0)),
        ("request.amounts.requests", &|_, request| request.amounts = unit(requests, 0)),
        ("request.minimum.tokens", &|_, request| request.minimum = unit(tokens, 0)),
        ("idempotency_key", &|wire, _| wire.idempotency_key = Some("a b".into())),
        ("request.hold_ttl_ms", &|_, request| request.hold_ttl_ms = Some(0)),
    ];
    let mut ledger = Ledger::new(channel.clone());
    for (field, change) in cases {
        assert_invalid(ledger.reserve(changed(change)).await, field);
    }
    let nothing = v1::ReserveRequest { id: id(), attempt: 1, request: None, idempotency_key: None };
    assert_invalid(ledger.reserve(nothing).await, "request");
    for unknown in [0, 99] {
        let wire = changed(|_, request| request.amounts = unit(unknown, 1));
        let said = failure(&ledger.reserve(wire).await.unwrap_err());
        assert_eq!(said.reason, ErrorReason::Invalid);
        assert!(said.message.contains("unit"), "{said}");
    }
    // What the plan in force does not allow is refused by the book.
    for tokens in [200_001, u64::MAX] {
        let said = failure(&ledger.reserve(reserve(&id(), "acme", tokens)).await.unwrap_err());
        assert_eq!(said.reason, ErrorReason::Invalid, "{said}");
        assert!(said.message.contains("amounts"), "{said}");
    }
    assert_eq!(book(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_calls_of_every_other_kind_name_their_field() {
    let (_cluster, channel) = with_plan().await;
    let before = book(&channel).await;
    let mut ledger = Ledger::new(channel.clone());
    assert_invalid(ledger.start(start("x", "op")).await, "id");
    assert_invalid(ledger.start(start(&id(), "")).await, "operation");
    assert_invalid(ledger.settle(settle(&id(), "o p", 1)).await, "operation");
    assert_invalid(ledger.renew(v1::RenewRequest { id: id(), extend_ms: 0 }).await, "extend_ms");
    assert_invalid(ledger.release(v1::ReleaseRequest { id: "8".repeat(26) }).await, "id");
    let unknown = v1::ReportUnknownRequest { id: id(), operation: "\n".into() };
    assert_invalid(ledger.report_unknown(unknown).await, "operation");
    let read = v1::GetReservationRequest { id: "?".into(), stale: false };
    assert_invalid(ledger.get_reservation(read).await, "id");

    let mut quotas = Quotas::new(channel.clone());
    let ask = |tenant: &str, user: Option<&str>| v1::GetQuotaRequest {
        tenant: tenant.into(),
        user: user.map(Into::into),
        ..Default::default()
    };
    assert_invalid(quotas.get_quota(ask("", None)).await, "tenant");
    assert_invalid(quotas.get_quota(ask("acme", Some(""))).await, "user");
    let of = |tenant: &str, user: Option<&str>, limit: Option<&str>| v1::ListStatementsRequest {
        tenant: tenant.into(),
        user: user.map(Into::into),
        limit: limit.map(Into::into),
        ..v1::ListStatementsRequest::default()
    };
    assert_invalid(quotas.list_statements(of("", None, None)).await, "tenant");
    assert_invalid(quotas.list_statements(of("acme", Some(""), None)).await, "user");
    assert_invalid(quotas.list_statements(of("acme", None, Some("no limit"))).await, "limit");

    let mut operations = Operations::new(channel.clone());
    let unfreeze = |route: &str, reason: &str| v1::UnfreezeRequest {
        tenant: "acme".into(),
        user: None,
        route: route.into(),
        actor: "ops".into(),
        reason: reason.into(),
        ..Default::default()
    };
    assert_invalid(operations.unfreeze(unfreeze("", "because")).await, "route");
    assert_invalid(operations.unfreeze(unfreeze("chat.generate", "")).await, "reason");
    assert_eq!(book(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_out_of_time_and_unknown_routes_are_refused() {
    let (_cluster, channel) = with_plan().await;
    let before = book(&channel).await;
    let mut ledger = Ledger::new(channel.clone());
    let now = id().parse::<holdfast_ledger::ids::ReservationId>().unwrap().time_ms();
    let at = |ms| holdfast_ledger::ids::ReservationId::from_parts(ms, 7).to_string();
    let old = ledger.reserve(reserve(&at(now - 20 * 60_000), "acme", 1)).await.unwrap_err();
    assert_eq!(failure(&old).reason, ErrorReason::IdTooOld);
    assert!(failure(&old).facts.metadata.contains_key("floor_ms"));
    let early = ledger.reserve(reserve(&at(now + 60_000), "acme", 1)).await.unwrap_err();
    assert_eq!(failure(&early).reason, ErrorReason::IdInFuture);
    let nobody = ledger.start(start(&id(), "op")).await.unwrap_err();
    assert_eq!(failure(&nobody).reason, ErrorReason::NotFound);
    assert_eq!(book(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_plan_is_refused_whole_with_every_problem() {
    let (_cluster, channel) = with_plan().await;
    let before = book(&channel).await;
    let mut plans = Plans::new(channel.clone());
    let publish = |document: String| v1::PublishRequest {
        expected_generation: None,
        document,
        actor: "test".into(),
        ..Default::default()
    };
    let wrong = PLAN.replace("unit: tokens", "unit: tokns").replace("scope: global", "scope: everybody");
    let said = failure(&plans.publish(publish(wrong)).await.unwrap_err());
    assert_eq!(said.reason, ErrorReason::Invalid);
    assert!(said.facts.violations.len() >= 2, "{said}");
    assert!(said.facts.violations.iter().all(|one| one.field.starts_with("document:")), "{said}");
    let zone = PLAN.replace("Asia/Shanghai", "Asia/Atlantis");
    let said = failure(&plans.publish(publish(zone)).await.unwrap_err());
    assert!(said.message.contains("Asia/Atlantis"), "{said}");
    assert_invalid(plans.publish(publish(String::new())).await, "document:1:document");
    let nobody = v1::PublishRequest {
        expected_generation: None,
        document: PLAN.into(),
        actor: String::new(),
        ..Default::default()
    };
    assert_invalid(plans.publish(nobody).await, "actor");

    let side = |plan| Some(v1::PlanRef { plan });
    let diff = |from, to| v1::DiffPlansRequest { from: side(from), to: side(to), stale: false };
    let now = Some(v1::plan_ref::Plan::Generation(0));
    assert_invalid(plans.diff(diff(now.clone(), None)).await, "to");
    let unknown = plans.diff(diff(now, Some(v1::plan_ref::Plan::Generation(77)))).await.unwrap_err();
    assert_eq!(failure(&unknown).reason, ErrorReason::NotFound);

    let set = |tenant: &str, limit: &str| v1::SetTenantRequest {
        tenant: tenant.into(),
        record: Some(v1::TenantRecord {
            overrides: vec![v1::LimitOverride {
                limit: limit.into(),
                rule: Some(v1::limit_override::Rule::Unlimited(v1::Unlimited {})),
            }],
            ..v1::TenantRecord::default()
        }),
        expected_generation: None,
        actor: "test".into(),
    };
    assert_invalid(plans.set_tenant(set("a b", "tenant-qps")).await, "tenant");
    let unknown = failure(&plans.set_tenant(set("acme", "no-such-limit")).await.unwrap_err());
    assert_eq!(unknown.reason, ErrorReason::Invalid, "{unknown}");
    assert!(unknown.message.contains("no-such-limit"), "{unknown}");
    assert_eq!(book(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_bound_is_refused_with_our_reason() {
    let (_cluster, channel) = with_plan().await;
    let before = book(&channel).await;
    let huge = v1::PublishRequest {
        expected_generation: None,
        document: "#".repeat(5 << 20),
        actor: "test".into(),
        ..Default::default()
    };
    let answer = Plans::new(channel.clone()).publish(huge).await;
    assert!(failure(answer.as_ref().unwrap_err()).message.contains("queue.message_bytes_max"));
    assert_invalid(answer, "message");
    // Under the bound of messages, over that of plans.
    let large = v1::PublishRequest {
        expected_generation: None,
        document: "#".repeat(2 << 20),
        actor: "test".into(),
        ..Default::default()
    };
    assert_invalid(Plans::new(channel.clone()).publish(large).await, "document");
    assert_eq!(book(&channel).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_is_none_is_refused() {
    let (_cluster, channel) = with_plan().await;
    let mut request = Request::new(reserve(&id(), "acme", 1));
    request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
    assert_invalid(Ledger::new(channel).reserve(request).await, "grpc-timeout");
}
