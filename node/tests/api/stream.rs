//! The batched stream.

use std::collections::BTreeMap;

use holdfast_proto::v1::batch_command::Command;
use holdfast_proto::{ErrorReason, Failure, v1};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::{Cluster, eventually};

/// A batched stream as a client has it.
pub struct Stream {
    pub send: mpsc::Sender<v1::BatchRequest>,
    pub answers: tonic::Streaming<v1::BatchResponse>,
}

impl Stream {
    pub async fn open(channel: Channel) -> Stream {
        let (send, receive) = mpsc::channel(64);
        let answers = Ledger::new(channel).batch(ReceiverStream::new(receive)).await.unwrap().into_inner();
        Stream { send, answers }
    }

    pub async fn say(&self, commands: Vec<v1::BatchCommand>) {
        self.send.send(v1::BatchRequest { commands }).await.unwrap();
    }

    /// The next `count` answers by correlation, and in how many messages they came.
    pub async fn hear(&mut self, count: usize) -> (BTreeMap<u64, v1::batch_answer::Outcome>, usize) {
        let (mut heard, mut messages) = (BTreeMap::new(), 0);
        while heard.len() < count {
            let message = self.answers.message().await.unwrap().expect("the stream ended early");
            messages += 1;
            for answer in message.answers {
                let twice = heard.insert(answer.correlation, answer.outcome.unwrap());
                assert!(twice.is_none(), "two answers for {}", answer.correlation);
            }
        }
        (heard, messages)
    }
}

pub fn command(correlation: u64, command: Command) -> v1::BatchCommand {
    v1::BatchCommand { correlation, deadline_ms: 0, want_digest: false, command: Some(command) }
}

pub fn failed(outcome: &v1::batch_answer::Outcome) -> Failure {
    match outcome {
        v1::batch_answer::Outcome::Failure(failure) => Failure::try_from(failure.clone()).unwrap(),
        v1::batch_answer::Outcome::Answer(answer) => panic!("was answered: {answer:?}"),
    }
}

fn answered(outcome: &v1::batch_answer::Outcome) -> &v1::CommandAnswer {
    match outcome {
        v1::batch_answer::Outcome::Answer(answer) => answer,
        v1::batch_answer::Outcome::Failure(failure) => panic!("failed: {failure:?}"),
    }
}

