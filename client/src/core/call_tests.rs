//! Every way a call can go.

use holdfast_proto::ledger::answer::State;
use holdfast_proto::{ErrorReason, Failure, LeaderHint};

use super::*;

const DEADLINE: u64 = 10_000;

fn failure(reason: ErrorReason) -> Failure {
    Failure::new(reason, "for a test")
}

fn failed(reason: ErrorReason) -> Reply {
    Reply::Failed(failure(reason))
}

fn lost() -> Reply {
    Reply::Lost("the stream ended".into())
}

/// Answers until the call ends or asks for more than was scripted; pauses take no time.
fn play(kind: Kind, replies: impl IntoIterator<Item = Reply>) -> (Vec<Step>, Call) {
    let mut call = Call::new(kind, DEADLINE);
    let mut steps = vec![call.resume(0)];
    for reply in replies {
        let mut step = call.on_reply(0, reply, 0);
        if let Step::Pause { .. } = step {
            step = call.resume(0);
        }
        steps.push(step);
    }
    (steps, call)
}

fn last(kind: Kind, replies: impl IntoIterator<Item = Reply>) -> Step {
    play(kind, replies).0.pop().expect("there is a first step")
}

#[test]
fn what_is_done_is_done() {
    for kind in [Kind::Reserve, Kind::Repeatable, Kind::Once, Kind::Read] {
        assert_eq!(last(kind, [Reply::Done]), Step::End(Verdict::Done));
    }
}

#[test]
fn attempts_are_counted() {
    let (steps, call) = play(Kind::Reserve, [failed(ErrorReason::NoLeader), lost(), Reply::Done]);
    let send = |attempt| Step::Send { attempt };
    assert_eq!(steps, [send(1), send(2), send(3), Step::End(Verdict::Done)]);
    assert_eq!(call.attempts(), 3);
}

#[test]
fn a_refusal_of_the_only_attempt_is_final() {
    let refusal = failure(ErrorReason::RejectedSpent);
    let step = last(Kind::Reserve, [Reply::Failed(refusal.clone())]);
    assert_eq!(step, Step::End(Verdict::Rejected(refusal)));
}

#[test]
fn a_refusal_after_certain_failures_is_final() {
    let replies = [
        failed(ErrorReason::NoLeader),
        failed(ErrorReason::Overloaded),
        Reply::NotSent(failure(ErrorReason::Unreachable)),
        failed(ErrorReason::RejectedSpent),
    ];
    assert_eq!(
        last(Kind::Reserve, replies),
        Step::End(Verdict::Rejected(failure(ErrorReason::RejectedSpent)))
    );
}

#[test]
fn a_reserve_that_is_refused_while_an_attempt_is_unanswered_closes_its_id_first() {
    for unanswered in [lost(), failed(ErrorReason::TimedOut), failed(ErrorReason::OutcomeUnknown)] {
        for refusal in [ErrorReason::RejectedSpent, ErrorReason::RejectedFrozen, ErrorReason::IdInFuture] {
            let (steps, mut call) = play(Kind::Reserve, [unanswered.clone(), failed(refusal)]);
            assert_eq!(steps.last(), Some(&Step::Close), "{refusal}");
            assert_eq!(call.on_reply(0, Reply::Done, 0), Step::End(Verdict::Rejected(failure(refusal))));
        }
    }
}

#[test]
fn closing_goes_on_over_leader_changes_and_lost_answers() {
    let replies = [
        lost(),
        failed(ErrorReason::RejectedSpent),
        lost(),
        failed(ErrorReason::NoLeader),
        failed(ErrorReason::NotLeader),
    ];
    let (steps, mut call) = play(Kind::Reserve, replies);
    assert_eq!(steps[2..], [Step::Close, Step::Close, Step::Close, Step::Close]);
    let step = call.on_reply(0, Reply::Done, 0);
    assert_eq!(step, Step::End(Verdict::Rejected(failure(ErrorReason::RejectedSpent))));
}

#[test]
fn an_id_that_has_ended_is_closed_and_one_that_has_not_is_unknown() {
    let close = |state| {
        let mut wrong = failure(ErrorReason::WrongState);
        wrong.facts.state = Some(state);
        last(Kind::Reserve, [lost(), failed(ErrorReason::RejectedSpent), Reply::Failed(wrong)])
    };
    let rejected = Step::End(Verdict::Rejected(failure(ErrorReason::RejectedSpent)));
    assert_eq!(close(State::Expired), rejected);
    assert!(matches!(close(State::Started), Step::End(Verdict::Unknown(_))));
    let too_old =
        last(Kind::Reserve, [lost(), failed(ErrorReason::RejectedSpent), failed(ErrorReason::IdTooOld)]);
    assert_eq!(too_old, rejected);
    let denied =
        last(Kind::Reserve, [lost(), failed(ErrorReason::RejectedSpent), failed(ErrorReason::Denied)]);
    assert!(matches!(denied, Step::End(Verdict::Unknown(_))), "{denied:?}");
}

#[test]
fn refusals_that_no_earlier_attempt_can_overturn_need_no_closing() {
    for refusal in [ErrorReason::Conflict, ErrorReason::WrongState, ErrorReason::IdTooOld] {
        let step = last(Kind::Reserve, [lost(), failed(refusal)]);
        assert_eq!(step, Step::End(Verdict::Rejected(failure(refusal))));
    }
}

