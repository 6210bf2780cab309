//! One run from one seed: load, faults, healing, judgement.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use openraft_rt::AsyncRuntime;

use super::door::SimDoor;
use super::faults::FaultLog;
use super::nemesis::{Strength, attack};
use super::world::{Mutant, World, WorldOptions};
use super::{Sim, trace};
use crate::check::{self, Finding};
use crate::drive::{Recorder, call_once, drive};
use crate::evidence::{Evidence, FinalUsage};
use crate::history::{Call, Outcome};
use crate::recovery::recovery_ms;
use crate::seed;
use crate::summary::{Percentiles, Summary, Verdict, outcome_counts};
use crate::workload::{Mix, PlanShape, Session, document, limit_names, tenant_names};

/// What a run is told.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// The seed of everything.
    pub seed: u64,
    /// How long load and faults last, virtual seconds.
    pub seconds: u64,
    /// Clients at the same time.
    pub clients: u32,
    /// A deliberate bug.
    pub mutant: Option<Mutant>,
    /// Whether the runtime's own schedule is part of the trace hash. It costs about half as much again.
    pub trace_schedule: bool,
}

impl SimOptions {
    /// A usual run of this seed.
    pub fn of(seed: u64) -> SimOptions {
        SimOptions { seed, seconds: 20, clients: 4, mutant: None, trace_schedule: false }
    }
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct SimRun {
    /// The line for programs.
    pub summary: Summary,
    /// What was found.
    pub findings: Vec<Finding>,
    /// The trace as a number.
    pub trace: u64,
    /// Faults with their times.
    pub faults: FaultLog,
    /// The evidence itself.
    pub evidence: Evidence,
}

/// One call, with its retries, gives up after this.
const CALL_PATIENCE_MS: u64 = 5_000;

/// The whole cluster has this long to become ready, to finish the clients' calls, to converge.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes one run. The same options give the same result.
pub fn simulate(options: &SimOptions) -> SimRun {
    let mut runtime = Sim::with_seed(options.seed);
    runtime.record_trace(options.trace_schedule);
    let (evidence, faults) = runtime.block_on(run(options.clone()));
    let schedule = runtime.take_trace();
    let trace = trace::hash(&schedule, &evidence.operations, &evidence.applied);
    let mut findings = check::judge(&evidence);
    if evidence.operations.iter().all(|operation| operation.outcome != Outcome::Ok) {
        findings.push(Finding {
            check: "load",
            severity: check::Severity::Inconclusive,
            detail: "nothing was acknowledged at all".into(),
        });
    }
    let summary = Summary {
        verdict: Verdict::of(&findings),
        operations: evidence.operations.len() as u64,
        outcomes: outcome_counts(&evidence.operations),
        faults: faults.counts(),
        unavailable_ms: Percentiles::of(recovery_ms(&faults.outages_us(), &evidence.operations)),
        seed: options.seed,
        findings: findings.iter().map(|finding| format!("{}: {}", finding.check, finding.detail)).collect(),
    };
    SimRun { summary, findings, trace, faults, evidence }
}

async fn run(options: SimOptions) -> (Evidence, FaultLog) {
    let seed = options.seed;
    let mut rng = seed::stream(seed, "run", 0);
    let world = World::new(seed, WorldOptions { mutant: options.mutant, ..WorldOptions::default() });
    for node in world.nodes() {
        world.ensure_up(node).await;
    }
    if !world.wait_until(PATIENCE, || world.leader().is_some()).await {
        world.mishap("no leader was elected at the start");
        return (collect(&world, &Recorder::default()), FaultLog::default());
    }
    let recorder = Recorder::default();
    let shape = PlanShape { hold_ttl_ms: 4_000, usage_deadline_ms: 8_000, slots_per_tenant: 2 };
    let mut operator = door(&world, seed, u32::MAX);
    let publish = Call::Publish { document: document(shape) };
    call_once(u32::MAX, &mut operator, &recorder, String::new(), publish).await;

    let winding_down = Arc::new(AtomicBool::new(false));
    let over = Arc::new(AtomicBool::new(false));
    let mix = Mix { tenants: tenant_names(4), users: 2, hot_percent: 60 };
    let mut clients = Vec::new();
    for client in 0..options.clients {
        let session = Session::new(seed::stream(seed, "session", u64::from(client)), mix.clone());
        let (down, end) = (winding_down.clone(), over.clone());
        clients.push(Sim::spawn(drive(
            client,
            session,
            door(&world, seed, client),
            recorder.clone(),
            move || down.load(Ordering::Relaxed),
            move || end.load(Ordering::Relaxed),
        )));
    }
    let strength = Strength::draw(&mut rng);
    let until_us = world.now_us() + options.seconds * 1_000_000;
    let faults = attack(&world, seed::stream(seed, "faults", 0), strength, until_us).await;

    // Healing: everything comes back, and must serve and converge.
    world.links().mend();
    for node in world.nodes() {
        world.clock(node).set_offset_ms(0);
        world.ensure_up(node).await;
    }
    winding_down.store(true, Ordering::Relaxed);
    for (client, task) in clients.into_iter().enumerate() {
        if Sim::timeout(PATIENCE, task).await.is_err() {
            world.mishap(format!("client {client} could not finish its calls after everything had healed"));
        }
    }
    over.store(true, Ordering::Relaxed);
    read_everything(&world, &mut operator, &recorder).await;
    (collect(&world, &recorder), faults)
}

fn door(world: &World, seed: u64, client: u32) -> SimDoor {
    SimDoor::new(world.clone(), client, seed::stream(seed, "door", u64::from(client)), CALL_PATIENCE_MS)
}

/// Reads every reservation once more, and waits until all nodes have applied the same.
async fn read_everything(world: &World, operator: &mut SimDoor, recorder: &Recorder) {
    let ids: BTreeSet<String> = recorder.read(|operations| {
        operations.iter().filter(|op| !op.id.is_empty()).map(|op| op.id.clone()).collect()
    });
    for id in ids {
        let read = call_once(u32::MAX, operator, recorder, id, Call::Get).await;
        if !matches!(read.outcome, Outcome::Ok | Outcome::Rejected) {
            world.mishap(format!("{} failed after everything had healed: {:?}", read.describe(), read.code));
            break;
        }
    }
    if !world.wait_until(PATIENCE, || world.has_converged()).await {
        let seen: Vec<String> = world
            .nodes()
            .iter()
            .map(|node| {
                format!("{node}: {:?}", world.handle(*node).map(|(_, handle)| handle.status().applied_index))
            })
            .collect();
        world.mishap(format!("the nodes did not converge after everything had healed: {}", seen.join(", ")));
    }
}

fn collect(world: &World, recorder: &Recorder) -> Evidence {
    let mishaps = world.mishaps();
    Evidence {
        operations: recorder.take(),
        applied: world.applied(),
        leaders: world.leaders_seen(),
        audits: world.audits(),
        usage: usage(world),
        mishaps,
    }
}

/// What the tenants' quotas read at the end, on the node that leads.
fn usage(world: &World) -> Vec<FinalUsage> {
    let Some((_, handle)) = world.leader().and_then(|leader| world.handle(leader)) else { return Vec::new() };
    handle.replica().read(|book| {
        let mut lines = Vec::new();
        for tenant in tenant_names(4) {
            let Ok(id) = tenant.parse() else { continue };
            for line in book.quota(&id, None, book.clock_ms()) {
                if line.limit.as_str() == limit_names::TENANT_TOKENS {
                    lines.push(FinalUsage {
                        tenant: tenant.clone(),
                        limit: line.limit.to_string(),
                        unit: line.unit.to_string(),
                        used: line.used,
                        held: line.held,
                    });
                }
            }
        }
        lines
    })
}
