//! Directed scenarios: what random faults find too rarely.

use std::time::Duration;

use holdfast_node::raft::RaftSettings;
use holdfast_node::storage::sim_disk::Loss;
use openraft_rt::AsyncRuntime;

use super::Sim;
use super::door::SimDoor;
use super::world::{Mutant, World, WorldOptions};
use crate::check::{self, Finding};
use crate::drive::{Door, Recorder, call_once};
use crate::evidence::Evidence;
use crate::history::{Call, Operation};
use crate::seed;
use crate::workload::{PlanShape, Session, document};

/// A cluster that has a leader and a plan, and one client to make calls with.
pub struct Scenario {
    /// The machines.
    pub world: World,
    /// The client's way in.
    pub door: SimDoor,
    /// What it saw.
    pub recorder: Recorder,
}

/// How long a scenario waits for what must come true, in virtual time.
pub const PATIENCE: Duration = Duration::from_secs(30);

impl Scenario {
    /// Starts the cluster, waits for a leader and publishes `plan`. Must run on the simulation's runtime.
    ///
    /// # Panics
    /// If there is no leader, or the plan is not taken: the scenario has not begun.
    pub async fn begin(seed: u64, options: WorldOptions, plan: &str) -> Scenario {
        let world = World::new(seed, options);
        for node in world.nodes() {
            world.ensure_up(node).await;
        }
        assert!(world.wait_until(PATIENCE, || world.leader().is_some()).await, "no leader");
        let mut scenario = Scenario { door: door_of(&world, seed, 0), world, recorder: Recorder::default() };
        let published = scenario.call("", Call::Publish { document: plan.to_owned() }).await;
        assert!(published.revision.is_some(), "the plan was not taken: {published:?}");
        scenario
    }

    /// The usual plan with long times.
    pub fn usual_plan() -> String {
        document(PlanShape { hold_ttl_ms: 60_000, usage_deadline_ms: 600_000, slots_per_tenant: 1_000 })
    }

    /// One more client.
    pub fn another_door(&self, client: u32) -> SimDoor {
        door_of(&self.world, 0, client)
    }

    /// Makes one call and writes it down.
    pub async fn call(&mut self, id: &str, call: Call) -> Operation {
        call_once(0, &mut self.door, &self.recorder, id.to_owned(), call).await
    }

    /// A fresh id and a call that reserves on the usual plan.
    pub fn new_reservation(&self, session: &mut Session) -> (String, Call) {
        session.next_call(self.door.wall_ms()).unwrap_or_else(|| (String::new(), Call::Release))
    }

    /// Waits until a leader is there and all nodes have applied the same, then judges everything.
    pub async fn judge(&mut self) -> Vec<Finding> {
        for node in self.world.nodes() {
            self.world.ensure_up(node).await;
        }
        let world = self.world.clone();
        if !world.wait_until(PATIENCE, || world.leader().is_some() && world.has_converged()).await {
            world.mishap("the nodes did not converge");
        }
        check::judge(&Evidence {
            operations: self.recorder.read(<[Operation]>::to_vec),
            applied: world.applied(),
            leaders: world.leaders_seen(),
            audits: world.audits(),
            usage: Vec::new(),
            mishaps: world.mishaps(),
        })
    }
}

fn door_of(world: &World, seed: u64, client: u32) -> SimDoor {
    SimDoor::new(world.clone(), client, seed::stream(seed, "door", u64::from(client)), 10_000)
}

