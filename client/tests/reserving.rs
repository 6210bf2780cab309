//! Reservations against members that fail in every way a cluster can.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::Duration;

use holdfast_client::{
    Amounts, CallError, Client, Decided, Done, ErrorReason, Failure, LeaderHint, Request, Reservation, State,
    Unit,
};
use support::{Asked, Fake, PATIENCE, nobody};
use tokio::task::JoinHandle;

fn request() -> Request {
    Request::new("acme", "chat").user("u1").tokens(600)
}

fn client(members: &[&str]) -> Client {
    Client::builder(members.iter().copied())
        .deadline(PATIENCE)
        .attempt_timeout(PATIENCE)
        .connect_lazy()
        .unwrap()
}

/// A reserve that runs while the test plays the members.
fn reserving(client: &Client) -> JoinHandle<Result<Reservation, CallError>> {
    let client = client.clone();
    tokio::spawn(async move { client.reserve(request()).await })
}

fn spent() -> Failure {
    Failure::new(ErrorReason::RejectedSpent, "limit tokens: spent")
}

fn leads(address: &str) -> Failure {
    Failure::not_leader(Some(LeaderHint { node_id: 2, address: address.to_owned() }))
}

fn is_unknown<T>(outcome: &Result<T, CallError>) -> bool {
    matches!(outcome, Err(CallError::Unknown(_)))
}

#[tokio::test]
async fn a_reservation_is_made_started_and_settled() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let reserving = reserving(&client);
    let asked = member.next().await;
    assert_eq!(asked.attempt(), Some(1));
    asked.answer().await;
    let mut reservation = reserving.await.unwrap().unwrap();
    assert_eq!((reservation.state(), reservation.id().to_string()), (State::Reserved, asked.id()));

    let running = tokio::spawn(async move {
        reservation.start("op-1").await.unwrap();
        reservation.settle(Amounts::NONE.with(Unit::Tokens, 200)).await.unwrap();
        reservation.state()
    });
    for _ in 0..2 {
        let next = member.next().await;
        assert_eq!(next.id(), asked.id());
        next.answer().await;
    }
    assert_eq!(running.await.unwrap(), State::Settled);
    assert_eq!(member.streams(), 1, "one stream serves all of it");
    client.close().await;
    assert!(member.nothing_came(), "a settled reservation needs no release");
}

#[tokio::test]
async fn a_leader_that_was_not_known_is_found_by_its_name() {
    let mut follower = Fake::spawn().await;
    let mut leader = Fake::spawn().await;
    let client = client(&[&follower.address]);
    let reserving = reserving(&client);
    let first = follower.next().await;
    first.refuse(leads(&leader.address)).await;
    let second = leader.next().await;
    assert_eq!((second.id(), second.attempt()), (first.id(), Some(2)), "the id stays, the attempt counts");
    second.answer().await;
    reserving.await.unwrap().unwrap().detach();
    // It is remembered.
    let again = self::reserving(&client);
    leader.next().await.answer().await;
    again.await.unwrap().unwrap().detach();
    assert!(follower.nothing_came());
}

#[tokio::test]
async fn a_lost_stream_is_a_retry_by_the_same_id_at_another_member() {
    let mut first = Fake::spawn().await;
    let mut second = Fake::spawn().await;
    first.lists(&[&first.address, &second.address]);
    let client = client(&[&first.address]);
    let reserving = reserving(&client);
    let lost = first.next().await;
    first.refuses_streams(tonic::Status::unavailable("gone"));
    lost.end_stream().await;
    let retried = second.next().await;
    assert_eq!((retried.id(), retried.attempt()), (lost.id(), Some(2)));
    retried.answer().await;
    let reservation = reserving.await.unwrap().unwrap();
    assert_eq!(reservation.detach().id.to_string(), lost.id());
}

#[tokio::test]
async fn a_silent_member_is_given_up_after_the_attempts_time() {
    let mut silent = Fake::spawn().await;
    let mut other = Fake::spawn().await;
    silent.lists(&[&silent.address, &other.address]);
    let client = Client::builder([&silent.address])
        .deadline(PATIENCE)
        .attempt_timeout(Duration::from_millis(50))
        .connect_lazy()
        .unwrap();
    let reserving = reserving(&client);
    let unanswered = silent.next().await;
    let retried = other.next().await;
    assert_eq!(retried.id(), unanswered.id());
    retried.answer().await;
    reserving.await.unwrap().unwrap().detach();
    // Its late answer meets nobody.
    unanswered.answer().await;
}

#[tokio::test]
async fn a_refusal_of_the_only_attempt_is_reported_at_once() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let reserving = reserving(&client);
    member.next().await.refuse(spent()).await;
    let error = reserving.await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::Rejected(failure) if failure.reason == ErrorReason::RejectedSpent));
    client.close().await;
    assert!(member.nothing_came(), "nothing is held, so nothing is released");
}

