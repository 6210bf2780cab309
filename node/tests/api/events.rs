//! The stream of events.

use holdfast_ledger::limits::{EVENTS_KEPT_MAX, LEGS_MAX};
use holdfast_proto::v1::adjustment_kind::Kind;
use holdfast_proto::{ErrorReason, v1};
use tonic::Streaming;
use tonic::transport::Channel;

use crate::adjusting::adjust;
use crate::client::*;
use crate::cluster::{Cluster, PATIENCE};

/// One limit and no rate; events are kept for as short as can be.
const SMALL: &str = "
schema: admissionBudget.v1
events_kept: 1m
routes: [{ name: chat.generate }]
limits:
  tenant-tokens-month: { scope: tenant, unit: tokens, period: { limit: 1000, every: month } }
";

async fn watch(
    channel: &Channel,
    from: u64,
    follow: bool,
    tenant: Option<&str>,
) -> Streaming<v1::WatchEventsResponse> {
    let request = v1::WatchEventsRequest { from, follow, tenant: tenant.map(Into::into) };
    Quotas::new(channel.clone()).watch_events(request).await.unwrap().into_inner()
}

async fn next(stream: &mut Streaming<v1::WatchEventsResponse>) -> Option<v1::WatchEventsResponse> {
    tokio::time::timeout(PATIENCE, stream.message()).await.expect("an event should have come").unwrap()
}

/// The next answer that tells something: a follower says where it is before it has applied anything.
async fn told(stream: &mut Streaming<v1::WatchEventsResponse>) -> v1::WatchEventsResponse {
    loop {
        let answer = next(stream).await.expect("a stream that follows does not end");
        if !answer.events.is_empty() {
            return answer;
        }
    }
}

/// Every event up to the end of a stream that does not follow.
async fn all(channel: &Channel, from: u64, tenant: Option<&str>) -> Vec<v1::Event> {
    let mut stream = watch(channel, from, false, tenant).await;
    let mut events = Vec::new();
    while let Some(answer) = next(&mut stream).await {
        events.extend(answer.events);
    }
    events
}