/// A leader whose own disk is slow acknowledges what the two others have synced, loses power before its
/// own sync and comes back at once. If it resumes its old term, it puts new commands at the indexes of
/// acknowledged ones.
pub fn acknowledged_but_replaced(seed: u64, mutant: Option<Mutant>) -> Vec<Finding> {
    Sim::with_seed(seed).block_on(async move {
        let settings = RaftSettings::for_tests();
        let options = WorldOptions { mutant, settings, ..WorldOptions::default() };
        let mut scenario = Scenario::begin(seed, options, &Scenario::usual_plan()).await;
        let mix = crate::workload::Mix { tenants: vec!["hot".into()], users: 1, hot_percent: 100 };
        let mut session = Session::new(seed::stream(seed, "session", 0), mix);
        let Some(leader) = scenario.world.leader() else { return scenario.judge().await };

        scenario.world.set_sync(leader, Duration::from_secs(30));
        for _ in 0..5 {
            let (id, call) = scenario.new_reservation(&mut session);
            scenario.call(&id, call).await;
        }
        scenario.world.crash(leader, Loss::All).await;
        scenario.world.set_sync(leader, Duration::from_millis(1));
        scenario.world.ensure_up(leader).await;
        // Asked before the others notice.
        for _ in 0..5 {
            let (id, call) = scenario.new_reservation(&mut session);
            scenario.call(&id, call).await;
        }
        Sim::sleep(Duration::from_secs(2)).await;
        scenario.judge().await
    })
}

/// All machines lose power at once right after acknowledgements, and others take their place. If the log
/// acknowledged before the sync, acknowledged commands are gone and new ones stand at their revisions.
pub fn acknowledged_and_lost(seed: u64, mutant: Option<Mutant>) -> Vec<Finding> {
    Sim::with_seed(seed).block_on(async move {
        let options = WorldOptions { mutant, settings: RaftSettings::for_tests(), ..WorldOptions::default() };
        let mut scenario = Scenario::begin(seed, options, &Scenario::usual_plan()).await;
        let mix = crate::workload::Mix { tenants: vec!["hot".into()], users: 1, hot_percent: 100 };
        let mut session = Session::new(seed::stream(seed, "session", 0), mix);
        for _ in 0..4 {
            for _ in 0..12 {
                let (id, call) = scenario.new_reservation(&mut session);
                scenario.call(&id, call).await;
            }
            for node in scenario.world.nodes() {
                scenario.world.crash(node, Loss::All).await;
            }
            for node in scenario.world.nodes() {
                scenario.world.ensure_up(node).await;
            }
        }
        let (id, call) = scenario.new_reservation(&mut session);
        scenario.call(&id, call).await;
        scenario.judge().await
    })
}

/// A leader is cut off from the two others, which lose power and are back at once. They have forgotten to
/// whom they had promised what, so one of them may lead before the old leader's lease is over. What the new
/// leader acknowledged is then read at the old one. Whether that comes about in time depends on the seed.
pub fn read_at_a_former_leader(seed: u64, mutant: Option<Mutant>) -> Vec<Finding> {
    Sim::with_seed(seed).block_on(async move {
        let options = WorldOptions { mutant, settings: RaftSettings::for_tests(), ..WorldOptions::default() };
        let mut scenario = Scenario::begin(seed, options, &Scenario::usual_plan()).await;
        let world = scenario.world.clone();
        let Some(old) = world.leader() else { return scenario.judge().await };
        let others: Vec<u64> = world.nodes().into_iter().filter(|node| *node != old).collect();
        for other in &others {
            world.links().cut(old, *other);
            world.links().cut(*other, old);
        }
        for other in &others {
            world.crash(*other, Loss::All).await;
        }
        for other in &others {
            world.ensure_up(*other).await;
        }
        let leads = |node: &u64| world.handle(*node).is_some_and(|(_, handle)| handle.seems_to_lead());
        world.wait_until(PATIENCE, || others.iter().any(leads)).await;
        if let Some(new) = others.iter().copied().find(leads) {
            let at = |client: u32, node: u64| {
                let rng = seed::stream(seed, "door", u64::from(client));
                SimDoor::at(world.clone(), client, rng, 500, node)
            };
            let mix = crate::workload::Mix { tenants: vec!["hot".into()], users: 1, hot_percent: 100 };
            let mut session = Session::new(seed::stream(seed, "session", 0), mix);
            let (id, reserve) = scenario.new_reservation(&mut session);
            call_once(1, &mut at(1, new), &scenario.recorder, id.clone(), reserve).await;
            // Calls that return and begin in the same instant count as simultaneous.
            Sim::sleep(Duration::from_millis(1)).await;
            call_once(2, &mut at(2, old), &scenario.recorder, id, Call::Get).await;
        }
        world.links().mend();
        scenario.judge().await
    })
}
