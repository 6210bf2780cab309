//! Field cases as fixed scripts: what they say themselves, and book and model agreeing all the way.

use holdfast_ledger::answer::{Reason, State};
use holdfast_ledger::record::{Lane, LineageKey};
use holdfast_ledger::{Amounts, Answer, Refusal, Rejection, Unit};

use crate::drive::{Outcome, run};
use crate::epochs::BEGIN_MS;
use crate::lineage::Balance;
use crate::plans::Scale;
use crate::script::{Act, Id, Script, Step, Subject};
use crate::shrink::report;

/// A script that is written step by step.
struct Writer {
    script: Script,
    now: u64,
    last: u64,
}

const SUBJECT: Subject = Subject { tenant: 0, user: Some(0), route: 0, model: None };

impl Writer {
    fn new(limits: &str) -> Writer {
        let head = "schema: admissionBudget.v1\nroutes: [{ name: r0, usage_deadline: 1d }]\nlimits:\n";
        let documents = vec![format!("{head}{limits}")];
        let script = Script { documents, shape: 0, scale: Scale::Small, steps: Vec::new() };
        let mut writer = Writer { script, now: BEGIN_MS, last: BEGIN_MS };
        writer.act(Act::Publish { variant: 0, expected: None, force: false });
        writer
    }

    fn act(&mut self, act: Act) {
        let after_ms = i64::try_from(self.now - self.last).unwrap();
        self.last = self.now;
        self.script.steps.push(Step { after_ms, joins: false, restores: false, act });
    }

    fn reserve(&mut self, number: u32, amounts: Amounts) {
        self.reserve_up_to(number, amounts, Amounts::NONE);
    }

    fn reserve_up_to(&mut self, number: u32, amounts: Amounts, minimum: Amounts) {
        let id = Id { at_ms: BEGIN_MS.max(self.now.saturating_sub(10)), number };
        self.act(Act::Reserve { id, subject: SUBJECT, amounts, minimum, key: None, ttl_ms: None });
    }

    /// Starts and settles the reservation that was made at a time.
    fn settle(&mut self, made_at_ms: u64, number: u32, actual: Amounts) {
        let id = Id { at_ms: BEGIN_MS.max(made_at_ms.saturating_sub(10)), number };
        self.act(Act::Start { id, operation: 0 });
        self.act(Act::Settle { id, operation: 0, actual, estimated: false });
    }

    fn run(self) -> Outcome {
        match run(&self.script, None) {
            Ok(outcome) => outcome,
            Err(difference) => panic!("{}", report(0, &self.script, &difference)),
        }
    }
}

fn tokens(amount: u64) -> Amounts {
    Amounts::NONE.with(Unit::Tokens, amount)
}

fn global(outcome: &Outcome, limit: &str, at_ms: u64) -> Balance {
    let limit = limit.parse().unwrap();
    let (tenant, user, route, model, region) = (None, None, None, None, None);
    outcome
        .model
        .balance(&LineageKey { limit, tenant, user, route, model, region, lane: Lane::Enforced }, at_ms)
}

fn reasons(outcome: &Outcome) -> Vec<Option<Reason>> {
    let reason = |answer: &Answer| match answer {
        Answer::Refused(Refusal::Rejected(rejection)) => Some(rejection.reason),
        _ => None,
    };
    outcome.answers[1..].iter().map(reason).collect()
}

const HUNDRED: &str = "  l: { unit: tokens, scope: global, bucket: { amount: 100, per: 1m } }\n";

#[test]
fn case_1_five_reserves_on_a_bucket_of_100() {
    let mut writer = Writer::new(HUNDRED);
    for (number, amount) in [58, 80, 175, 175, 175].into_iter().enumerate() {
        writer.reserve(u32::try_from(number).unwrap(), tokens(amount));
    }
    let never = Some(Reason::NeverFits);
    assert_eq!(reasons(&writer.run()), [None, Some(Reason::Held), never, never, never]);
}

#[test]
fn case_3_180_requests_on_a_limit_of_100() {
    let mut writer =
        Writer::new("  l: { unit: requests, scope: global, period: { limit: 100, every: month } }\n");
    (0..180).for_each(|number| writer.reserve(number, Amounts::NONE));
    assert_eq!(reasons(&writer.run()).iter().filter(|reason| reason.is_none()).count(), 100);
}

#[test]
fn case_4_twenty_estimates_of_100_on_1000() {
    let mut writer =
        Writer::new("  l: { unit: tokens, scope: global, period: { limit: 1000, every: day } }\n");
    (0..20).for_each(|number| writer.reserve(number, tokens(100)));
    let reasons = reasons(&writer.run());
    assert_eq!(reasons.iter().filter(|reason| reason.is_none()).count(), 10);
    assert!(reasons[10..].iter().all(|reason| *reason == Some(Reason::Held)));
}

