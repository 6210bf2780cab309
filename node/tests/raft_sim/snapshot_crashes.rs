//! The power goes at each disk call of building a snapshot, and of receiving one.

use holdfast_node::raft::StartMode;
use holdfast_node::storage::Disk;
use holdfast_node::storage::sim_disk::Loss;

use crate::harness::{SOON, Sim, converged, put_acked, run, settled};

/// Enough for every disk call of a scenario here; one that needs more does not end.
const CALLS_MAX: u64 = 200;

/// Runs `scenario` with the power going at the first disk call, the second, and so on, until it comes to its end with
/// the power on, which it says. Gives how many calls it took.
fn at_each_call(scenario: impl AsyncFn(u64, bool, Loss) -> bool) -> u64 {
    let mut most = 0;
    for effect in [false, true] {
        for loss in [Loss::All, Loss::Suffix, Loss::Random] {
            let calls = (1..CALLS_MAX).find(|nth| run(*nth, scenario(*nth, effect, loss)));
            most = most.max(calls.expect("it never ended with the power on"));
        }
    }
    most
}

fn unfinished(sim: &Sim, id: u64) -> Vec<String> {
    let names = sim.disk(id).list("snapshots").unwrap();
    names.into_iter().filter(|name| name.ends_with(".tmp")).collect()
}

#[test]
fn a_snapshot_being_built() {
    let calls = at_each_call(async |nth, effect, loss| {
        let mut sim = crate::harness::of(&[1], nth).0;
        sim.settings_mut().snapshot_entries_kept = 2;
        sim.found().await.unwrap();
        settled(&sim).await;
        for n in 1..=10 {
            put_acked(&sim, n).await;
        }
        let taken = |sim: &Sim| {
            let status = sim.node(1).unwrap().status();
            let behind =
                |index: Option<u64>, by| index.is_some_and(|at| at + by >= status.applied_index.unwrap());
            behind(status.snapshot_index, 0) && behind(status.purged_index, 2)
        };
        sim.node(1).unwrap().begin_snapshot().await;
        sim.wait_for("the first snapshot", SOON, taken).await.unwrap();
        for n in 11..=20 {
            put_acked(&sim, n).await;
        }
        sim.disk(1).crash_at(nth, effect);
        sim.node(1).unwrap().begin_snapshot().await;
        sim.wait_for("the second, or its end", SOON, |sim| sim.disk(1).is_down() || taken(sim))
            .await
            .unwrap();
        let ended = !sim.disk(1).is_down();

        sim.crash(1, loss, nth).await;
        sim.start(1, StartMode::Normal).await.unwrap();
        assert_eq!(unfinished(&sim, 1), [""; 0], "call {nth}");
        settled(&sim).await;
        put_acked(&sim, 21).await;
        let node = sim.node(1).unwrap();
        // Nobody else has it: this is what its own snapshots and its log hold.
        assert_eq!(node.replica().revision(), 21, "call {nth}, effect {effect}, {loss:?}");
        assert!(node.status().snapshot_index.is_some(), "call {nth}: the old snapshot serves");
        ended
    });
    assert!(calls > 10, "only {calls} calls were tried");
}

#[test]
fn a_snapshot_being_received() {
    let calls = at_each_call(async |nth, effect, loss| {
        let (mut sim, wires) = crate::harness::three(nth);
        sim.settings_mut().snapshot_entries_kept = 2;
        sim.found().await.unwrap();
        let leader = settled(&sim).await;
        let behind = (1..=3).find(|id| *id != leader).unwrap();
        for n in 1..=10 {
            put_acked(&sim, n).await;
        }
        converged(&sim).await;
        crate::snapshots::snapshot_all(&sim).await;
        sim.crash(behind, Loss::All, nth).await;
        for n in 11..=40 {
            put_acked(&sim, n).await;
        }
        crate::snapshots::snapshot_all(&sim).await;
        sim.disk(behind).crash_at(nth, effect);
        let ended = received(&mut sim, behind).await;

        sim.crash(behind, loss, nth).await;
        wires.isolate(behind, &[1, 2, 3]);
        sim.start(behind, StartMode::Normal).await.unwrap();
        assert_eq!(unfinished(&sim, behind), [""; 0], "call {nth}");
        let alone = sim.node(behind).unwrap().replica().revision();
        // What it had before, or all that it was sent.
        assert!(alone >= 10, "call {nth}, effect {effect}, {loss:?}: only {alone} is left");
        wires.heal();
        assert_eq!(converged(&sim).await, 40);
        ended
    });
    assert!(calls > 12, "only {calls} calls were tried");
}

/// Starts a node that is behind a purged log. True once it has caught up, false once its power is gone.
async fn received(sim: &mut Sim, behind: u64) -> bool {
    if sim.start(behind, StartMode::Normal).await.is_err() {
        assert!(sim.disk(behind).is_down());
        return false;
    }
    let done = |sim: &Sim| sim.disk(behind).is_down() || sim.node(behind).unwrap().replica().revision() == 40;
    sim.wait_for("it catches up or its power goes", SOON, done).await.unwrap();
    !sim.disk(behind).is_down()
}
