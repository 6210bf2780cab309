//! Lives, answer by answer.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use holdfast_proto::ledger::Unit;
use holdfast_proto::ledger::answer::{Hold, Receipt, Tier};
use holdfast_proto::ledger::command::Request;
use holdfast_proto::ledger::ids::{RouteName, TenantId};
use holdfast_proto::ledger::record::Subject;

use super::*;

const CALL_MS: u64 = 1_000;

fn request() -> Request {
    Request {
        tenant: TenantId::new("acme").unwrap(),
        user: None,
        route: RouteName::new("chat").unwrap(),
        model: None,
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, 10),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    }
}

fn begin() -> (Life, LifeStep) {
    let request = request();
    let request_digest = request.digest();
    let id = ReservationId::from_parts(1, 7);
    Life::begin(Reserve { id, attempt: 0, key: None, request, request_digest }, CALL_MS, 0)
}

fn decided(state: State) -> Option<Decided> {
    let request = request();
    let receipt = Receipt {
        id: ReservationId::from_parts(1, 7),
        state,
        request_digest: request.digest(),
        hold: Arc::new(Hold::new(
            Subject { tenant: request.tenant, user: None, route: request.route },
            Box::from([]),
        )),
        generation: 1,
        tier: Tier::Normal,
        reserved: request.amounts,
        reserved_at_ms: 1,
        reserved_revision: 1,
        expires_at_ms: 60_000,
        operation: None,
        started_at_ms: None,
        actual: None,
        ended_at_ms: None,
        ended_revision: None,
        debt: Amounts::NONE,
        shadow: None,
        extras: None,
    };
    Some(Decided { revision: 1, digest: None, done: Done::Receipt(Box::new(receipt)) })
}

fn done(life: &mut Life, state: State) -> LifeStep {
    life.on_reply(0, Reply::Done, decided(state), 0)
}

fn refused(life: &mut Life, reason: ErrorReason) -> LifeStep {
    life.on_reply(0, Reply::Failed(Failure::new(reason, "for a test")), None, 0)
}

fn operation() -> OperationId {
    OperationId::new("op").unwrap()
}

fn attempt(life: &Life) -> u32 {
    match life.outgoing().unwrap().as_ref() {
        Command::Reserve(reserve) => reserve.attempt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_life_without_trouble() {
    let (mut life, step) = begin();
    assert_eq!((step, attempt(&life)), (LifeStep::Send, 1));
    assert_eq!(done(&mut life, State::Reserved), LifeStep::Idle);
    assert_eq!(life.stage(), &Stage::Held);
    assert!(life.settle(Amounts::NONE, 0).is_err(), "it was not started");
    assert_eq!(life.start(operation(), 0).unwrap(), LifeStep::Send);
    assert!(life.start(operation(), 0).is_err(), "a call is under way");
    done(&mut life, State::Started);
    assert_eq!(life.stage(), &Stage::Running);
    assert_eq!(life.settle(Amounts::NONE.with(Unit::Tokens, 3), 0).unwrap(), LifeStep::Send);
    done(&mut life, State::Settled);
    assert_eq!(life.stage(), &Stage::Over(End::Settled));
    assert_eq!(life.resume(0), LifeStep::Idle);
}

#[test]
fn an_unknown_reserve_is_repeated_under_its_id_with_attempts_counted_on() {
    let (mut life, _) = begin();
    let mut now_ms = 0;
    let mut step = LifeStep::Send;
    for _ in 0..1_000 {
        step = match step {
            LifeStep::Send => life.on_reply(now_ms, Reply::Lost("for a test".into()), None, 0),
            LifeStep::Pause { ms } => {
                now_ms += ms;
                life.resume(now_ms)
            }
            LifeStep::Idle => panic!("it is given up at {:?}", life.stage()),
        };
    }
    assert!(now_ms > 10 * CALL_MS && life.unknown_since_ms().unwrap() <= CALL_MS);
    assert_eq!(life.stage(), &Stage::Reserving);
    let late = attempt(&life);
    assert!(late > 10);
    // A refusal is not the end: the attempts before may still be done, so the id is closed first.
    while !matches!(life.outgoing().unwrap().as_ref(), Command::Release(_)) {
        if let LifeStep::Pause { ms } = refused(&mut life, ErrorReason::RejectedSpent) {
            now_ms += ms;
            life.resume(now_ms);
        }
    }
    done(&mut life, State::Released);
    assert!(matches!(life.stage(), Stage::Over(End::Refused(_))), "{:?}", life.stage());
    assert_eq!(life.unknown_since_ms(), None);
}

#[test]
fn what_is_owed_is_repeated_after_certain_failures() {
    let (mut life, _) = begin();
    done(&mut life, State::Reserved);
    life.start(operation(), 0).unwrap();
    let late = CALL_MS * 10;
    let step = life.on_reply(late, Reply::Failed(Failure::new(ErrorReason::NoLeader, "")), None, 0);
    assert_eq!((step, life.stage()), (LifeStep::Send, &Stage::Starting));
    done(&mut life, State::Started);
    life.report_unknown(0).unwrap();
    done(&mut life, State::UsageUnknown);
    assert_eq!(life.stage(), &Stage::Over(End::Unknown));
}

#[test]
fn a_reserve_that_had_no_effect_is_over() {
    let (mut life, _) = begin();
    let late = CALL_MS * 10;
    life.on_reply(late, Reply::Failed(Failure::new(ErrorReason::NoLeader, "")), None, 0);
    assert!(matches!(life.stage(), Stage::Over(End::Unavailable(_))));
}

#[test]
fn a_caller_that_goes_away_leaves_nothing_held() {
    for answered in [false, true] {
        let (mut life, _) = begin();
        if answered {
            done(&mut life, State::Reserved);
        }
        assert_eq!(life.abandon(0), LifeStep::Send);
        assert!(matches!(life.outgoing().unwrap().as_ref(), Command::Release(_)));
        done(&mut life, State::Released);
        assert_eq!(life.stage(), &Stage::Over(End::Released));
    }
    let (mut life, _) = begin();
    done(&mut life, State::Reserved);
    life.start(operation(), 0).unwrap();
    assert_eq!(life.abandon(0), LifeStep::Idle, "what may run is not touched");
    assert_eq!(life.stage(), &Stage::Starting);
}

#[test]
fn refusals_end_a_life_where_it_stands() {
    let (mut life, _) = begin();
    refused(&mut life, ErrorReason::RejectedSpent);
    assert!(matches!(life.stage(), Stage::Over(End::Refused(_))));
    let (mut life, _) = begin();
    done(&mut life, State::Reserved);
    life.start(operation(), 0).unwrap();
    refused(&mut life, ErrorReason::WrongState);
    assert!(matches!(life.stage(), Stage::Over(End::NotStarted(_))));
    for (reason, forgotten) in [(ErrorReason::Conflict, false), (ErrorReason::NotFound, true)] {
        let (mut life, _) = begin();
        done(&mut life, State::Reserved);
        life.start(operation(), 0).unwrap();
        done(&mut life, State::Started);
        life.settle(Amounts::NONE, 0).unwrap();
        refused(&mut life, reason);
        match life.stage() {
            Stage::Over(End::Forgotten) => assert!(forgotten),
            Stage::Over(End::EndRefused(_)) => assert!(!forgotten),
            stage => panic!("{stage:?}"),
        }
    }
}