#[tokio::test]
async fn a_refusal_after_a_lost_attempt_is_reported_once_the_id_is_closed() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let reserving = reserving(&client);
    let lost = member.next().await;
    lost.end_stream().await;
    let refused = member.next().await;
    assert_eq!(refused.attempt(), Some(2));
    refused.refuse(spent()).await;
    let release = member.next().await;
    assert!(release.is_release());
    assert_eq!(release.id(), lost.id());
    assert!(!reserving.is_finished(), "the refusal waits for the tombstone");
    release.tombstone().await;
    let error = reserving.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Rejected(_)), "{error}");
}

#[tokio::test]
async fn losing_every_answer_ends_unknown_and_resolves_by_the_same_id() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let impatient = client.with_deadline(Duration::from_millis(60));
    let reserving = reserving(&impatient);
    let lost = member.next().await;
    let playing = tokio::spawn(async move {
        lost.end_stream().await;
        let mut ids = vec![lost.id()];
        // Whatever is tried until the deadline is lost as well.
        while let Ok(Some(next)) =
            tokio::time::timeout(Duration::from_millis(500), async { Some(member.next().await) }).await
        {
            next.end_stream().await;
            ids.push(next.id());
        }
        (member, ids)
    });
    let outcome = reserving.await.unwrap();
    assert!(is_unknown(&outcome), "{outcome:?}");
    let Err(CallError::Unknown(unknown)) = outcome else { unreachable!() };
    let (mut member, ids) = playing.await.unwrap();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(unknown.id().unwrap().to_string(), ids[0]);

    let attempts = unknown.attempts;
    let resolving = tokio::spawn({
        let client = client.clone();
        async move { client.resolve(*unknown).await }
    });
    let asked = member.next().await;
    assert_eq!((asked.id(), asked.attempt()), (ids[0].clone(), Some(attempts + 1)));
    asked.answer().await;
    let Decided { done: Done::Receipt(receipt), .. } = resolving.await.unwrap().unwrap() else { panic!() };
    assert_eq!(receipt.id.to_string(), ids[0]);
}

#[tokio::test]
async fn no_leader_until_the_deadline_is_unavailable() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let reserving = reserving(&client.with_deadline(Duration::from_millis(100)));
    let playing = tokio::spawn(async move {
        let mut last = 0;
        while let Ok(next) = tokio::time::timeout(Duration::from_millis(500), member.next()).await {
            last = next.attempt().unwrap();
            next.refuse(Failure::not_leader(None)).await;
        }
        last
    });
    let error = reserving.await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::Unavailable(failure) if failure.reason == ErrorReason::NoLeader));
    assert!(playing.await.unwrap() > 1, "it was tried more than once");
}

#[tokio::test]
async fn nobody_there_is_unavailable_and_names_the_address() {
    let address = nobody().await;
    let client = client(&[&address]).with_deadline(Duration::from_millis(100));
    let error = client.reserve(request()).await.unwrap_err();
    assert!(matches!(&error, CallError::Unavailable(failure) if failure.reason == ErrorReason::Unreachable));
    assert!(error.to_string().contains(&address), "{error}");
    let error = Client::builder([&address]).deadline(Duration::from_millis(100)).connect().await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable(_)), "{error}");
}

#[tokio::test]
async fn a_status_of_somebody_else_is_never_read_as_certain() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]).with_deadline(Duration::from_millis(50));
    let reserving = reserving(&client);
    let asked = member.next().await;
    member.refuses_streams(tonic::Status::unavailable("no healthy upstream"));
    asked.end_stream().await;
    let outcome = reserving.await.unwrap();
    assert!(is_unknown(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_proves_nothing() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let reserving = reserving(&client);
    let asked = member.next().await;
    let newer =
        holdfast_client::v1::Failure { reason: "REJECTED_BY_MOON_PHASE".into(), ..Default::default() };
    asked.send(holdfast_client::v1::batch_answer::Outcome::Failure(newer)).await;
    let again = member.next().await;
    assert_eq!((again.id(), again.attempt()), (asked.id(), Some(2)));
    again.answer().await;
    reserving.await.unwrap().unwrap().detach();
}

#[tokio::test]
async fn a_second_answer_meets_nobody() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let first = reserving(&client);
    let asked = member.next().await;
    asked.answer().await;
    first.await.unwrap().unwrap().detach();
    let second = reserving(&client);
    let other = member.next().await;
    // The first one's answer comes again while the second one waits in the same slot.
    asked.refuse(spent()).await;
    other.answer().await;
    assert_eq!(second.await.unwrap().unwrap().detach().id.to_string(), other.id());
}

#[tokio::test]
async fn a_dropped_reservation_is_released_and_a_started_one_is_not() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let held = reserving(&client);
    let asked = member.next().await;
    asked.answer().await;
    drop(held.await.unwrap().unwrap());
    let release = member.next().await;
    assert!(release.is_release());
    assert_eq!(release.id(), asked.id());
    release.answer().await;

    let started = reserving(&client);
    member.next().await.answer().await;
    let mut reservation = started.await.unwrap().unwrap();
    let starting = tokio::spawn(async move {
        reservation.start("op-1").await.unwrap();
        drop(reservation);
    });
    member.next().await.answer().await;
    starting.await.unwrap();
    client.close().await;
    assert!(member.nothing_came());
}

