//! Refusals from applied state: no log entry stands behind them, and nothing is refused that would be admitted.

use holdfast_proto::v1::batch_command::Command;
use holdfast_proto::{ErrorReason, Failure, v1};
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::Cluster;
use crate::stream::{Stream, command, failed};

/// No time passes in it: nothing but commands makes log entries.
const HUNDRED: &str = "
schema: admissionBudget.v1
routes:
  - { name: chat.generate, hold_ttl: 1h }
limits:
  tokens: { scope: tenant, unit: tokens, period: { limit: 100, every: lifetime } }
";

async fn full(nodes: u64) -> (Cluster, Channel, String) {
    let cluster = Cluster::found(nodes, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), HUNDRED).await;
    let held = id();
    Ledger::new(channel.clone()).reserve(reserve(&held, "acme", 100)).await.unwrap();
    (cluster, channel, held)
}

async fn last_index(channel: &Channel) -> u64 {
    let ask = v1::StatusRequest { only_this: true };
    let mut members = v1::members_client::MembersClient::new(channel.clone());
    let status = members.status(ask).await.unwrap().into_inner();
    status.members[0].last_index
}

async fn refused(channel: &Channel, wire: v1::ReserveRequest) -> Failure {
    let refused = failure(&Ledger::new(channel.clone()).reserve(wire).await.unwrap_err());
    assert_eq!(refused.reason, ErrorReason::RejectedHeld);
    refused
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_refusals_does_not_move_the_logs_end() {
    let (_cluster, channel, _) = full(3).await;
    let first = refused(&channel, reserve(&id(), "acme", 1)).await;
    assert_eq!(first.facts.unlogged_at_ms, None, "the first one of a scope goes through the log");
    let (end, revision) = (last_index(&channel).await, first.facts.revision);
    for _ in 0..50 {
        let refused = refused(&channel, reserve(&id(), "acme", 1)).await;
        assert!(refused.facts.unlogged_at_ms.is_some(), "{refused:?}");
        assert_eq!(refused.facts.revision, revision, "the last one applied");
        assert!(refused.facts.retry_after_ms.is_none() && refused.facts.rejection.is_some());
    }
    let mut stream = Stream::open(channel.clone()).await;
    for message in 0..10 {
        let reserves =
            (0..100).map(|n| command(message * 100 + n, Command::Reserve(reserve(&id(), "acme", 1))));
        stream.say(reserves.collect()).await;
    }
    let (heard, _) = stream.hear(1_000).await;
    assert!(heard.values().all(|outcome| failed(outcome).facts.unlogged_at_ms.is_some()));
    assert_eq!(last_index(&channel).await, end, "1050 refusals made log entries");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_both_kinds_has_all_its_answers() {
    let (_cluster, channel, _) = full(1).await;
    refused(&channel, reserve(&id(), "acme", 1)).await;
    let mut stream = Stream::open(channel).await;
    let of = |n: u64| if n.is_multiple_of(3) { ("acme".to_owned(), 1) } else { (format!("other-{n}"), 1) };
    let commands = (0..90).map(|n| {
        let (tenant, tokens) = of(n);
        command(n, Command::Reserve(reserve(&id(), &tenant, tokens)))
    });
    stream.say(commands.collect()).await;
    let (heard, _) = stream.hear(90).await;
    for (n, outcome) in heard {
        let is_refused = matches!(outcome, v1::batch_answer::Outcome::Failure(_));
        assert_eq!(is_refused, n.is_multiple_of(3), "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fits_again_is_admitted_at_once() {
    let (_cluster, channel, held) = full(1).await;
    let mut ledger = Ledger::new(channel.clone());
    for _ in 0..3 {
        refused(&channel, reserve(&id(), "acme", 1)).await;
    }
    ledger.release(v1::ReleaseRequest { id: held }).await.unwrap();
    // A first attempt of a scope that refused a moment ago.
    ledger.reserve(reserve(&id(), "acme", 100)).await.unwrap();
    assert!(refused(&channel, reserve(&id(), "acme", 1)).await.facts.revision.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_attempt_is_refused_by_the_log_only() {
    let (_cluster, channel, _) = full(1).await;
    refused(&channel, reserve(&id(), "acme", 1)).await;
    let end = last_index(&channel).await;
    let again = v1::ReserveRequest { attempt: 2, ..reserve(&id(), "acme", 1) };
    assert_eq!(refused(&channel, again).await.facts.unlogged_at_ms, None);
    assert_eq!(last_index(&channel).await, end + 1);
}
