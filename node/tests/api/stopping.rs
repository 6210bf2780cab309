//! A node that is stopped while it is busy loses nothing that it has acknowledged.

use std::time::Duration;

use holdfast_proto::v1;
use holdfast_proto::v1::batch_command::Command;

use crate::client::*;
use crate::cluster::{Cluster, eventually};
use crate::stream::{Stream, command, failed};

/// Releases ids never seen as fast as they are answered, until the stream ends; gives those acknowledged.
async fn release_until_it_ends(channel: tonic::transport::Channel) -> Vec<String> {
    let mut stream = Stream::open(channel).await;
    let mut acknowledged = Vec::new();
    for round in 0.. {
        let ids: Vec<_> = (0..50).map(|_| id()).collect();
        let release =
            |(n, id): (u64, &String)| command(n, Command::Release(v1::ReleaseRequest { id: id.clone() }));
        let commands = (round * 50..).zip(&ids).map(release).collect();
        if stream.send.send(v1::BatchRequest { commands }).await.is_err() {
            break;
        }
        let mut left = ids.len();
        while left > 0 {
            let Ok(Some(message)) = stream.answers.message().await else { return acknowledged };
            left -= message.answers.len();
            for answer in message.answers {
                if let Some(v1::batch_answer::Outcome::Answer(_)) = answer.outcome {
                    acknowledged.push(ids[(answer.correlation % 50) as usize].clone());
                } else {
                    // Another leads by now; nothing more will be acknowledged here.
                    return acknowledged;
                }
            }
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_while_the_leader_stopped_is_there() {
    let mut cluster = Cluster::found(3, |_| {});
    let leader = cluster.leader().await;
    publish(cluster.channel(leader), PLAN).await;
    let clients: Vec<_> =
        (0..4).map(|_| tokio::spawn(release_until_it_ends(cluster.channel(leader)))).collect();
    let mut operations = Operations::new(cluster.channel(leader));
    eventually("the clients are busy", async || {
        let audit = Operations::new(cluster.channel(leader)).audit(v1::AuditRequest { stale: true }).await;
        (audit.ok()?.into_inner().revision > 500).then_some(())
    })
    .await;
    cluster.stop(leader);
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }
    assert!(acknowledged.len() > 200, "only {} were acknowledged", acknowledged.len());
    assert!(operations.audit(v1::AuditRequest { stale: true }).await.is_err(), "the stopped node answers");

    let next = cluster.leader().await;
    let mut stream = Stream::open(cluster.channel(next)).await;
    for ids in acknowledged.chunks(1_000) {
        // The tombstone that was acknowledged refuses the reserve.
        let reserve = |(n, id): (u64, &String)| command(n, Command::Reserve(reserve(id, "acme", 1)));
        stream.say((0..).zip(ids).map(reserve).collect()).await;
        let (heard, _) = stream.hear(ids.len()).await;
        for outcome in heard.values() {
            let refused = failed(outcome);
            assert_eq!(refused.facts.state, Some(holdfast_ledger::answer::State::Released), "{refused}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_stay_do_not_hold_the_stop() {
    let mut cluster = Cluster::found(1, |_| {});
    cluster.leader().await;
    let mut idle = Stream::open(cluster.channel(0)).await;
    idle.say(vec![command(1, Command::Release(v1::ReleaseRequest { id: id() }))]).await;
    assert!(idle.answers.message().await.unwrap().is_some());
    let stopped = tokio::task::spawn_blocking(move || cluster.stop(0));
    tokio::time::timeout(Duration::from_secs(20), stopped).await.expect("the stop hangs").unwrap();
    let ended = idle.answers.message().await.expect_err("the stream says why it ends");
    assert_eq!(failure(&ended).reason, holdfast_proto::ErrorReason::ShuttingDown);
}