#[test]
fn case_13_granted_up_to_what_there_is() {
    let mut writer =
        Writer::new("  l: { unit: tokens, scope: global, period: { limit: 100, every: day } }\n");
    writer.reserve(0, tokens(50));
    writer.reserve_up_to(1, tokens(90), tokens(10));
    writer.settle(writer.now, 1, tokens(55));
    writer.reserve_up_to(2, tokens(10), tokens(1));
    let outcome = writer.run();
    let Answer::Reservation(receipt) = &outcome.answers[2] else { panic!("{:?}", outcome.answers[2]) };
    assert_eq!(receipt.reserved.get(Unit::Tokens), Some(50));
    assert_eq!(receipt.extras.as_ref().and_then(|extras| extras.asked.get(Unit::Tokens)), Some(90));
    assert_eq!(reasons(&outcome)[4], Some(Reason::Debt));
}

#[test]
fn case_24_an_overrun_is_repaid_before_anything_is_admitted() {
    let mut writer =
        Writer::new("  l: { unit: tokens, scope: global, bucket: { amount: 1, per: 1s, burst: 1505 } }\n");
    writer.reserve(0, tokens(1505));
    writer.settle(writer.now, 0, tokens(6607));
    writer.reserve(1, tokens(1));
    writer.now += 5_102_000;
    writer.reserve(2, tokens(1));
    writer.now += 1_000;
    writer.reserve(3, tokens(1));
    let outcome = writer.run();
    assert_eq!(reasons(&outcome)[3..], [Some(Reason::Debt), Some(Reason::Spent), None]);
    let Answer::Reservation(settled) = &outcome.answers[3] else { panic!("{:?}", outcome.answers[3]) };
    assert_eq!((settled.state, settled.debt), (State::SettledWithDebt, tokens(5102)));
}

#[test]
fn case_36_a_bucket_has_no_boundary_to_burst_over() {
    let mut writer =
        Writer::new("  l: { unit: requests, scope: global, bucket: { amount: 10, per: 60s } }\n");
    (0..10).for_each(|number| writer.reserve(number, Amounts::NONE));
    (0..10).for_each(|number| writer.settle(BEGIN_MS, number, Amounts::NONE));
    writer.now += 200;
    (10..20).for_each(|number| writer.reserve(number, Amounts::NONE));
    let outcome = writer.run();
    let spent =
        |rejection: &&Rejection| rejection.reason == Reason::Spent && rejection.retry_after_ms == Some(5_800);
    let rejections = outcome.answers.iter().filter_map(|answer| match answer {
        Answer::Refused(Refusal::Rejected(rejection)) => Some(rejection),
        _ => None,
    });
    let waits = rejections.filter(spent);
    assert_eq!(waits.count(), 10);
}

#[test]
fn case_40_debt_is_repaid_by_the_next_grant_or_forgiven() {
    for (carry, available) in [("", 85), (", carry_debt: false", 100)] {
        let limit =
            format!("  l: {{ unit: tokens, scope: global, period: {{ limit: 100, every: day{carry} }} }}\n");
        let mut writer = Writer::new(&limit);
        writer.reserve(0, tokens(100));
        writer.settle(writer.now, 0, tokens(115));
        writer.now += 130_000;
        writer.act(Act::Tick);
        let now = writer.now;
        let balance = global(&writer.run(), "l", now);
        assert_eq!((balance.available, balance.debt), (available, 0), "{carry}");
    }
}

#[test]
fn case_45_exactly_250_charges_fit() {
    let mut writer =
        Writer::new("  l: { unit: tokens, scope: global, period: { limit: 25_000_000, every: month } }\n");
    for number in 0..250 {
        writer.reserve(number, tokens(100_000));
        writer.settle(writer.now, number, tokens(100_000));
    }
    writer.reserve(250, tokens(100_000));
    let now = writer.now;
    let outcome = writer.run();
    assert_eq!(global(&outcome, "l", now).available, 0);
    assert_eq!(reasons(&outcome).iter().flatten().collect::<Vec<_>>(), [&Reason::Spent]);
}

// Faults that the random scripts have found, each with the shortest script that shows it.

#[test]
fn a_bucket_that_a_refund_fills_saves_up_no_fraction() {
    let mut writer =
        Writer::new("  l: { unit: requests, scope: global, bucket: { amount: 1, per: 1s, burst: 2 } }\n");
    writer.reserve(0, Amounts::NONE);
    writer.now += 500;
    writer.act(Act::Release { id: Id { at_ms: BEGIN_MS, number: 0 } });
    writer.reserve(1, Amounts::NONE);
    writer.reserve(2, Amounts::NONE);
    writer.now += 500;
    writer.reserve(3, Amounts::NONE);
    // 2 and half of one in half a second, not 3.
    assert_eq!(reasons(&writer.run()).last(), Some(&Some(Reason::Held)));
}

