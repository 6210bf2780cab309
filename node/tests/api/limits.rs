//! Bounds on what clients may have open and under way: refused at once, by name, and nothing is kept without bound.

use std::time::{Duration, Instant};

use holdfast_proto::v1::batch_command::Command;
use holdfast_proto::{ErrorReason, v1};
use tokio::io::AsyncReadExt;
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::{Cluster, PATIENCE, eventually};
use crate::stream::{Stream, command, failed};

fn release(n: u64) -> v1::BatchCommand {
    command(n, Command::Release(v1::ReleaseRequest { id: id() }))
}

/// A value of the node's metrics page.
async fn metric(cluster: &Cluster, node: usize, name: &str) -> u64 {
    use tokio::io::AsyncWriteExt;
    let mut http = tokio::net::TcpStream::connect(&cluster.configs[node].http.listen).await.unwrap();
    http.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    http.read_to_string(&mut page).await.unwrap();
    let line = page.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_too_many_is_told_so_and_closed() {
    let cluster = Cluster::found(1, |config| config.queue.connections_max = 3);
    cluster.leader().await;
    let settled = async || (metric(&cluster, 0, "holdfast_connections").await == 0).then_some(());
    eventually("the connections of the set-up are closed", settled).await;
    let address = cluster.configs[0].client.listen.clone();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    let full = async || (metric(&cluster, 0, "holdfast_connections").await == 3).then_some(());
    eventually("all places are taken", full).await;

    let refused =
        Operations::new(cluster.channel(0)).audit(v1::AuditRequest { stale: true }).await.unwrap_err();
    let refused = failure(&refused);
    assert_eq!(refused.reason, ErrorReason::Overloaded, "{refused}");
    assert!(refused.to_string().contains("queue.connections_max"), "{refused}");
    assert!(metric(&cluster, 0, "holdfast_connections_refused_total").await >= 1);
    // Who asks nothing is closed all the same.
    let mut silent = tokio::net::TcpStream::connect(&address).await.unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest)).await.expect("it is closed").unwrap();

    drop(held.pop());
    eventually("a place is free again", async || {
        let audit = Operations::new(cluster.channel(0)).audit(v1::AuditRequest { stale: true }).await;
        audit.ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_past_the_bounds_are_refused_at_once_while_others_wait() {
    // One entry at a time, and a leader that keeps its place for a while without the others: the first
    // command is under way and cannot be decided, the others wait behind it.
    let mut cluster = Cluster::found(3, |config| {
        config.queue.entries_under_way_max = 1;
        config.queue.commands_max = 1_500;
        config.queue.stream_commands_max = 1_100;
        config.queue.connection_commands_max = 1_100;
        config.raft.election_ms_min = 8_000;
        config.raft.election_ms_max = 9_000;
    });
    let leader = cluster.leader().await;
    let channel = cluster.channel(leader);
    let mut first = Stream::open(channel.clone()).await;
    let mut same_connection = Stream::open(channel).await;
    let mut other_connection = Stream::open(cluster.channel(leader)).await;
    cluster.stop_all(&[(leader + 1) % 3, (leader + 2) % 3]);
    let with_time = |n| v1::BatchCommand { deadline_ms: 5_000, ..release(n) };
    first.say(vec![with_time(0)]).await;
    eventually("the first command is under way", async || {
        let mut members = v1::members_client::MembersClient::new(cluster.channel(leader));
        let status = members.status(v1::StatusRequest { only_this: true }).await.ok()?.into_inner();
        (status.members[0].last_index > status.members[0].committed_index).then_some(())
    })
    .await;
    first.say((1..=1_000).map(with_time).collect()).await;
    let waiting = async || (metric(&cluster, leader, "holdfast_queue_depth").await == 1_000).then_some(());
    eventually("a thousand wait behind it", waiting).await;
    assert_eq!(metric(&cluster, leader, "holdfast_stream_commands").await, 1_001);

    for (stream, bound) in [
        (&mut same_connection, "queue.connection_commands_max"),
        (&mut other_connection, "queue.commands_max"),
    ] {
        stream.say((0..600).map(with_time).collect()).await;
        let (heard, _) = stream.hear(600).await;
        for outcome in heard.values() {
            let refused = failed(outcome);
            assert!(
                refused.reason == ErrorReason::Overloaded && refused.reason.has_no_side_effects(),
                "{refused}"
            );
            assert!(refused.to_string().contains(bound), "{refused} does not name {bound}");
        }
    }
    // What waited is answered when its time is up, and everything is given back.
    let (heard, _) = first.hear(1_001).await;
    assert!(heard.values().all(|outcome| failed(outcome).reason != ErrorReason::Overloaded));
    let empty = async || (metric(&cluster, leader, "holdfast_stream_commands").await == 0).then_some(());
    eventually("nothing is counted any more", empty).await;
}

/// A client that sends and does not read: the node stops reading from it, keeps a bounded number of its
/// commands, serves others, and answers every command once it reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_its_answers_is_not_read_from() {
    const MESSAGES: u64 = 400;
    const COMMANDS: u64 = 250;
    const BOUND: u64 = 2_000;
    let cluster = Cluster::found(1, |config| config.queue.stream_commands_max = BOUND);
    cluster.leader().await;
    // The answers to one message fill its window.
    let endpoint = Channel::from_shared(format!("http://{}", cluster.configs[0].client.listen)).unwrap();
    let slow = endpoint.initial_stream_window_size(4_096).connect_lazy();
    let Stream { send, mut answers } = Stream::open(slow).await;
    let sender = tokio::spawn(async move {
        for message in 0..MESSAGES {
            let commands = (0..COMMANDS).map(|n| release(message * COMMANDS + n)).collect();
            send.send(v1::BatchRequest { commands }).await.unwrap();
        }
    });
    // It has stopped taking commands in when the book does not move for a while; what is asserted holds at any time.
    let (mut seen, mut still_since) = (0, Instant::now());
    while still_since.elapsed() < Duration::from_millis(500) {
        let kept = metric(&cluster, 0, "holdfast_stream_commands").await;
        assert!(kept < BOUND + COMMANDS, "{kept} commands are kept for a client that does not read");
        let revision = metric(&cluster, 0, "holdfast_revision").await;
        if revision != seen {
            (seen, still_since) = (revision, Instant::now());
        }
    }
    assert!(seen < MESSAGES * COMMANDS, "everything was taken in although nothing was read");
    let mut other = Stream::open(cluster.channel(0)).await;
    other.say(vec![release(1)]).await;
    other.hear(1).await;

    let mut heard = std::collections::BTreeSet::new();
    while (heard.len() as u64) < MESSAGES * COMMANDS {
        let message = answers.message().await.unwrap().expect("the stream ended early");
        for answer in message.answers {
            assert!(heard.insert(answer.correlation), "two answers for {}", answer.correlation);
        }
    }
    sender.await.unwrap();
}
