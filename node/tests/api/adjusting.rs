//! Operators' adjustments over the wire.

use holdfast_proto::v1::adjustment_kind::Kind;
use holdfast_proto::{ErrorReason, v1};
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::Cluster;

/// An adjustment of the sample plan's monthly tokens of acme.
pub fn adjust(id: &str, kind: Kind) -> v1::AdjustRequest {
    let subject = v1::LimitSubject {
        limit: "tenant-tokens-month".into(),
        tenant: Some("acme".into()),
        ..Default::default()
    };
    v1::AdjustRequest {
        id: id.into(),
        subject: Some(subject),
        epoch_start_ms: None,
        what: Some(v1::AdjustmentKind { kind: Some(kind) }),
        actor: "ops".into(),
        reason: "ticket 7".into(),
    }
}

async fn with_plan() -> (Cluster, Channel) {
    let cluster = Cluster::found(1, |_| {});
    let leader = cluster.leader().await;
    let channel = cluster.channel(leader);
    publish(channel.clone(), PLAN).await;
    (cluster, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adjustment_is_booked_once() {
    let (_cluster, channel) = with_plan().await;
    let mut operations = Operations::new(channel.clone());
    let id = id();
    let charge = adjust(&id, Kind::SetUsed(5_000));
    let first = operations.adjust(charge.clone()).await.unwrap().into_inner();
    let receipt = first.adjustment.clone().unwrap();
    assert_eq!(receipt.request, Some(charge.clone()));
    assert_eq!((receipt.before.unwrap().used, receipt.after.unwrap().used), (0, 5_000));
    let again = operations.adjust(charge).await.unwrap().into_inner();
    assert_eq!(again.adjustment, first.adjustment, "the same receipt");
    assert!(again.revision > first.revision);
    let other = operations.adjust(adjust(&id, Kind::SetUsed(5_001))).await.unwrap_err();
    assert_eq!(failure(&other).reason, ErrorReason::Conflict);

    let ask = v1::GetQuotaRequest { tenant: "acme".into(), user: None, stale: false, shadow: false };
    let quota = Quotas::new(channel).get_quota(ask).await.unwrap().into_inner();
    let line = quota.lines.iter().find(|line| line.limit_id == "tenant-tokens-month").unwrap();
    assert_eq!(line.used, 5_000);
    let mut old = adjust(&crate::client::id(), Kind::Grant(1));
    old.epoch_start_ms = Some(1);
    let closed = failure(&operations.adjust(old).await.unwrap_err());
    assert_eq!(closed.reason, ErrorReason::EpochClosed);
    assert_eq!(closed.facts.metadata["running_epoch"], line.epoch_start_ms.unwrap().to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_names_its_field_and_changes_nothing() {
    let (_cluster, channel) = with_plan().await;
    let mut operations = Operations::new(channel.clone());
    let good = || adjust(&id(), Kind::Grant(1));
    let with = |change: fn(&mut v1::AdjustRequest)| {
        let mut request = good();
        change(&mut request);
        request
    };
    for (request, field) in [
        (with(|request| request.id = "no ulid".into()), "id"),
        (with(|request| request.subject = None), "subject"),
        (with(|request| request.subject.as_mut().unwrap().limit = String::new()), "subject.limit"),
        (with(|request| request.subject.as_mut().unwrap().limit = "no-such".into()), "limit"),
        (with(|request| request.subject.as_mut().unwrap().tenant = None), "limit"),
        (with(|request| request.what = None), "what"),
        (with(|request| request.what = Some(v1::AdjustmentKind { kind: None })), "what.kind"),
        (with(|request| request.actor = String::new()), "actor"),
        (with(|request| request.reason = String::new()), "reason"),
        (with(|request| request.reason = "x".repeat(1_025)), "reason"),
        (adjust(&id(), Kind::Grant(0)), "grant"),
        (adjust(&id(), Kind::Correct(1)), "correct"),
        (adjust(&id(), Kind::EndBoost("?".into())), "what.end_boost"),
        (adjust(&id(), Kind::Boost(v1::Boost { amount: 1, until_ms: 1 })), "boost.until_ms"),
    ] {
        assert_invalid(operations.adjust(request).await, field);
    }
    let events = Quotas::new(channel).watch_events(v1::WatchEventsRequest::default()).await.unwrap();
    let first = events.into_inner().message().await.unwrap().unwrap();
    assert_eq!(first.events.len(), 1, "the publish only: {first:#?}");
}