#[tokio::test]
async fn a_reserve_that_is_dropped_on_its_way_is_released() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let reserving = reserving(&client);
    let asked = member.next().await;
    reserving.abort();
    let release = member.next().await;
    assert!(release.is_release());
    assert_eq!(release.id(), asked.id());
    release.tombstone().await;
    client.close().await;
}

#[tokio::test]
async fn an_operation_that_was_bound_differently_is_a_conflict() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let held = reserving(&client);
    member.next().await.answer().await;
    let mut reservation = held.await.unwrap().unwrap();
    let starting = tokio::spawn(async move {
        let error = reservation.start("op-2").await.unwrap_err();
        reservation.detach();
        error
    });
    member.next().await.refuse(Failure::new(ErrorReason::Conflict, "another operation")).await;
    assert_eq!(starting.await.unwrap().reason(), Some(ErrorReason::Conflict));
}

#[tokio::test]
async fn malformed_requests_are_refused_before_they_are_sent() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let error = client.reserve(Request::new("no spaces", "chat")).await.unwrap_err();
    assert!(matches!(&error, CallError::Invalid(failure) if failure.facts.violations[0].field == "tenant"));
    assert!(member.nothing_came());
    let error = Client::builder(["https://a:1"]).connect_lazy().unwrap_err();
    assert!(
        matches!(&error, CallError::Invalid(failure) if failure.facts.violations[0].field == "endpoints[0]")
    );
}

#[tokio::test]
async fn a_refused_credential_is_a_decision() {
    let mut member = Fake::spawn().await;
    let refusal = Failure::new(ErrorReason::Unauthenticated, "unknown token");
    member.refuses_streams(refusal.to_status());
    let client = Client::builder([&member.address]).token("s3cret").connect_lazy().unwrap();
    let error = client.reserve(request()).await.unwrap_err();
    assert!(matches!(&error, CallError::Rejected(failure) if failure.reason == ErrorReason::Unauthenticated));
    assert_eq!(member.credential().as_deref(), Some("Bearer s3cret"));
    assert!(member.nothing_came());
}

#[tokio::test]
async fn deadlines_travel_with_the_commands() {
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]).with_deadline(Duration::from_secs(20));
    let reserving = reserving(&client);
    let asked = member.next().await;
    assert!((1..=20_001).contains(&asked.command.deadline_ms), "{}", asked.command.deadline_ms);
    asked.answer().await;
    reserving.await.unwrap().unwrap().detach();
}

#[tokio::test]
async fn many_callers_share_one_stream_and_their_commands_share_messages() {
    const CALLERS: usize = 2_000;
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let callers: Vec<_> = (0..CALLERS).map(|_| reserving(&client)).collect();
    let mut asked: Vec<Asked> = Vec::new();
    while asked.len() < CALLERS {
        let next = member.next().await;
        next.answer().await;
        asked.push(next);
    }
    for caller in callers {
        caller.await.unwrap().unwrap().detach();
    }
    let messages = asked.iter().map(|asked| asked.message).max().unwrap();
    assert_eq!(member.streams(), 1);
    assert!(CALLERS / messages >= 16, "{CALLERS} commands went in {messages} messages");
}

#[tokio::test]
async fn when_the_queue_is_full_the_client_says_so_and_later_everybody_is_told() {
    use holdfast_client::limits::{BACKOFF_MAX_MS, IN_FLIGHT_COMMANDS_MAX, QUEUE_COMMANDS_MAX};
    let mut member = Fake::spawn().await;
    let client = client(&[&member.address]);
    let callers: Vec<_> =
        (0..IN_FLIGHT_COMMANDS_MAX + QUEUE_COMMANDS_MAX).map(|_| reserving(&client)).collect();
    // Nobody is answered, so sooner or later there is no room for one more.
    let impatient = client.with_deadline(Duration::from_millis(150));
    let filling = async {
        loop {
            match impatient.reserve(request()).await.unwrap_err() {
                CallError::Unavailable(failure) if failure.reason == ErrorReason::Overloaded => {
                    return failure;
                }
                // It had the place of a caller that backs off: leave it to that one and ask again.
                CallError::Unavailable(_) | CallError::Unknown(_) => {
                    tokio::time::sleep(Duration::from_millis(2 * BACKOFF_MAX_MS)).await;
                }
                other => panic!("{other}"),
            }
        }
    };
    let failure = tokio::time::timeout(PATIENCE, filling).await.expect("the queue should be full by now");
    assert_eq!(failure.facts.metadata["ceiling"], "QUEUE_COMMANDS_MAX");
    // Whoever waits learns how it ended when the stream is lost, the queued ones too.
    member.refuses_streams(Failure::new(ErrorReason::Denied, "no more").to_status());
    member.next().await.end_stream().await;
    for caller in callers {
        let outcome = tokio::time::timeout(PATIENCE, caller).await.expect("every call ends").unwrap();
        let error = outcome.unwrap_err();
        assert!(matches!(error, CallError::Rejected(_) | CallError::Unknown(_)), "{error}");
    }
}
