//! The power goes at every disk call of scripted workloads, with every kind of loss.

use holdfast_node::storage::sim_disk::{Loss, SimDisk, SplitMix};

use super::log_world::{Step, World, small_config};
use Step::{Append, Commit, Purge, PurgeBeyond, Run, Truncate, Vote, Write};

const LOSSES: [Loss; 3] = [Loss::All, Loss::Suffix, Loss::Random];
const SEEDS: u64 = 4;

/// Counts the mutating calls of opening a new log and running the script.
fn calls_of(script: &[Step]) -> u64 {
    let disk = SimDisk::new();
    let mut world = World::open(disk.clone(), small_config()).unwrap();
    world.run(script).unwrap();
    disk.calls()
}

fn crash_everywhere(script: &[Step]) {
    let calls = calls_of(script);
    assert!(calls > 10);
    for nth in 1..=calls {
        for effect in [false, true] {
            for loss in LOSSES {
                for seed in 0..SEEDS {
                    let context = format!(
                        "power lost at call {nth} of {calls}, effect {effect}, {loss:?}, seed {seed}"
                    );
                    crash_once(script, nth, effect, loss, seed * 7919 + nth, &context);
                }
            }
        }
    }
}

fn crash_once(script: &[Step], nth: u64, effect: bool, loss: Loss, seed: u64, context: &str) {
    let disk = SimDisk::new();
    disk.crash_at(nth, effect);
    let life = match World::open(disk.clone(), small_config()) {
        Ok(mut world) => {
            world.run(script).unwrap_err();
            Some(world.end())
        }
        Err(_) => None,
    };
    assert!(disk.is_down(), "{context}");
    disk.reboot(loss, seed);
    let mut world = match life {
        Some(life) => {
            // Recovery is interrupted too, at a drawn call, and must not make things worse.
            let mut random = SplitMix::new(seed);
            disk.crash_at(1 + random.below(8), random.chance(50));
            if let Ok(world) = World::open(disk.clone(), small_config()) {
                life.judge(&world, context);
            }
            disk.reboot(loss, seed + 1);
            life.reopen(context)
        }
        None => {
            World::open(disk.clone(), small_config()).unwrap_or_else(|error| panic!("{context}: {error}"))
        }
    };
    // It works on, and keeps what it took over and what it does next.
    world.run(&[Vote, Append(3, 200), Run]).unwrap_or_else(|error| panic!("{context}: {error}"));
    disk.reboot(Loss::All, seed);
    world.end().reopen(context);
}

#[test]
fn appends_and_rotations() {
    let mut script = Vec::new();
    for nth in 0..6 {
        script.extend([Append(2, 300), Append(1, 50 * nth), Commit, Run]);
    }
    script.extend([Append(1, 4_000), Run, Append(40, 10), Run]);
    crash_everywhere(&script);
}

#[test]
fn votes_between_appends() {
    crash_everywhere(&[
        Vote,
        Run,
        Append(2, 100),
        Vote,
        Append(2, 700),
        Run,
        Vote,
        Vote,
        Run,
        Append(3, 700),
        Vote,
        Run,
    ]);
}

#[test]
fn truncations() {
    crash_everywhere(&[
        Append(8, 200),
        Run,
        Truncate(5),
        Append(3, 300),
        Run,
        Append(4, 600),
        Truncate(4),
        Truncate(2),
        Run,
        Append(2, 600),
        Truncate(100),
        Append(2, 100),
        Run,
        Append(5, 500),
        Run,
        Truncate(7),
        Vote,
        Run,
    ]);
}

#[test]
fn purges_and_deleted_segments() {
    crash_everywhere(&[
        Append(6, 500),
        Vote,
        Run,
        Purge(4),
        Run,
        Append(6, 500),
        Purge(7),
        Append(2, 10),
        Run,
        Truncate(1),
        Purge(1),
        Run,
        PurgeBeyond(10),
        Append(4, 500),
        Run,
        Append(4, 500),
        Run,
        Purge(100),
        Run,
        Append(1, 1),
        Run,
    ]);
}

#[test]
fn writes_that_run_ahead_of_the_sync() {
    crash_everywhere(&[
        Append(1, 300),
        Write,
        Append(2, 300),
        Write,
        Vote,
        Write,
        Truncate(1),
        Write,
        Append(3, 700),
        Write,
        Run,
        Append(1, 600),
        Write,
        Append(1, 600),
        Write,
        Purge(3),
        Write,
        Run,
        Append(1, 10),
        Run,
    ]);
}
