//! Every value comes back from the wire as it was.
#![allow(clippy::unwrap_used)]

mod support;

use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{Freeze, PublishPlan, ResolveUnknown, SetTenant, SetWebhook, Unfreeze};
use holdfast_ledger::query::QuotaLine;
use holdfast_ledger::{Adjust, Command};
use holdfast_proto::answers::{
    Decided, DigestAt, Done, decode_batched_answer, encode_answer, encode_batched_answer,
};
use holdfast_proto::commands::{decode_batched, encode_batched};
use holdfast_proto::failure::{Facts, Failure, LeaderHint};
use holdfast_proto::log::{decode_entry, encode_entry};
use holdfast_proto::records::{decode_record, encode_record};
use holdfast_proto::{ErrorReason, FieldError, v1};
use prost::Message;
use support::Random;

const ROUNDS: u64 = 3_000;

/// What the receiver of the bytes sees.
fn travel<M: Message + Default>(message: &M) -> M {
    M::decode(message.encode_to_vec().as_slice()).unwrap()
}

#[test]
fn batched_commands() {
    for seed in 0..ROUNDS {
        let mut random = Random::new(seed);
        let command = random.batched();
        let wire =
            v1::BatchCommand { correlation: seed, command: encode_batched(&command), ..Default::default() };
        assert_eq!(decode_batched(&travel(&wire)).as_ref(), Ok(&command), "seed {seed}");
    }
}

#[test]
fn operators_commands() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let publish = random.publish();
        let wire = travel(&v1::PublishRequest::from(&publish));
        assert_eq!(PublishPlan::try_from(wire), Ok(publish), "seed {seed}");
        let set_tenant = random.set_tenant();
        let wire = travel(&v1::SetTenantRequest::from(&set_tenant));
        assert_eq!(SetTenant::try_from(&wire), Ok(set_tenant), "seed {seed}");
        let set_webhook = random.set_webhook();
        let wire = travel(&v1::SetWebhookRequest::from(&set_webhook));
        assert_eq!(SetWebhook::try_from(&wire), Ok(set_webhook), "seed {seed}");
        let unfreeze = random.unfreeze();
        let wire = travel(&v1::UnfreezeRequest::from(&unfreeze));
        assert_eq!(Unfreeze::try_from(&wire), Ok(unfreeze), "seed {seed}");
        let freeze = random.freeze();
        let wire = travel(&v1::FreezeRequest::from(&freeze));
        assert_eq!(Freeze::try_from(&wire), Ok(freeze), "seed {seed}");
        let resolve = random.resolve_unknown();
        let wire = travel(&v1::ResolveUnknownRequest::from(&resolve));
        assert_eq!(ResolveUnknown::try_from(&wire), Ok(resolve), "seed {seed}");
        let adjust = random.adjust();
        let wire = travel(&v1::AdjustRequest::from(&adjust));
        assert_eq!(Adjust::try_from(&wire), Ok(adjust), "seed {seed}");
    }
}

#[test]
fn entries() {
    for seed in 0..ROUNDS / 10 {
        let mut random = Random::new(seed);
        let stamp_ms = random.number();
        let bounds = random.list(3, Random::epoch_bounds);
        let commands = random.list(20, Random::command);
        let payload = encode_entry(stamp_ms, &bounds, &commands);
        let (header, decoded) = decode_entry(payload, 7, 3).unwrap();
        assert_eq!(decoded, commands, "seed {seed}");
        assert_eq!((header.index, header.term, header.stamp_ms), (7, 3, stamp_ms));
        assert_eq!(header.epoch_bounds, bounds, "seed {seed}");
    }
}

#[test]
fn records() {
    let mut buffer = Vec::new();
    for seed in 0..ROUNDS {
        let record = Random::new(seed).record();
        buffer.clear();
        encode_record(&record, &mut buffer);
        assert_eq!(decode_record(&buffer).as_ref(), Ok(&record), "seed {seed}");
    }
}

#[test]
fn quota_lines() {
    for seed in 0..ROUNDS {
        let line = Random::new(seed).quota_line();
        let wire = travel(&v1::QuotaLine::from(&line));
        assert_eq!(QuotaLine::try_from(&wire), Ok(line), "seed {seed}");
    }
}

/// What a caller must see of an answer.
fn expected(answer: &Answer, revision: u64, digest: Option<DigestAt>) -> Result<Decided, Failure> {
    match answer {
        Answer::Reservation(receipt) => {
            let done = Done::Receipt(Box::new(receipt.as_ref().clone()));
            Ok(Decided { revision, digest, done })
        }
        Answer::Tombstone { id } => Ok(Decided { revision, digest, done: Done::Tombstone(*id) }),
        Answer::Refused(refusal) => Err(Failure::from(refusal).at_revision(revision)),
        other => panic!("{other:?} is no answer of the ledger service"),
    }
}

#[test]
fn answers_in_a_stream() {
    for seed in 0..ROUNDS {
        let mut random = Random::new(seed);
        let answer = random.answer();
        let revision = random.number();
        let digest = random.maybe(|random| DigestAt { revision: random.number(), digest: random.wide() });
        let wire = encode_batched_answer(seed, encode_answer(&answer, revision, digest));
        let wire = travel(&wire);
        assert_eq!(wire.correlation, seed);
        let decoded = decode_batched_answer(wire).unwrap();
        assert_eq!(decoded, expected(&answer, revision, digest), "seed {seed}");
    }
}

#[test]
fn refusals_as_a_status() {
    for seed in 0..ROUNDS {
        let mut random = Random::new(seed);
        let failure = Failure::from(&random.refusal()).at_revision(random.number());
        assert_eq!(Failure::from_status(&failure.to_status()), Some(failure), "seed {seed}");
    }
}