fn kinds(events: &[v1::Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

async fn use_up(channel: &Channel, tokens: u64) {
    let mut ledger = Ledger::new(channel.clone());
    let id = id();
    ledger.reserve(reserve(&id, "acme", tokens)).await.unwrap();
    ledger.start(start(&id, "op")).await.unwrap();
    ledger.settle(settle(&id, "op", tokens)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_told_in_order_from_any_number_and_as_they_happen() {
    let cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    let channel = cluster.channel(leader);
    publish(channel.clone(), SMALL).await;
    // A follower tells them too, from what it has applied.
    let mut following = watch(&cluster.channel((leader + 1) % 3), 0, true, None).await;
    let first = told(&mut following).await;
    assert_eq!((kinds(&first.events), first.next), (vec!["PLAN_PUBLISHED"], 2));

    // One alert at each threshold, however often it is passed (field case 54).
    use_up(&channel, 800).await;
    let mut operations = Operations::new(channel.clone());
    operations.adjust(adjust(&id(), Kind::Correct(100))).await.unwrap();
    use_up(&channel, 250).await;
    let mut later = Vec::new();
    while later.len() < 3 {
        later.extend(told(&mut following).await.events);
    }
    assert_eq!(kinds(&later), ["CROSSED", "ADJUSTED", "CROSSED"]);
    assert_eq!((later[0].percent, later[2].percent), (Some(80), Some(95)));
    assert_eq!(later[1].reason.as_deref(), Some("ticket 7"));
    let numbers: Vec<u64> = later.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, [2, 3, 4]);

    assert_eq!(all(&channel, 0, None).await.len(), 4);
    assert_eq!(all(&channel, 3, None).await, later[1..]);
    assert_eq!(all(&channel, 5, None).await, [], "nothing has happened from there on");
    assert_eq!(all(&channel, 0, Some("acme")).await, later);
    assert_eq!(all(&channel, 0, Some("other")).await, []);
}

/// What is in the shadow lane, forced or rolled back is told as such, not in words only.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_roll_out_and_its_roll_back() {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    publish(
        channel.clone(),
        &SMALL.replace("{ name: chat.generate }", "{ name: chat.generate, rollout: shadow }"),
    )
    .await;
    use_up(&channel, 850).await;
    publish(channel.clone(), SMALL).await;
    use_up(&channel, 850).await;
    Ledger::new(channel.clone()).reserve(reserve(&id(), "acme", 10)).await.unwrap();
    let request = v1::PublishRequest {
        document: SMALL.replace("scope: tenant,", "scope: tenant+user,"),
        expected_generation: None,
        actor: "test".into(),
        force: true,
    };
    Plans::new(channel.clone()).publish(request).await.unwrap();
    let request = v1::RollbackRequest { generation: 1, expected_generation: None, actor: "test".into() };
    Plans::new(channel.clone()).rollback(request).await.unwrap();

    let events = all(&channel, 0, None).await;
    let wanted = [
        "PLAN_PUBLISHED",
        "CROSSED",
        "PLAN_PUBLISHED",
        "CROSSED",
        "PLAN_PUBLISHED",
        "PLAN_PUBLISHED",
        "ROLLED_BACK",
    ];
    assert_eq!(kinds(&events), wanted, "{events:#?}");
    let marks: Vec<_> = events.iter().map(|event| (event.shadow, event.forced)).collect();
    assert_eq!(marks[..5], [(false, false), (true, false), (false, false), (false, false), (false, true)]);
    assert_eq!(events[1].text, "80 % used: DEGRADED_LIGHT begins, in the shadow lane");
    let back = &events[6];
    assert_eq!((back.generation, back.first_rolled_back, back.restored), (Some(4), Some(2), Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_member_ends_its_streams_by_name() {
    let mut cluster = Cluster::found(1, |_| {});
    let leader = cluster.leader().await;
    let channel = cluster.channel(leader);
    publish(channel.clone(), SMALL).await;
    let mut following = watch(&channel, 0, true, None).await;
    next(&mut following).await.unwrap();
    let ending = tokio::spawn(async move { following.message().await });
    cluster.stop(0);
    let status = tokio::time::timeout(PATIENCE, ending).await.unwrap().unwrap().unwrap_err();
    assert_eq!(failure(&status).reason, ErrorReason::ShuttingDown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_no_name_is_refused() {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    let request = v1::WatchEventsRequest { from: 0, follow: false, tenant: Some(String::new()) };
    assert_invalid(Quotas::new(channel).watch_events(request).await, "tenant");
}

/// Who asks below the first event kept is told its number, and can go on from there.
#[tokio::test(flavor = "multi_thread")]
async fn below_the_first_event_kept_its_number_is_told() {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    // As many limits as a request may have legs: using them up crosses two thresholds of each.
    let limit = |at: usize| {
        format!("  total-{at}: {{ scope: user, unit: tokens, period: {{ limit: 100, every: lifetime }} }}\n")
    };
    let limits: String = (0..LEGS_MAX).map(limit).collect();
    let plan = format!("schema: admissionBudget.v1\nroutes: [{{ name: chat.generate }}]\nlimits:\n{limits}");
    publish(channel.clone(), &plan).await;
    let per_request = 2 * LEGS_MAX;
    let mut ledger = Ledger::new(channel.clone());
    for at in 0..EVENTS_KEPT_MAX / per_request + 1 {
        let mut request = reserve(&id(), "acme", 100);
        request.request.as_mut().unwrap().user = Some(format!("u{at}"));
        ledger.reserve(request).await.unwrap();
    }
    let request = v1::WatchEventsRequest { from: 1, follow: false, tenant: None };
    let status = Quotas::new(channel.clone()).watch_events(request).await.unwrap_err();
    let gone = failure(&status);
    assert_eq!((gone.reason, status.code()), (ErrorReason::EventsGone, tonic::Code::OutOfRange));
    let first: u64 = gone.facts.metadata["first_kept"].parse().unwrap();
    // The publish is one event, and of the rest one request's are too many.
    assert_eq!(first, 2 + per_request as u64);
    let kept = all(&channel, first, None).await;
    assert_eq!((kept.len(), kept[0].sequence), (EVENTS_KEPT_MAX, first));
    let below = v1::WatchEventsRequest { from: first - 1, follow: false, tenant: None };
    let status = Quotas::new(channel.clone()).watch_events(below).await.unwrap_err();
    assert_eq!(failure(&status).reason, ErrorReason::EventsGone);
    assert_eq!(all(&channel, 0, None).await, kept, "0 is the first one kept");
}
