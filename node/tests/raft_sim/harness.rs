//! What the scenarios share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_ledger::command::Release;
use holdfast_ledger::{Command, ReservationId};
use holdfast_node::propose::{Answered, ProposeError};
use holdfast_node::raft::RaftSettings;
use holdfast_node::raft::cluster::Cluster;
use holdfast_node::raft::memory::{Delivery, Links};
use holdfast_node::raft::transport::Lane;
use openraft_rt::{AsyncRuntime, Instant};
use openraft_rt_sim::SimRuntime;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

pub type Sim = Cluster<SimRuntime>;
pub type Now = <SimRuntime as AsyncRuntime>::Instant;

/// Long enough for an election or two.
pub const SOON: Duration = Duration::from_secs(10);

/// Runs a scenario on virtual time.
pub fn run<T>(seed: u64, scenario: impl Future<Output = T>) -> T {
    SimRuntime::with_seed(seed).block_on(scenario)
}

/// Links with a drawn delay and pairs that are cut.
pub struct Wires {
    random: Mutex<SmallRng>,
    cut: Mutex<BTreeSet<(u64, u64)>>,
    /// Nodes whose disks take for ever to sync.
    stalled: Mutex<BTreeSet<u64>>,
}

impl Wires {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Wires {
            random: Mutex::new(SmallRng::seed_from_u64(seed)),
            cut: Mutex::default(),
            stalled: Mutex::default(),
        })
    }

    /// Cuts what goes from `a` to `b` and back.
    pub fn cut(&self, a: u64, b: u64) {
        self.cut.lock().unwrap().extend([(a, b), (b, a)]);
    }

    /// Cuts `node` off from `others`.
    pub fn isolate(&self, node: u64, others: &[u64]) {
        for other in others {
            if *other != node {
                self.cut(node, *other);
            }
        }
    }

    /// From now on nothing that the node writes becomes durable.
    pub fn stall_syncs(&self, node: u64) {
        self.stalled.lock().unwrap().insert(node);
    }

    /// Its disk works again.
    pub fn release_syncs(&self, node: u64) {
        self.stalled.lock().unwrap().remove(&node);
    }

    pub fn heal(&self) {
        self.cut.lock().unwrap().clear();
    }
}

impl Links for Wires {
    fn deliver(&self, from: u64, to: u64, _lane: Lane) -> Delivery {
        if self.cut.lock().unwrap().contains(&(from, to)) {
            return Delivery::Lost;
        }
        Delivery::After(Duration::from_micros(self.random.lock().unwrap().random_range(200..2_000)))
    }
}

/// A cluster of three that is not founded yet, and its wires.
pub fn three(seed: u64) -> (Sim, Arc<Wires>) {
    of(&[1, 2, 3], seed)
}

/// A cluster that is not founded yet, and its wires.
pub fn of(ids: &[u64], seed: u64) -> (Sim, Arc<Wires>) {
    let wires = Wires::new(seed);
    let random = Mutex::new(SmallRng::seed_from_u64(seed ^ 0x5eed));
    let disks = wires.clone();
    let latency = Arc::new(move |node| {
        if disks.stalled.lock().unwrap().contains(&node) {
            return Duration::from_secs(3_600);
        }
        Duration::from_micros(random.lock().unwrap().random_range(300..3_000))
    });
    (Cluster::new(ids, RaftSettings::for_tests(), wires.clone(), latency), wires)
}

/// A founded cluster of three with a leader that everybody follows.
pub async fn founded(seed: u64) -> (Sim, Arc<Wires>, u64) {
    let (mut sim, wires) = three(seed);
    sim.found().await.unwrap();
    let leader = settled(&sim).await;
    (sim, wires, leader)
}

/// Waits until all running nodes follow one leader.
pub async fn settled(sim: &Sim) -> u64 {
    let same = |sim: &Sim| {
        let leaders: BTreeSet<_> = sim.nodes().map(|(_, node)| node.status().leader).collect();
        leaders.len() == 1 && leaders.first().unwrap().is_some_and(|id| sim.leader() == Some(id))
    };
    sim.wait_for("one leader that all follow", SOON, same).await.unwrap();
    sim.leader().unwrap()
}

/// A command that leaves a trace under its number: a release of an id never seen makes a tombstone.
pub fn mark(n: u64) -> Command {
    Command::Release(Release {
        id: ReservationId::from_parts(holdfast_node::raft::cluster::BEGIN_MS, u128::from(n)),
    })
}

pub fn soon(within: Duration) -> Now {
    Now::now() + within
}

/// Proposes a mark at a node.
pub async fn put(sim: &Sim, node: u64, n: u64) -> Result<Answered, ProposeError> {
    sim.node(node).unwrap().propose(&[mark(n)], soon(Duration::from_secs(2))).await
}

/// Proposes a mark at whoever leads until it is acknowledged.
pub async fn put_acked(sim: &Sim, n: u64) -> Answered {
    let give_up = Now::now() + SOON;
    loop {
        if let Some(leader) = sim.leader()
            && let Ok(answered) = put(sim, leader, n).await
        {
            return answered;
        }
        assert!(Now::now() < give_up, "mark {n} was not acknowledged within {SOON:?}");
        SimRuntime::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until all running nodes have applied the same revision and hold the same digest.
pub async fn converged(sim: &Sim) -> u64 {
    let same = |sim: &Sim| {
        let seen: BTreeSet<_> = sim
            .nodes()
            .map(|(_, node)| node.replica().read(|book| (book.revision(), book.digest())))
            .collect();
        seen.len() == 1
    };
    sim.wait_for("equal books on all nodes", SOON, same).await.unwrap();
    sim.nodes().next().unwrap().1.replica().revision()
}