#[test]
fn every_reason_travels_both_ways() {
    let facts = Facts {
        revision: Some(9),
        unlogged_at_ms: Some(10),
        leader: Some(LeaderHint { node_id: 2, address: "127.0.0.1:7002".into() }),
        violations: vec![FieldError::new("id", "is not a ULID")],
        metadata: [("floor_ms".to_owned(), "17".to_owned())].into(),
        ..Facts::default()
    };
    for &reason in ErrorReason::ALL {
        let mut facts = facts.clone();
        if reason.carries_retry_info() {
            facts.retry_after_ms = Some(1_234);
        }
        let failure = Failure { reason, message: "for people".into(), facts: Box::new(facts) };
        let status = failure.to_status();
        assert_eq!(status.code(), reason.code());
        assert_eq!(Failure::from_status(&status), Some(failure.clone()), "{reason} as a status");
        let wire: v1::Failure = travel(&failure.clone().into());
        assert_eq!(wire.code, reason.code() as i32);
        assert_eq!(Failure::try_from(wire), Ok(failure), "{reason} as a message");
    }
}

#[test]
fn a_status_stays_below_what_headers_may_be() {
    let problem =
        |line| FieldError::new(format!("document:{line}:limits[{line}].unit"), "is no unit ".repeat(9));
    let failure = Failure::invalid((0..5_000).map(problem).collect());
    let status = failure.to_status();
    let bytes = status.message().len() * 3 + status.details().len() * 4 / 3;
    assert!(bytes < 16 << 10, "{bytes}");
    let read = Failure::from_status(&status).unwrap();
    assert_eq!(read.facts.violations[..50], failure.facts.violations[..50]);
    let last = read.facts.violations.last().unwrap();
    assert_eq!(last.problem, format!("and {} more problems", 5_001 - read.facts.violations.len()));
    assert!(
        failure.message.ends_with("more") && failure.message.starts_with("document:0:"),
        "{}",
        failure.message
    );
}

#[test]
fn nothing_is_concluded_from_a_foreign_status() {
    use tonic::{Code, Status};
    use tonic_types::{ErrorDetails, StatusExt};

    assert_eq!(Failure::from_status(&Status::unavailable("connection refused")), None);
    let with = |code, reason: &str, domain: &str| {
        let mut details = ErrorDetails::new();
        details.set_error_info(reason, domain, std::collections::HashMap::new());
        Failure::from_status(&Status::with_error_details(code, "", details))
    };
    assert_eq!(with(Code::Unavailable, "NOT_LEADER", "proxy.example"), None, "another domain");
    assert_eq!(with(Code::Unavailable, "NEWER", "holdfast.v1"), None, "a reason that is not in the table");
    assert_eq!(with(Code::Internal, "NOT_LEADER", "holdfast.v1"), None, "a code that is not the reason's");
    assert!(with(Code::Unavailable, "NOT_LEADER", "holdfast.v1").is_some());
    let unknown = v1::Failure { reason: "NEWER".into(), ..Default::default() };
    assert!(Failure::try_from(unknown).is_err_and(|error| error.field == "reason"));
}

#[test]
fn what_is_missing_or_malformed_is_named() {
    let mut random = Random::new(1);
    let good = v1::ReserveRequest::from(&random.reserve());
    let refused = |change: &dyn Fn(&mut v1::ReserveRequest)| {
        let mut wire = good.clone();
        change(&mut wire);
        let command = v1::batch_command::Command::Reserve(wire);
        Command::try_from(&command).map_err(|error| error.field).unwrap_err()
    };
    let request = |wire: &mut v1::ReserveRequest, change: &dyn Fn(&mut v1::Request)| {
        change(wire.request.as_mut().unwrap());
    };
    assert_eq!(refused(&|wire| wire.id = "not a ulid".into()), "reserve.id");
    assert_eq!(refused(&|wire| wire.id.clear()), "reserve.id");
    assert_eq!(refused(&|wire| wire.attempt = 0), "reserve.attempt");
    assert_eq!(refused(&|wire| wire.request = None), "reserve.request");
    assert_eq!(refused(&|wire| request(wire, &|r| r.tenant.clear())), "reserve.request.tenant");
    assert_eq!(refused(&|wire| request(wire, &|r| r.tenant = "a b".into())), "reserve.request.tenant");
    assert_eq!(refused(&|wire| request(wire, &|r| r.user = Some("".into()))), "reserve.request.user");
    assert_eq!(refused(&|wire| request(wire, &|r| r.route = "x".repeat(129))), "reserve.request.route");
    assert_eq!(refused(&|wire| request(wire, &|r| r.hold_ttl_ms = Some(0))), "reserve.request.hold_ttl_ms");
    let amounts = |unit, amount| Some(v1::Amounts { amounts: vec![v1::UnitAmount { unit, amount }] });
    assert_eq!(
        refused(&|wire| request(wire, &|r| r.amounts = amounts(9, 1))),
        "reserve.request.amounts.unit"
    );
    assert_eq!(
        refused(&|wire| request(wire, &|r| r.amounts = amounts(2, 0))),
        "reserve.request.amounts.tokens"
    );
}

#[test]
fn a_payload_that_cannot_be_read_is_an_error() {
    let unknown = v1::LogEntry { commands: vec![v1::LogCommand { command: None }], ..Default::default() };
    let error = decode_entry(unknown.encode_to_vec().into(), 1, 1).unwrap_err().to_string();
    assert_eq!(error, "commands[0].command: is missing");
    assert!(decode_entry(vec![0xff, 0xff].into(), 1, 1).is_err());
}
