//! Case 37: the leader's clock steps 11 seconds back and forth every 5 seconds.

use std::time::Duration;

use jepsen_like_tests::history::Outcome;
use jepsen_like_tests::sim::{Scenario, Sim, WorldOptions};
use openraft_rt::AsyncRuntime;

use crate::{assert_sound, id, plan, reserve};

const RATE: u64 = 10;
/// As much as a step ahead would refill: with less a bucket is full long before, and the step brings nothing.
const BURST: u64 = 110;
const STEP_MS: i64 = 11_000;

/// What the steps came to.
struct Steps {
    scenario: Scenario,
    admitted: u64,
    /// The first moment at which more was admitted than the rate and the bound on clocks allow.
    too_many: Option<String>,
}

/// Calls for half a minute, faster than the rate, while the leader's clock steps. The members trust each other's
/// clocks within `trusted_ms`.
async fn steps(trusted_ms: u64) -> Steps {
    let limits = format!(
        "  rate:\n    scope: global\n    unit: requests\n    bucket: {{ amount: {RATE}, per: 1s, burst: {BURST} }}\n"
    );
    let mut options = WorldOptions::default();
    let bound_ms = options.settings.clock_bound_ms;
    options.settings.clock_bound_ms = trusted_ms;
    let mut scenario = Scenario::begin(37, options, &plan(&limits)).await;
    let world = scenario.world.clone();
    let began_us = world.now_us();

    let stepping = world.clone();
    let steps = Sim::spawn(async move {
        for by_ms in [-STEP_MS, STEP_MS, -STEP_MS, STEP_MS, -STEP_MS, STEP_MS] {
            let Some(leader) = stepping.leader() else { continue };
            stepping.clock(leader).set_offset_ms(by_ms);
            Sim::sleep(Duration::from_secs(5)).await;
            stepping.clock(leader).set_offset_ms(0);
        }
    });
    let (mut admitted, mut at, mut too_many) = (0, 0, None);
    while world.now_us() - began_us < 30_000_000 {
        at += 1;
        let id = id(&scenario, at);
        let asked = scenario.call(&id, reserve("acme", "requests", 1)).await;
        admitted += u64::from(asked.outcome == Outcome::Ok);
        let elapsed_ms = (world.now_us() - began_us) / 1000;
        let most = BURST + RATE * (elapsed_ms + bound_ms) / 1000 + 1;
        if admitted > most && too_many.is_none() {
            too_many = Some(format!("{admitted} were admitted in {elapsed_ms} ms, at most {most} may be"));
        }
        Sim::sleep(Duration::from_millis(20)).await;
    }
    steps.await.expect("the clock's task lives");
    Steps { scenario, admitted, too_many }
}

#[test]
fn steps_of_the_leaders_clock_admit_no_more_than_the_rate_and_turn_no_receipt_back() {
    Sim::with_seed(37).block_on(async {
        let trusted_ms = WorldOptions::default().settings.clock_bound_ms;
        let Steps { mut scenario, admitted, too_many } = steps(trusted_ms).await;
        assert_eq!(too_many, None);
        assert!(admitted > BURST + RATE * 15, "only {admitted} were admitted: the steps stopped the service");

        let mut stamps: Vec<(u64, u64)> = scenario.recorder.read(|operations| {
            let fresh = operations.iter().filter_map(|op| op.receipt());
            fresh.map(|receipt| (receipt.reserved_revision, receipt.reserved_at_ms)).collect()
        });
        stamps.sort_unstable();
        assert!(stamps.windows(2).all(|pair| pair[0].1 <= pair[1].1), "time went back in a receipt");
        assert_sound(&mut scenario).await;
    });
}

#[test]
fn without_the_guard_steps_of_the_leaders_clock_admit_too_many() {
    Sim::with_seed(37).block_on(async {
        let Steps { admitted, too_many, .. } = steps(60_000).await;
        assert!(
            too_many.is_some(),
            "{admitted} were admitted: the scenario cannot tell whether there is a guard"
        );
    });
}