async fn with_plan() -> (Cluster, Channel) {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), PLAN).await;
    (cluster, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_messages_commands_are_answered_together_each_by_its_number() {
    let (_cluster, channel) = with_plan().await;
    let mut stream = Stream::open(channel).await;
    let releases = |from: u64| -> Vec<_> {
        (from..from + 500).map(|n| command(n, Command::Release(v1::ReleaseRequest { id: id() }))).collect()
    };
    stream.say(releases(0)).await;
    stream.say(releases(500)).await;
    let (heard, messages) = stream.hear(1_000).await;
    assert!(messages <= 2, "{messages} messages for two");
    let revisions: Vec<_> = heard.values().map(|outcome| answered(outcome).revision).collect();
    // Applied in the order in which they were sent, one revision each.
    assert!(revisions.windows(2).all(|pair| pair[0] < pair[1]), "{revisions:?}");
    drop(stream.send);
    assert!(stream.answers.message().await.unwrap().is_none(), "it ends when the client has said all");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_fails_by_itself_and_the_rest_goes_on() {
    let (_cluster, channel) = with_plan().await;
    let mut stream = Stream::open(channel).await;
    let good = id();
    let mut with_digest = command(3, Command::Release(v1::ReleaseRequest { id: id() }));
    with_digest.want_digest = true;
    stream
        .say(vec![
            command(1, Command::Reserve(reserve(&good, "acme", 10))),
            command(2, Command::Reserve(reserve("nonsense", "acme", 10))),
            with_digest,
            v1::BatchCommand { correlation: 4, ..v1::BatchCommand::default() },
            command(5, Command::Start(start(&good, "op"))),
            command(6, Command::Settle(settle(&good, "another", 1))),
        ])
        .await;
    let (heard, _) = stream.hear(6).await;
    assert_eq!(receipt(answered(&heard[&1]).clone()).state(), v1::ReservationState::Reserved);
    assert_eq!(failed(&heard[&2]).facts.violations[0].field, "reserve.id");
    let digest = answered(&heard[&3]).digest.clone().unwrap();
    assert!(digest.digest.len() == 16 && digest.revision >= answered(&heard[&3]).revision);
    assert_eq!(failed(&heard[&4]).facts.violations[0].field, "command");
    assert_eq!(receipt(answered(&heard[&5]).clone()).state(), v1::ReservationState::Started);
    let conflict = failed(&heard[&6]);
    assert_eq!(conflict.reason, ErrorReason::Conflict);
    assert!(conflict.facts.revision.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_commands_or_bytes_are_refused() {
    let (_cluster, channel) = with_plan().await;
    let mut stream = Stream::open(channel).await;
    let release = |n| command(n, Command::Release(v1::ReleaseRequest { id: id() }));
    stream.say((0..1_025).map(release).collect()).await;
    let (heard, _) = stream.hear(1_025).await;
    assert!(heard.values().all(|outcome| failed(outcome).reason == ErrorReason::Invalid));
    // The stream still works, until a message comes that cannot be taken in at all.
    stream.say(vec![release(1)]).await;
    stream.hear(1).await;
    let mut huge = reserve(&id(), "acme", 1);
    huge.id = "x".repeat(5 << 20);
    stream.say(vec![command(2, Command::Reserve(huge))]).await;
    let ended = loop {
        match stream.answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended without a word"),
            Err(status) => break failure(&status),
        }
    };
    assert_eq!((ended.reason, ended.facts.violations[0].field.as_str()), (ErrorReason::Invalid, "message"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_time_is_up_is_dropped_before_it_is_proposed_and_never_after() {
    // One entry at a time, and a leader that keeps its place for a while without the others: the first
    // command is under way and cannot be decided, the second waits behind it.
    let mut cluster = Cluster::found(3, |config| {
        config.queue.entries_under_way_max = 1;
        config.raft.election_ms_min = 4_000;
        config.raft.election_ms_max = 5_000;
    });
    let leader = cluster.leader().await;
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let mut stream = Stream::open(cluster.channel(leader)).await;
    cluster.stop_all(&others);
    let (first, second) = (id(), id());
    let release = |n, id: &str, deadline_ms| v1::BatchCommand {
        deadline_ms,
        ..command(n, Command::Release(v1::ReleaseRequest { id: id.into() }))
    };
    stream.say(vec![release(1, &first, 1_500)]).await;
    // It has been handed to Raft once the log is longer than what is committed.
    eventually("the first command is under way", async || {
        let mut members = v1::members_client::MembersClient::new(cluster.channel(leader));
        let status = members.status(v1::StatusRequest { only_this: true }).await.ok()?.into_inner();
        (status.members[0].last_index > status.members[0].committed_index).then_some(())
    })
    .await;
    stream.say(vec![release(2, &second, 200)]).await;
    let (heard, _) = stream.hear(1).await;
    assert_eq!(failed(&heard[&2]).reason, ErrorReason::DroppedLate);
    let (heard, _) = stream.hear(1).await;
    let unknown = failed(&heard[&1]).reason;
    assert!(!unknown.has_no_side_effects(), "{unknown} says more than anybody knows");

    for other in others {
        cluster.start(other);
    }
    let leader = cluster.leader().await;
    let mut ledger = Ledger::new(cluster.channel(leader));
    // Had the second been proposed, its tombstone would refuse this with WRONG_STATE.
    publish(cluster.channel(leader), PLAN).await;
    receipt(ledger.reserve(reserve(&second, "acme", 1)).await.unwrap().into_inner());
}
