//! The guard over the leader's clock.

use std::time::Duration;

use holdfast_node::propose::{ProposeError, UnknownWhy};
use openraft_rt::AsyncRuntime;
use openraft_rt_sim::SimRuntime;

use crate::harness::{SOON, converged, founded, put, put_acked, run};

#[test]
fn a_leader_whose_clock_steps_stamps_nothing_and_hands_over() {
    for (seed, step_ms) in [(1, -11_000), (2, 11_000), (3, -600), (4, 600)] {
        run(seed, async move {
            let (sim, _, leader) = founded(seed).await;
            let before = put_acked(&sim, 1).await;
            sim.clock(leader).set_offset_ms(step_ms);
            // Either it says so, or it has handed over already.
            let refused = put(&sim, leader, 2).await.unwrap_err();
            assert!(matches!(refused, ProposeError::Clock(_) | ProposeError::NotLeader(_)), "{refused}");
            sim.wait_for("another leads", SOON, |sim| sim.leader().is_some_and(|id| id != leader))
                .await
                .unwrap();
            let after = put_acked(&sim, 3).await;
            assert!(after.clock_ms >= before.clock_ms);
            assert!(after.clock_ms < before.clock_ms + 10_000, "a stamp from the clock that stepped");
            assert_eq!(converged(&sim).await, 2);
            // It does not come back to the lead, and says why.
            SimRuntime::sleep(Duration::from_secs(2)).await;
            assert_ne!(sim.leader(), Some(leader));
            assert!(sim.node(leader).unwrap().status().clock_fault.is_some());
        });
    }
}

#[test]
fn a_small_error_is_no_fault() {
    run(5, async {
        let (sim, _, leader) = founded(5).await;
        sim.clock(leader).set_offset_ms(300);
        for n in 1..=10 {
            put(&sim, leader, n).await.unwrap();
        }
        assert_eq!(sim.leader(), Some(leader));
    });
}

#[test]
fn followers_know_the_median_too() {
    run(6, async {
        let (sim, _, leader) = founded(6).await;
        let follower = (1..=3).find(|id| *id != leader).unwrap();
        sim.clock(follower).set_offset_ms(2_000);
        let known = |sim: &crate::harness::Sim| {
            sim.node(follower)
                .unwrap()
                .status()
                .off_median_ms
                .is_some_and(|off| (1_900..2_100).contains(&off))
        };
        sim.wait_for("the follower knows that it is 2 s ahead", SOON, known).await.unwrap();
        let status = sim.node(leader).unwrap().status();
        let seen = status.members.iter().find(|m| m.node_id == follower).unwrap();
        assert!(seen.clock_offset_ms.is_some_and(|ms| (1_900..2_100).contains(&ms)), "{seen:?}");
        assert_eq!(status.clock_fault, None);
    });
}

#[test]
fn a_leader_without_a_quorum_stamps_nothing() {
    run(7, async {
        let (sim, wires, leader) = founded(7).await;
        put_acked(&sim, 1).await;
        wires.isolate(leader, &[1, 2, 3]);
        SimRuntime::sleep(Duration::from_secs(3)).await;
        let refused = put(&sim, leader, 2).await.unwrap_err();
        assert!(refused.has_no_effect(), "{refused}");
        wires.heal();
        put_acked(&sim, 3).await;
        assert_eq!(converged(&sim).await, 2);
    });
}

#[test]
fn what_a_cut_off_leader_took_is_unknown_and_never_called_unavailable() {
    run(8, async {
        let (sim, wires, leader) = founded(8).await;
        put_acked(&sim, 1).await;
        wires.isolate(leader, &[1, 2, 3]);
        // Its lease and its clocks are still good for a moment: it takes the command, and hears no more.
        let outcome = put(&sim, leader, 2).await.unwrap_err();
        assert_eq!(outcome, ProposeError::Unknown(UnknownWhy::TimedOut));
        wires.heal();
        // Asking by the same id settles it; here the entry was never committed or is there once.
        put_acked(&sim, 3).await;
        assert!([2, 3].contains(&converged(&sim).await));
    });
}