#[test]
fn what_is_held_is_shown_as_held_across_a_publish() {
    let limit = |amount| {
        format!("  l: {{ unit: tokens, scope: global, period: {{ limit: {amount}, every: day }} }}\n")
    };
    let mut writer = Writer::new(&limit(100));
    let raised = writer.script.documents[0].replace(&limit(100), &limit(90));
    writer.script.documents.push(raised);
    writer.reserve(0, tokens(60));
    writer.act(Act::Publish { variant: 1, expected: None, force: false });
    // Quotas are compared after each entry; so is what a preview says of this, and that is *held*.
    writer.reserve(1, tokens(50));
    assert_eq!(reasons(&writer.run()).last(), Some(&Some(Reason::Held)));
}

#[test]
fn a_preview_takes_the_time_that_it_is_asked_for() {
    let mut writer = Writer::new(HUNDRED);
    // Longer than an id may be ahead of the book's clock, which stands still while nothing is proposed.
    writer.now += 60_000;
    writer.reserve(0, tokens(1));
    assert_eq!(reasons(&writer.run()), [None]);
}

#[test]
fn a_request_without_the_indebted_unit_waits_for_the_debt_only() {
    let limits = "  l: { unit: tokens, scope: global, bucket: { amount: 1, per: 1s, burst: 10 } }\n\
                  \x20 m: { unit: tokens, scope: tenant, period: { limit: 12, every: day } }\n";
    let mut writer = Writer::new(limits);
    writer.reserve(0, tokens(10));
    writer.settle(writer.now, 0, tokens(12));
    writer.reserve(1, Amounts::NONE);
    writer.now += 2_000;
    writer.reserve(2, Amounts::NONE);
    let outcome = writer.run();
    let waits = outcome.answers.iter().find_map(|answer| match answer {
        Answer::Refused(Refusal::Rejected(rejection)) => rejection.retry_after_ms,
        _ => None,
    });
    assert_eq!((waits, reasons(&outcome).last()), (Some(2_000), Some(&None)));
}

/// The tier of 6 more once a limit of `before` per epoch has become one of 40: 22 over in the epoch before were
/// repaid in this one, and 7 are held.
fn tier_after_a_change_to_40(before: &str) -> holdfast_ledger::answer::Tier {
    let limit = |amount| {
        format!("  l: {{ unit: tokens, scope: global, period: {{ limit: {amount}, every: 20s }} }}\n")
    };
    let mut writer = Writer::new(&limit(before));
    let changed = writer.script.documents[0].replace(&limit(before), &limit("40"));
    writer.script.documents.push(changed);
    writer.reserve(0, tokens(5));
    let made_at_ms = writer.now;
    writer.now += 20_000;
    writer.reserve(1, tokens(7));
    writer.settle(made_at_ms, 0, tokens(27));
    writer.act(Act::Publish { variant: 1, expected: None, force: false });
    writer.reserve(2, tokens(6));
    let outcome = writer.run();
    let Some(Answer::Reservation(receipt)) = outcome.answers.last() else {
        panic!("{:?}", outcome.answers.last())
    };
    receipt.tier
}

#[test]
fn a_raise_that_repays_an_earlier_debt_counts_for_the_ladder() {
    // 17 are repaid at once, 5 by the raise: (13 used + 22 repaid) / 40.
    assert_eq!(tier_after_a_change_to_40("24"), holdfast_ledger::answer::Tier::DegradedLight);
}

#[test]
fn an_overrun_repaid_under_an_unlimited_rule_counts_for_the_ladder_later() {
    // (13 used + 22 repaid) / 40
    assert_eq!(tier_after_a_change_to_40("unlimited"), holdfast_ledger::answer::Tier::DegradedLight);
}

#[test]
fn a_wait_over_a_change_of_period_ends_with_the_new_periods() {
    let limit = |every| {
        format!(
            "  l: {{ unit: tokens, scope: global, period: {{ limit: 2, every: {every}, carry_over: 38 }} }}\n"
        )
    };
    let mut writer = Writer::new(&limit("day"));
    let seconds = writer.script.documents[0].replace(&limit("day"), &limit("20s"));
    writer.script.documents.push(seconds);
    writer.reserve(0, tokens(2));
    writer.act(Act::Publish { variant: 1, expected: None, force: false });
    // Try the wait out: the running day ends between two bounds of the new period.
    writer.reserve(1, tokens(5));
    writer.run();
}
