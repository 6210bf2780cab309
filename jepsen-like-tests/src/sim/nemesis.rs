//! Draws faults from the seed and does them, one after the other, until the time is up.

use std::time::Duration;

use holdfast_node::storage::sim_disk::Loss;
use openraft_rt::AsyncRuntime;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::Sim;
use super::faults::{Fault, FaultLog};
use super::links::Weather;
use super::world::World;

/// How often each kind comes, as weights.
#[derive(Clone, Copy, Debug)]
pub struct Strength {
    /// Power losses of single machines.
    pub crashes: u32,
    /// Power losses of all machines at once.
    pub blackouts: u32,
    /// Partitions and bad weather.
    pub network: u32,
    /// Restarts, transfers and snapshots.
    pub operations: u32,
    /// Wrong clocks.
    pub clocks: u32,
}

impl Strength {
    /// Drawn for one run: some kinds come often in it, some never.
    pub(super) fn draw(rng: &mut ChaCha8Rng) -> Strength {
        Strength {
            crashes: 1 + rng.random_range(0..4),
            blackouts: rng.random_range(0..3),
            network: rng.random_range(0..4),
            operations: rng.random_range(0..4),
            clocks: rng.random_range(0..2),
        }
    }
}

fn draw_loss(rng: &mut ChaCha8Rng) -> Loss {
    [Loss::All, Loss::Suffix, Loss::Random, Loss::Nothing][rng.random_range(0..4)]
}

fn draw_ms(rng: &mut ChaCha8Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.random_range(range))
}

fn draw(rng: &mut ChaCha8Rng, strength: Strength, nodes: &[u64]) -> Fault {
    let Strength { crashes, blackouts, network, operations, clocks } = strength;
    let node = nodes[rng.random_range(0..nodes.len())];
    let mut pick = rng.random_range(0..crashes + blackouts + network + operations + clocks);
    let mut falls_in = |weight: u32| {
        let inside = pick < weight;
        pick = pick.saturating_sub(weight);
        inside
    };
    if falls_in(crashes) {
        let (down, loss) = (draw_ms(rng, 0..1_500), draw_loss(rng));
        return match rng.random_bool(0.5) {
            true => Fault::KillLeader { down, loss },
            false => Fault::CrashInAWrite { node, down, loss },
        };
    }
    if falls_in(blackouts) {
        return Fault::CrashAll { down: draw_ms(rng, 0..1_500), loss: draw_loss(rng) };
    }
    if falls_in(network) {
        let lasts = draw_ms(rng, 200..2_500);
        return match rng.random_range(0..4) {
            0 => Fault::Isolate { node: None, lasts },
            1 => Fault::Isolate { node: Some(node), lasts },
            2 => {
                let others: Vec<u64> = nodes.iter().copied().filter(|other| *other != node).collect();
                Fault::OneWay { from: node, to: others[rng.random_range(0..others.len())], lasts }
            }
            _ => {
                let (loss_percent, delay_ms_max) = (rng.random_range(1..31), rng.random_range(2..120));
                Fault::Storm { loss_percent, delay_ms_max, lasts }
            }
        };
    }
    if falls_in(operations) {
        return match rng.random_range(0..3) {
            0 => Fault::Restart { node },
            1 => Fault::Transfer,
            _ => Fault::Snapshot { node },
        };
    }
    let by_ms = [-11_000, -700, -200, 200, 700, 11_000][rng.random_range(0..6)];
    let on = rng.random_bool(0.5).then_some(node);
    Fault::ClockStep { node: on, by_ms, lasts: draw_ms(rng, 500..4_000) }
}

/// Does faults until `until_us`.
pub(super) async fn attack(
    world: &World,
    mut rng: ChaCha8Rng,
    strength: Strength,
    until_us: u64,
) -> FaultLog {
    let mut log = FaultLog::default();
    loop {
        Sim::sleep(draw_ms(&mut rng, 100..1_500)).await;
        if world.now_us() >= until_us {
            return log;
        }
        let fault = draw(&mut rng, strength, &world.nodes());
        tracing::info!("{} ms: {fault}", world.now_us() / 1000);
        log.faults.push((world.now_us(), fault.clone()));
        inflict(world, fault).await;
    }
}

/// Does one fault and waits until it is over.
pub(super) async fn inflict(world: &World, fault: Fault) {
    match fault {
        Fault::KillLeader { down, loss } => {
            let Some(leader) = world.leader() else { return };
            world.crash(leader, loss).await;
            Sim::sleep(down).await;
            world.ensure_up(leader).await;
        }
        Fault::CrashInAWrite { node, down, loss } => {
            world.crash_in_a_write(node, loss).await;
            Sim::sleep(down).await;
            world.ensure_up(node).await;
        }
        Fault::CrashAll { down, loss } => {
            for node in world.nodes() {
                world.crash(node, loss).await;
            }
            Sim::sleep(down).await;
            for node in world.nodes() {
                world.ensure_up(node).await;
            }
        }
        Fault::Restart { node } => {
            world.stop(node).await;
            world.ensure_up(node).await;
        }
        Fault::Isolate { node, lasts } => {
            let Some(node) = node.or_else(|| world.leader()) else { return };
            for other in world.nodes().into_iter().filter(|other| *other != node) {
                world.links().cut(node, other);
                world.links().cut(other, node);
            }
            Sim::sleep(lasts).await;
            world.links().mend();
        }
        Fault::OneWay { from, to, lasts } => {
            world.links().cut(from, to);
            Sim::sleep(lasts).await;
            world.links().mend();
        }
        Fault::Storm { loss_percent, delay_ms_max, lasts } => {
            let delay_us = 100..delay_ms_max * 1000;
            world.links().set_weather(Weather { delay_us, loss_percent, twice_percent: 5 });
            Sim::sleep(lasts).await;
            world.links().mend();
        }
        Fault::Transfer => {
            let handle = world.leader().and_then(|leader| world.handle(leader));
            if let Some((_, handle)) = handle {
                handle.transfer_leader(None).await;
            }
        }
        Fault::Snapshot { node } => {
            if let Some((_, handle)) = world.handle(node) {
                handle.begin_snapshot().await;
            }
        }
        Fault::ClockStep { node, by_ms, lasts } => {
            let Some(node) = node.or_else(|| world.leader()) else { return };
            world.clock(node).set_offset_ms(by_ms);
            Sim::sleep(lasts).await;
            world.clock(node).set_offset_ms(0);
        }
    }
}