#[test]
fn a_repeatable_call_needs_no_closing() {
    let step = last(Kind::Repeatable, [lost(), failed(ErrorReason::WrongState)]);
    assert_eq!(step, Step::End(Verdict::Rejected(failure(ErrorReason::WrongState))));
}

#[test]
fn what_makes_no_sense_is_invalid() {
    let step = last(Kind::Repeatable, [failed(ErrorReason::Invalid)]);
    assert_eq!(step, Step::End(Verdict::Invalid(failure(ErrorReason::Invalid))));
}

#[test]
fn a_publish_is_not_repeated_once_it_may_have_been_done() {
    assert!(matches!(last(Kind::Once, [lost()]), Step::End(Verdict::Unknown(_))));
    assert!(matches!(last(Kind::Once, [failed(ErrorReason::TimedOut)]), Step::End(Verdict::Unknown(_))));
    assert_eq!(last(Kind::Once, [failed(ErrorReason::NoLeader)]), Step::Send { attempt: 2 });
}

/// Replies the same until the call ends, with time passing as its pauses say.
fn until_the_end(kind: Kind, reply: &Reply) -> (Verdict, u64) {
    let mut call = Call::new(kind, DEADLINE);
    let mut now_ms = 0;
    let mut step = call.resume(now_ms);
    for round in 0..10_000 {
        step = match step {
            Step::Send { .. } | Step::Close => call.on_reply(now_ms, reply.clone(), round),
            Step::Pause { ms } => {
                now_ms += ms;
                call.resume(now_ms)
            }
            Step::End(verdict) => return (verdict, now_ms),
        };
    }
    panic!("the call goes on for ever");
}

#[test]
fn out_of_time_is_unavailable_only_if_every_attempt_was_certainly_not_done() {
    for certain in [ErrorReason::NoLeader, ErrorReason::NotLeader, ErrorReason::Overloaded] {
        let (verdict, now_ms) = until_the_end(Kind::Reserve, &failed(certain));
        assert_eq!(verdict, Verdict::Unavailable(failure(certain)));
        assert!(now_ms < DEADLINE);
    }
    let (verdict, _) = until_the_end(Kind::Reserve, &lost());
    assert!(matches!(verdict, Verdict::Unknown(_)));
    let (verdict, _) = until_the_end(Kind::Read, &lost());
    assert!(matches!(verdict, Verdict::Unavailable(failure) if failure.reason.has_no_side_effects()));
}

#[test]
fn one_lost_attempt_makes_the_end_unknown() {
    let mut call = Call::new(Kind::Reserve, DEADLINE);
    call.resume(0);
    call.on_reply(0, lost(), 0);
    let step = call.on_reply(DEADLINE - 1, failed(ErrorReason::NoLeader), 0);
    assert!(matches!(step, Step::End(Verdict::Unknown(_))), "{step:?}");
}

#[test]
fn a_resumed_call_counts_on_and_trusts_no_refusal() {
    let mut call = Call::resumed(Kind::Reserve, DEADLINE, 3);
    assert_eq!(call.resume(0), Step::Send { attempt: 4 });
    assert_eq!(call.on_reply(0, failed(ErrorReason::RejectedHeld), 0), Step::Close);
}

#[test]
fn redirections_are_followed_at_once_but_not_for_ever() {
    let mut call = Call::new(Kind::Reserve, DEADLINE);
    call.resume(0);
    let mut at_once = 0;
    while let Step::Send { .. } = call.on_reply(0, failed(ErrorReason::NotLeader), 0) {
        at_once += 1;
        assert!(at_once < 100);
    }
    assert_eq!(at_once, REDIRECTS_AT_ONCE_MAX);
}

#[test]
fn a_pause_is_never_shorter_than_the_member_asks_for() {
    let mut call = Call::new(Kind::Reserve, DEADLINE);
    call.resume(0);
    let overloaded = failure(ErrorReason::Overloaded).with_retry_after(700);
    assert_eq!(call.on_reply(0, Reply::Failed(overloaded), 0), Step::Pause { ms: 700 });
}

#[test]
fn no_attempt_starts_after_the_deadline() {
    let mut call = Call::new(Kind::Reserve, 0);
    assert!(matches!(call.resume(0), Step::End(Verdict::Unavailable(_))));
}

#[test]
fn replies_tell_where_to_go() {
    assert_eq!(advice(&Reply::Done), Advice::Keep);
    assert_eq!(advice(&failed(ErrorReason::RejectedSpent)), Advice::Keep);
    assert_eq!(advice(&failed(ErrorReason::Overloaded)), Advice::Keep);
    assert_eq!(advice(&lost()), Advice::Leave);
    assert_eq!(advice(&failed(ErrorReason::NoLeader)), Advice::Leave);
    assert_eq!(advice(&Reply::NotSent(failure(ErrorReason::Unreachable))), Advice::Leave);
    let hint = LeaderHint { node_id: 2, address: "b:1".into() };
    let redirect = Reply::Failed(Failure::not_leader(Some(hint.clone())));
    assert_eq!(advice(&redirect), Advice::Leader(hint));
}
