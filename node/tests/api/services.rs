//! Every call of every service as it is meant to be used.

use holdfast_proto::{ErrorReason, v1};
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::Cluster;

/// One node with the sample plan in force.
async fn with_plan() -> (Cluster, Channel) {
    let cluster = Cluster::found(1, |_| {});
    let leader = cluster.leader().await;
    let channel = cluster.channel(leader);
    assert!(publish(channel.clone(), PLAN).await.changed);
    (cluster, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_lives_through_every_call() {
    let (_cluster, channel) = with_plan().await;
    let mut ledger = Ledger::new(channel);
    let id = id();
    let reserved = ledger.reserve(reserve(&id, "acme", 600)).await.unwrap().into_inner();
    assert!(reserved.revision > 0);
    let first = receipt(reserved);
    assert_eq!((first.state(), first.tenant.as_str()), (v1::ReservationState::Reserved, "acme"));
    assert_eq!(first.request_digest.len(), 32);
    // Again: the same receipt, no second debit. With other content: a conflict.
    let again = receipt(ledger.reserve(reserve(&id, "acme", 600)).await.unwrap().into_inner());
    assert_eq!(again, first);
    let other = ledger.reserve(reserve(&id, "acme", 601)).await.unwrap_err();
    assert_eq!(failure(&other).reason, ErrorReason::Conflict);

    let renewed = ledger.renew(v1::RenewRequest { id: id.clone(), extend_ms: 30_000 }).await.unwrap();
    assert!(receipt(renewed.into_inner()).expires_at_ms > 0);
    let started = receipt(ledger.start(start(&id, "op-1")).await.unwrap().into_inner());
    assert_eq!(
        (started.state(), started.operation.as_deref()),
        (v1::ReservationState::Started, Some("op-1"))
    );
    let wrong = ledger.release(v1::ReleaseRequest { id: id.clone() }).await.unwrap_err();
    assert_eq!(failure(&wrong).reason, ErrorReason::WrongState);
    let unknown = v1::ReportUnknownRequest { id: id.clone(), operation: "op-1".into() };
    let unknown = receipt(ledger.report_unknown(unknown).await.unwrap().into_inner());
    assert_eq!(unknown.state(), v1::ReservationState::UsageUnknown);
    let settled = receipt(ledger.settle(settle(&id, "op-1", 200)).await.unwrap().into_inner());
    assert_eq!(settled.state(), v1::ReservationState::Settled);

    for stale in [false, true] {
        let request = v1::GetReservationRequest { id: id.clone(), stale };
        let read = ledger.get_reservation(request).await.unwrap().into_inner();
        assert_eq!(read.receipt, Some(settled.clone()));
    }
    let request = v1::GetReservationRequest { id: crate::client::id(), stale: false };
    let absent = ledger.get_reservation(request).await.unwrap_err();
    assert_eq!(failure(&absent).reason, ErrorReason::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_an_id_never_seen_closes_it() {
    let (_cluster, channel) = with_plan().await;
    let mut ledger = Ledger::new(channel);
    let id = id();
    let released = ledger.release(v1::ReleaseRequest { id: id.clone() }).await.unwrap().into_inner();
    assert!(matches!(released.outcome, Some(v1::command_answer::Outcome::Tombstone(_))), "{released:?}");
    let late = failure(&ledger.reserve(reserve(&id, "acme", 1)).await.unwrap_err());
    assert_eq!(late.reason, ErrorReason::WrongState);
    assert_eq!(late.facts.state, Some(holdfast_ledger::answer::State::Released));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_by_a_limit_says_which_and_when() {
    let (_cluster, channel) = with_plan().await;
    let mut ledger = Ledger::new(channel);
    let mut refused = None;
    // Five a second for a user: some of these come too fast, whatever the machine.
    for _ in 0..50 {
        if let Err(status) = ledger.reserve(reserve(&id(), "acme", 1)).await {
            refused = Some(failure(&status));
            break;
        }
    }
    let refused = refused.expect("50 requests in a burst of 5 and 5 a second");
    let rejection = refused.facts.rejection.clone().unwrap();
    assert_eq!(rejection.limit.as_str(), "user-qps");
    assert!(refused.facts.retry_after_ms.is_some_and(|ms| ms <= 1_000), "{refused:?}");
    assert!(refused.facts.revision.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_show_what_is_held_and_used() {
    let (_cluster, channel) = with_plan().await;
    let mut ledger = Ledger::new(channel.clone());
    let id = id();
    ledger.reserve(reserve(&id, "acme", 600)).await.unwrap();
    let request =
        v1::GetQuotaRequest { tenant: "acme".into(), user: Some("u1".into()), ..Default::default() };
    let held = Quotas::new(channel.clone()).get_quota(request.clone()).await.unwrap().into_inner();
    let tokens = |quota: &v1::GetQuotaResponse| {
        quota.lines.iter().find(|line| line.limit_id == "tenant-tokens-month").cloned().unwrap()
    };
    assert_eq!((tokens(&held).held, tokens(&held).used), (600, 0));
    assert!(held.lines.iter().any(|line| line.level() == v1::Level::User), "{held:#?}");
    assert!(held.lines.iter().all(|line| line.level() != v1::Level::Global), "{held:#?}");
    ledger.start(start(&id, "op")).await.unwrap();
    ledger.settle(settle(&id, "op", 200)).await.unwrap();
    let used = Quotas::new(channel).get_quota(request).await.unwrap().into_inner();
    assert_eq!((tokens(&used).held, tokens(&used).used), (0, 200));
    assert!(used.revision > held.revision && used.at_ms >= held.at_ms);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_published_by_generation_listed_and_compared() {
    let (_cluster, channel) = with_plan().await;
    let mut plans = Plans::new(channel.clone());
    let first = plans.get(v1::GetPlanRequest::default()).await.unwrap().into_inner();
    assert_eq!(first.document, PLAN);
    let generation = first.head.unwrap().generation;
    assert!(!publish(channel.clone(), PLAN).await.changed, "equal content changes nothing");

    let edited = PLAN.replace("limit: 200, every: day", "limit: 300, every: day");
    assert_ne!(edited, PLAN);
    let request = |expected_generation| v1::PublishRequest {
        expected_generation,
        document: edited.clone(),
        actor: "ops@example.org".into(),
        force: false,
    };
    let stale = plans.publish(request(Some(generation + 7))).await.unwrap_err();
    assert_eq!(failure(&stale).reason, ErrorReason::GenerationMismatch);
    assert_eq!(failure(&stale).facts.metadata["generation"], generation.to_string());
    let second = plans.publish(request(Some(generation))).await.unwrap().into_inner();
    assert_eq!((second.generation, second.changed), (generation + 1, true));

    let old = v1::GetPlanRequest { generation: Some(generation), stale: true };
    assert_eq!(plans.get(old).await.unwrap().into_inner().document, PLAN);
    let none = plans.get(v1::GetPlanRequest { generation: Some(99), stale: false }).await.unwrap_err();
    assert_eq!(failure(&none).reason, ErrorReason::NotFound);
    let list = plans.list(v1::ListPlansRequest::default()).await.unwrap().into_inner();
    let generations: Vec<_> = list.plans.iter().map(|head| head.generation).collect();
    assert_eq!(generations, [generation + 1, generation]);
    assert_eq!(list.plans[0].actor, "ops@example.org");

    let side = |plan| Some(v1::PlanRef { plan: Some(plan) });
    let diff = v1::DiffPlansRequest {
        from: side(v1::plan_ref::Plan::Generation(0)),
        to: side(v1::plan_ref::Plan::Document(PLAN.into())),
        stale: false,
    };
    let diff = plans.diff(diff).await.unwrap().into_inner();
    assert!(!diff.same_content);
    assert_eq!(diff.changes.len(), 1, "{diff:#?}");
    assert!(diff.changes[0].path.contains("user-requests-day"), "{diff:#?}");
    assert_eq!(
        (diff.changes[0].before.as_deref(), diff.changes[0].after.as_deref()),
        (Some("300"), Some("200"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destructive_plan_is_shown_refused_and_forced() {
    let (_cluster, channel) = with_plan().await;
    let mut ledger = Ledger::new(channel.clone());
    let id = id();
    ledger.reserve(reserve(&id, "acme", 600)).await.unwrap();
    let without = PLAN.replace("tenant-tokens-month", "tokens-of-a-month");
    assert_ne!(without, PLAN);
    let mut plans = Plans::new(channel.clone());
    let side = |plan| Some(v1::PlanRef { plan: Some(plan) });
    let diff = v1::DiffPlansRequest {
        from: side(v1::plan_ref::Plan::Generation(0)),
        to: side(v1::plan_ref::Plan::Document(without.clone())),
        stale: false,
    };
    let shown = plans.diff(diff).await.unwrap().into_inner().losses;
    let [loss] = shown.as_slice() else { panic!("{shown:#?}") };
    assert_eq!((loss.limit.as_str(), loss.change()), ("tenant-tokens-month", v1::LossyChange::Removed));
    assert_eq!((loss.reservations, loss.held.as_str(), loss.unit()), (1, "600", v1::Unit::Tokens));

    let publish = |force| v1::PublishRequest {
        document: without.clone(),
        actor: "ops".into(),
        force,
        expected_generation: None,
    };
    let refused = failure(&plans.publish(publish(false)).await.unwrap_err());
    assert_eq!(refused.reason, ErrorReason::Destructive);
    let [violation] = refused.facts.violations.as_slice() else { panic!("{refused:?}") };
    assert_eq!(violation.field, "limits.tenant-tokens-month");
    assert!(violation.problem.contains("1 open reservation holds 600 tokens"), "{violation}");
    assert_eq!(plans.get(v1::GetPlanRequest::default()).await.unwrap().into_inner().document, PLAN);
    assert!(plans.publish(publish(true)).await.unwrap().into_inner().changed);
    let released = receipt(ledger.release(v1::ReleaseRequest { id }).await.unwrap().into_inner());
    assert_eq!(released.state(), v1::ReservationState::Released);

    // A unit is never changed.
    let unit = PLAN.replacen("unit: tokens", "unit: requests", 1);
    let refused =
        failure(&plans.publish(v1::PublishRequest { document: unit, ..publish(true) }).await.unwrap_err());
    assert_eq!(refused.reason, ErrorReason::Destructive);
    assert!(refused.message.contains("cannot be forced"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_in_shadow_refuses_nothing_and_shows_what_it_would() {
    let (_cluster, channel) = with_plan().await;
    let shadow = PLAN.replace("    hold_ttl: 60s", "    rollout: shadow\n    hold_ttl: 60s");
    assert_ne!(shadow, PLAN);
    assert!(publish(channel.clone(), &shadow).await.changed);
    let mut ledger = Ledger::new(channel.clone());
    let mut decisions = Vec::new();
    // Five a second for a user: some would come too fast, whatever the machine.
    for _ in 0..50 {
        let admitted = receipt(ledger.reserve(reserve(&id(), "acme", 1)).await.unwrap().into_inner());
        assert_eq!(admitted.tier(), v1::Tier::Normal);
        decisions.push(admitted.shadow.unwrap().decision.unwrap());
    }
    let is_rejected = |decision: &&v1::shadow_decision::Decision| matches!(decision, v1::shadow_decision::Decision::Rejected(no) if no.limit == "user-qps");
    let rejected = decisions.iter().filter(is_rejected).count();
    assert!(rejected > 0 && rejected < 50, "{decisions:?}");

    let request =
        v1::GetQuotaRequest { tenant: "acme".into(), user: Some("u1".into()), ..Default::default() };
    let enforced = Quotas::new(channel.clone()).get_quota(request.clone()).await.unwrap().into_inner();
    assert!(enforced.lines.iter().all(|line| line.held == 0 && !line.shadow), "{enforced:#?}");
    let request = v1::GetQuotaRequest { shadow: true, ..request };
    let in_shadow = Quotas::new(channel.clone()).get_quota(request).await.unwrap().into_inner();
    let day = in_shadow.lines.iter().find(|line| line.limit_id == "user-requests-day").unwrap();
    assert_eq!((day.held, day.shadow), (50 - rejected as u64, true));

    let status = Plans::new(channel).status(v1::PlanStatusRequest::default()).await.unwrap().into_inner();
    let [route] = status.routes.as_slice() else { panic!("{status:#?}") };
    assert_eq!((route.route.as_str(), route.rollout.as_str()), ("chat.generate", "shadow"));
    assert_eq!(route.rejected, [v1::LimitCount { limit: "user-qps".into(), count: rejected as u64 }]);
    assert_eq!(route.normal + route.degraded_light + route.degraded_heavy, 50 - rejected as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_rolled_back_and_drains() {
    let (_cluster, channel) = with_plan().await;
    let mut plans = Plans::new(channel.clone());
    let raised = PLAN.replace("limit: 200, every: day", "limit: 300, every: day");
    let second = publish(channel.clone(), &raised).await.generation;
    let mut ledger = Ledger::new(channel.clone());
    let id = id();
    ledger.reserve(reserve(&id, "acme", 600)).await.unwrap();
    let roll_back = |generation, expected_generation| v1::RollbackRequest {
        generation,
        expected_generation,
        actor: "ops@example.org".into(),
    };
    assert_invalid(plans.rollback(roll_back(0, None)).await, "generation");
    let unknown = failure(&plans.rollback(roll_back(second + 5, None)).await.unwrap_err());
    assert_eq!(unknown.reason, ErrorReason::Invalid);
    let stale = failure(&plans.rollback(roll_back(second - 1, Some(second - 1))).await.unwrap_err());
    assert_eq!(stale.reason, ErrorReason::GenerationMismatch);
    let done = plans.rollback(roll_back(second - 1, Some(second))).await.unwrap().into_inner();
    assert_eq!((done.generation, done.changed), (second + 1, true));
    let again = plans.rollback(roll_back(second - 1, Some(second))).await.unwrap().into_inner();
    assert_eq!((again.generation, again.changed), (second + 1, false));
    let in_force = plans.get(v1::GetPlanRequest::default()).await.unwrap().into_inner();
    assert_eq!((in_force.document.as_str(), in_force.head.unwrap().restored), (PLAN, Some(second - 1)));

    let status = plans.status(v1::PlanStatusRequest::default()).await.unwrap().into_inner();
    let [open] = status.rollbacks.as_slice() else { panic!("{status:#?}") };
    assert_eq!((open.first, open.last, open.restored), (second, second, second - 1));
    assert_eq!((open.drained, open.reserved, open.started), (false, 1, 0));
    assert!(open.held.iter().any(|held| held.amount == "600"), "{open:#?}");
    ledger.release(v1::ReleaseRequest { id }).await.unwrap();
    let status = plans.status(v1::PlanStatusRequest { stale: true }).await.unwrap().into_inner();
    assert!(status.rollbacks[0].drained, "{status:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tenant_records_are_set_read_and_removed() {
    let (_cluster, channel) = with_plan().await;
    let mut plans = Plans::new(channel);
    let record = v1::TenantRecord {
        tier: Some("standard".into()),
        overrides: vec![v1::LimitOverride {
            limit: "tenant-tokens-month".into(),
            rule: Some(v1::limit_override::Rule::Amount(v1::AmountOverride { amount: 7, burst: None })),
        }],
        users: Vec::new(),
    };
    let set = |record| v1::SetTenantRequest {
        tenant: "newcomer".into(),
        record,
        expected_generation: None,
        actor: "test".into(),
    };
    let get = || v1::GetTenantRequest { tenant: "newcomer".into(), stale: false };
    assert_eq!(failure(&plans.get_tenant(get()).await.unwrap_err()).reason, ErrorReason::NotFound);
    let done = plans.set_tenant(set(Some(record.clone()))).await.unwrap().into_inner();
    assert!(done.changed);
    let read = plans.get_tenant(get()).await.unwrap().into_inner();
    assert_eq!(read.tenant.unwrap().record, Some(record));
    let list = plans.list_tenants(v1::ListTenantsRequest::default()).await.unwrap().into_inner();
    assert!(list.tenants.iter().any(|entry| entry.tenant == "newcomer"), "{list:#?}");
    assert!(plans.set_tenant(set(None)).await.unwrap().into_inner().changed);
    assert_eq!(failure(&plans.get_tenant(get()).await.unwrap_err()).reason, ErrorReason::NotFound);
    // A tenant that the plan itself lists is found too.
    let planned =
        plans.get_tenant(v1::GetTenantRequest { tenant: "acme".into(), stale: false }).await.unwrap();
    assert_eq!(planned.into_inner().tenant.unwrap().record.unwrap().tier.as_deref(), Some("standard"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_is_clean_and_has_the_books_digest() {
    let (_cluster, channel) = with_plan().await;
    Ledger::new(channel.clone()).reserve(reserve(&id(), "acme", 600)).await.unwrap();
    let mut operations = Operations::new(channel.clone());
    let audit = operations.audit(v1::AuditRequest { stale: false }).await.unwrap().into_inner();
    assert!(audit.ok && audit.violations.is_empty(), "{audit:#?}");
    assert_eq!((audit.reservations_open, audit.digest.len(), audit.node_id), (1, 16, 1));
    assert!(audit.accounts > 0 && !audit.sums.is_empty());
    let stale = operations.audit(v1::AuditRequest { stale: true }).await.unwrap().into_inner();
    assert_eq!(stale.ok, audit.ok);
    let unfreeze = v1::UnfreezeRequest {
        tenant: "acme".into(),
        user: None,
        route: "chat.generate".into(),
        actor: "ops".into(),
        reason: "looked into it".into(),
        ..Default::default()
    };
    assert!(!operations.unfreeze(unfreeze).await.unwrap().into_inner().changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_say_who_leads_and_answer_stale_reads() {
    let cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    publish(cluster.channel(leader), PLAN).await;
    let follower = cluster.channel((leader + 1) % 3);
    let expected = &cluster.configs[leader].client.listen;

    let mut ledger = Ledger::new(follower.clone());
    let refused = failure(&ledger.reserve(reserve(&id(), "acme", 1)).await.unwrap_err());
    assert_eq!(refused.reason, ErrorReason::NotLeader);
    assert_eq!(&refused.facts.leader.unwrap().address, expected);
    let mut quotas = Quotas::new(follower);
    let ask = |stale| v1::GetQuotaRequest { tenant: "acme".into(), stale, ..Default::default() };
    let refused = failure(&quotas.get_quota(ask(false)).await.unwrap_err());
    assert_eq!(&refused.facts.leader.unwrap().address, expected);
    quotas.get_quota(ask(true)).await.unwrap();
}
