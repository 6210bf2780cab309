//! Random workloads with restarts and power cuts, against the model.

use holdfast_node::storage::log::LogConfig;
use holdfast_node::storage::sim_disk::{Loss, SimDisk, SplitMix};

use super::log_world::{Step, World};

fn draw(random: &mut SplitMix) -> Step {
    match random.below(100) {
        0..35 => Step::Append(1 + random.below(6) as usize, random.below(400) as usize),
        35..38 => Step::Append(1 + random.below(60) as usize, 3),
        38..48 => Step::Vote,
        48..56 => Step::Truncate(random.below(9)),
        56..64 => Step::Purge(random.below(12)),
        64..66 => Step::PurgeBeyond(random.below(5)),
        66..72 => Step::Commit,
        72..80 => Step::Write,
        _ => Step::Run,
    }
}

fn life(seed: u64) {
    let mut random = SplitMix::new(seed);
    let config = LogConfig {
        segment_bytes: 300 + random.below(4_000),
        cache_bytes: random.below(3_000) as usize,
        ..LogConfig::default()
    };
    let disk = SimDisk::new();
    let mut world = World::open(disk.clone(), config).unwrap();
    for restart in 0..8 {
        if random.chance(70) {
            disk.crash_at(1 + random.below(60), random.chance(50));
        }
        for _ in 0..random.below(80) {
            if world.step(&draw(&mut random)).is_err() {
                assert!(disk.is_down(), "seed {seed}: only the power may fail a step");
                break;
            }
            if !disk.is_down() {
                world.check_reads(&mut random);
            }
        }
        let loss = [Loss::All, Loss::Suffix, Loss::Random, Loss::Nothing][random.below(4) as usize];
        let life = world.end();
        disk.reboot(loss, random.next_u64());
        world = life.reopen(&format!("seed {seed}, restart {restart}, {loss:?}"));
    }
}

#[test]
fn random_lives_agree_with_the_model() {
    (0..60).for_each(life);
}
