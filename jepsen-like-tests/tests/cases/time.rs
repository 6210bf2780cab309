//! Case 37: the leader's clock steps 11 seconds back and forth every 5 seconds.

use std::time::Duration;

use jepsen_like_tests::history::Outcome;
use jepsen_like_tests::sim::{Scenario, Sim, WorldOptions};
use openraft_rt::AsyncRuntime;

use crate::{assert_sound, id, plan, reserve};

const RATE: u64 = 10;
const BURST: u64 = 10;

#[test]
fn steps_of_the_leaders_clock_admit_no_more_than_the_rate_and_turn_no_receipt_back() {
    Sim::with_seed(37).block_on(async {
        let limits = format!(
            "  rate:\n    scope: global\n    unit: requests\n    bucket: {{ amount: {RATE}, per: 1s, burst: {BURST} }}\n"
        );
        let options = WorldOptions::default();
        let bound_ms = options.settings.clock_bound_ms;
        let mut scenario = Scenario::begin(37, options, &plan(&limits)).await;
        let world = scenario.world.clone();
        let began_us = world.now_us();

        let stepping = world.clone();
        let steps = Sim::spawn(async move {
            for by_ms in [-11_000, 11_000, -11_000, 11_000, -11_000, 11_000] {
                let Some(leader) = stepping.leader() else { continue };
                stepping.clock(leader).set_offset_ms(by_ms);
                Sim::sleep(Duration::from_secs(5)).await;
                stepping.clock(leader).set_offset_ms(0);
            }
        });
        let mut admitted = 0;
        let mut at = 0;
        while world.now_us() - began_us < 30_000_000 {
            at += 1;
            let id = id(&scenario, at);
            let asked = scenario.call(&id, reserve("acme", "requests", 1)).await;
            admitted += u64::from(asked.outcome == Outcome::Ok);
            Sim::sleep(Duration::from_millis(30)).await;
        }
        steps.await.expect("the clock's task lives");
        let elapsed_ms = (world.now_us() - began_us) / 1000;
        let most = BURST + RATE * (elapsed_ms + bound_ms) / 1000 + 1;
        assert!(admitted <= most, "{admitted} were admitted in {elapsed_ms} ms, at most {most} may be");
        assert!(admitted > BURST + RATE, "hardly anything was admitted: the steps stopped the service");

        let mut stamps: Vec<(u64, u64)> = scenario.recorder.read(|operations| {
            let fresh = operations.iter().filter_map(|op| op.receipt());
            fresh.map(|receipt| (receipt.reserved_revision, receipt.reserved_at_ms)).collect()
        });
        stamps.sort_unstable();
        assert!(stamps.windows(2).all(|pair| pair[0].1 <= pair[1].1), "time went back in a receipt");
        assert_sound(&mut scenario).await;
    });
}
