//! Kills nodes, one fault after the other, until the time is up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use holdfast_client::Client;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::cluster::{Cluster, ClusterError};
use super::options::{DOWN_SECONDS, PATIENCE_SECONDS, QUIET_SECONDS};

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// SIGKILL to the leader, restarted after a while.
    KillLeader,
    /// SIGKILL to a follower, restarted after a while.
    KillFollower,
    /// SIGKILL to all nodes at once, all restarted.
    KillAll,
}

impl FaultKind {
    /// The kind's word.
    pub fn word(self) -> &'static str {
        match self {
            FaultKind::KillLeader => "kill_leader",
            FaultKind::KillFollower => "kill_follower",
            FaultKind::KillAll => "kill_all",
        }
    }

    /// Whether it takes the service away.
    pub fn takes_the_service_away(self) -> bool {
        self != FaultKind::KillFollower
    }
}

/// One fault that was done. Times are µs since the run began.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// When the first node died.
    pub from_us: u64,
    /// When the last one was started again.
    pub to_us: u64,
}

/// The faults of a run and how they are drawn.
pub(super) struct Nemesis {
    rng: ChaCha8Rng,
    began: Instant,
    faults: Vec<Fault>,
}

impl Nemesis {
    pub(super) fn new(rng: ChaCha8Rng, began: Instant) -> Self {
        Nemesis { rng, began, faults: Vec::new() }
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn seconds(&mut self, range: std::ops::Range<f64>) -> Duration {
        Duration::from_secs_f64(self.rng.random_range(range))
    }

    /// Every fifth fault takes all nodes; each run has one of those at least.
    fn draw(&mut self) -> FaultKind {
        match self.faults.len() {
            2 => FaultKind::KillAll,
            _ => match self.rng.random_range(0..10) {
                0..6 => FaultKind::KillLeader,
                6..8 => FaultKind::KillFollower,
                _ => FaultKind::KillAll,
            },
        }
    }

    /// Does faults until `until`, and leaves every node running.
    pub(super) async fn attack(
        mut self,
        cluster: &mut Cluster,
        client: &Client,
        until: Instant,
    ) -> Result<Vec<Fault>, ClusterError> {
        let patience = Duration::from_secs(PATIENCE_SECONDS);
        loop {
            let kind = self.draw();
            let leader = cluster.wait_for_leader(client, patience).await?;
            let followers: Vec<u64> = cluster.ids().into_iter().filter(|node| *node != leader).collect();
            let victims = match kind {
                FaultKind::KillLeader => vec![leader],
                FaultKind::KillFollower => vec![followers[self.rng.random_range(0..followers.len())]],
                FaultKind::KillAll => cluster.ids(),
            };
            let from_us = self.now_us();
            for victim in &victims {
                cluster.kill(*victim)?;
            }
            let down = self.seconds(DOWN_SECONDS);
            tokio::time::sleep(down).await;
            for victim in &victims {
                cluster.start(*victim)?;
            }
            self.faults.push(Fault { kind, from_us, to_us: self.now_us() });
            let quiet = self.seconds(QUIET_SECONDS);
            tokio::time::sleep(quiet).await;
            cluster.check_alive()?;
            if Instant::now() >= until {
                return Ok(self.faults);
            }
        }
    }
}

/// How many of each kind.
pub(super) fn counts(faults: &[Fault]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for fault in faults {
        *counts.entry(fault.kind.word().to_owned()).or_default() += 1;
    }
    counts
}
