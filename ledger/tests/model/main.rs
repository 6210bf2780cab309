//! Random commands against the book and a naive model of it that was written from the specification alone:
//! other algorithms, other data structures, every answer and balance compared and the whole account equation
//! audited after every entry.
//!
//! `HOLDFAST_MODEL_SEEDS=N` runs seeds 0 to N−1, `HOLDFAST_MODEL_SEED=S` only that one.
#![allow(clippy::unwrap_used)]

mod adjust;
mod cases;
mod compare;
mod decide;
mod drive;
mod epochs;
mod equation;
mod history;
mod lineage;
mod naive;
mod plans;
mod publish;
mod rows;
mod script;
mod shrink;
mod statements;
mod verdict;
mod windows;

use std::collections::BTreeSet;

use holdfast_ledger::record::Lane;
use holdfast_ledger::{Answer, Refusal};

use script::Script;

/// Seeds of an ordinary run.
const SEEDS: u64 = 300;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn run_seed(seed: u64) -> naive::Model {
    let script = Script::generate(seed);
    match drive::run(&script, None) {
        Ok(outcome) => outcome.model,
        Err(first) => {
            let (shortest, difference) = shrink::shrink(&script, None);
            panic!("{}", shrink::report(seed, &shortest, &difference.unwrap_or(first)));
        }
    }
}

#[test]
fn book_and_model_agree() {
    let seeds = match number("HOLDFAST_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HOLDFAST_MODEL_SEEDS").unwrap_or(SEEDS),
    };
    let whole = seeds.end - seeds.start >= SEEDS;
    let mut seen: BTreeSet<&'static str> = BTreeSet::new();
    for seed in seeds {
        seen.extend(run_seed(seed).seen);
    }
    // A run that never meets a rule does not test it.
    let wanted = [
        "adjusted",
        "adjustment conflict",
        "conflict",
        "corrected",
        "debt",
        "destructive",
        "ended epoch",
        "epoch closed",
        "expired",
        "expiring",
        "forced",
        "forgotten",
        "frozen",
        "frozen by an operator",
        "generation mismatch",
        "granted less",
        "held",
        "id in future",
        "id too old",
        "invalid",
        "key",
        "never fits",
        "not found",
        "published",
        "released",
        "resolved",
        "rolled back",
        "shadow admitted",
        "shadow debt",
        "shadow degraded",
        "shadow frozen",
        "shadow rejected",
        "shadow undecided",
        "settled",
        "settled with debt",
        "spent",
        "started",
        "tier heavy",
        "tier light",
        "tombstone",
        "unknown",
        "wrong state",
    ];
    let missed: Vec<_> = wanted.iter().filter(|word| !seen.contains(*word)).collect();
    assert!(!whole || missed.is_empty(), "no script met: {missed:?}");
}

/// A shadow limit never changes the flow of enforced ones, whatever is admitted, owed or breached in shadow.
#[test]
fn the_shadow_lane_leaves_no_trace_in_the_enforced_one() {
    let mut in_shadow = 0;
    for seed in 0..80 {
        let script = Script::generate(seed);
        match drive::shadow_leaves_no_trace(&script) {
            Ok(found) => in_shadow += found,
            Err(difference) => panic!("{}", shrink::report(seed, &script, &difference)),
        }
    }
    assert!(in_shadow > 100, "only {in_shadow} reservations were in the shadow lane");
}

/// The same comparison over the enforced lane finds its trace.
#[test]
fn the_enforced_lane_leaves_its_trace() {
    let found: Vec<_> = (0..300)
        .filter_map(|seed| drive::leaves_no_trace(&Script::generate(seed), Lane::Enforced).err())
        .collect();
    // Answers, quotas, events.
    for what in ["with the lane: Refused", "with the lane: [\n    QuotaLine", "with the lane: [\n    ("] {
        assert!(found.iter().any(|difference| difference.text.starts_with(what)), "no {what:?} differs");
    }
}

/// The model keeps the equation by itself, so that what it says of the book's is worth something.
#[test]
fn the_model_keeps_the_equation() {
    for seed in 0..60 {
        let script = Script::generate(seed);
        let mut model = naive::Model::default();
        let mut stamp_ms = epochs::BEGIN_MS;
        for step in &script.steps {
            stamp_ms = stamp_ms.saturating_add_signed(step.after_ms);
            model.begin_entry(stamp_ms);
            let plan = model.plan().cloned();
            if let Some(command) = script.command(&step.act, plan.as_deref()) {
                model.apply(&command);
            }
            model.check_equation().unwrap_or_else(|text| panic!("seed {seed}: {text}"));
        }
        model.check_windows().unwrap_or_else(|text| panic!("seed {seed}: {text}"));
    }
}

/// The comparison has to be able to fail.
#[test]
fn a_wrong_answer_is_reported_and_the_script_shrunk() {
    fn off_by_one(_: usize, answer: &mut Answer) {
        if let Answer::Reservation(receipt) = answer {
            let mut wrong = (**receipt).clone();
            wrong.expires_at_ms += u64::from(wrong.started_at_ms.is_some());
            *answer = Answer::Reservation(wrong.into());
        }
    }
    let script =
        (0..).map(Script::generate).find(|script| drive::run(script, Some(off_by_one)).is_err()).unwrap();
    let (shortest, difference) = shrink::shrink(&script, Some(off_by_one));
    assert!(shortest.steps.len() <= 4, "publish, reserve, start are enough, found {:#?}", shortest.steps);
    let text = shrink::report(0, &shortest, &difference.unwrap());
    assert!(text.contains("the model says") && text.contains("Start"), "{text}");
}

/// A refusal in place of an admission is noticed as well.
#[test]
fn a_refusal_too_many_is_reported() {
    fn refuse(step: usize, answer: &mut Answer) {
        if step > 0 && matches!(answer, Answer::Reservation(_)) {
            *answer = Answer::Refused(Refusal::NotFound);
        }
    }
    assert!((0..20).map(Script::generate).any(|script| drive::run(&script, Some(refuse)).is_err()));
}
