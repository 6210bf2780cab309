//! Reads and operators' calls: whom they ask, and what is repeated.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use holdfast_client::{CallError, Client, ErrorReason, Failure, LeaderHint, v1};
use support::{Fake, PATIENCE, nobody};

fn client(members: &[&str]) -> Client {
    Client::builder(members.iter().copied())
        .deadline(PATIENCE)
        .attempt_timeout(PATIENCE)
        .connect_lazy()
        .unwrap()
}

fn publishing(client: &Client) -> tokio::task::JoinHandle<Result<v1::PublishResponse, CallError>> {
    let client = client.clone();
    tokio::spawn(async move { client.publish_plan("document", Some(3), false, "ops").await })
}

#[tokio::test]
async fn a_publish_follows_the_leader_but_is_not_repeated_once_it_may_be_done() {
    let mut follower = Fake::spawn().await;
    let mut leader = Fake::spawn().await;
    let client = client(&[&follower.address]);
    let publishing_1 = publishing(&client);
    let hint = LeaderHint { node_id: 2, address: leader.address.clone() };
    let refusal = Failure::not_leader(Some(hint)).to_status();
    follower.next_publish().await.answer.send(Err(refusal)).unwrap();
    let published = leader.next_publish().await;
    assert_eq!((published.request.expected_generation, published.request.actor.as_str()), (Some(3), "ops"));
    let answer = v1::PublishResponse { revision: 9, generation: 4, changed: true };
    published.answer.send(Ok(answer)).unwrap();
    assert_eq!(publishing_1.await.unwrap().unwrap(), answer);

    let publishing_2 = publishing(&client);
    leader.next_publish().await.answer.send(Err(tonic::Status::unavailable("reset"))).unwrap();
    let error = publishing_2.await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::Unknown(unknown) if unknown.attempts == 1), "{error}");
}

#[tokio::test]
async fn every_problem_of_a_document_arrives() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let publishing = publishing(&client);
    let problem = |line| holdfast_client::FieldError::new(format!("document:{line}"), "is wrong");
    let refusal = Failure::invalid(vec![problem(3), problem(9)]);
    member.next_publish().await.answer.send(Err(refusal.to_status())).unwrap();
    let error = publishing.await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::Invalid(failure) if *failure == refusal), "{error}");
}

#[tokio::test]
async fn one_member_is_enough_to_learn_them_all() {
    let first = Fake::spawn().await;
    let mut second = Fake::spawn().await;
    first.lists(&[&first.address, &second.address]);
    let client = Client::builder([nobody().await.as_str(), &first.address])
        .deadline(PATIENCE)
        .connect()
        .await
        .unwrap();
    assert!(client.known_members().contains(&second.address));
    // A certain member can be asked on purpose.
    let pinned = client.at(&second.address);
    let publishing = publishing(&pinned);
    second.next_publish().await.answer.send(Ok(v1::PublishResponse::default())).unwrap();
    publishing.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_read_that_nobody_answers_is_unavailable_and_not_unknown() {
    let member = Fake::spawn().await;
    let client = client(&[&member.address]).with_deadline(Duration::from_millis(100));
    let error = client.audit().await.unwrap_err();
    assert!(
        matches!(&error, CallError::Unavailable(failure) if failure.reason.has_no_side_effects()),
        "{error}"
    );
    assert_ne!(error.reason(), Some(ErrorReason::OutcomeUnknown));
}
