//! One run: start, warm up, attack, heal, read, judge.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_client::Client;

use super::binary::{BinaryError, holdfast_binary};
use super::cluster::{Cluster, ClusterError};
use super::collect::collect;
use super::door::ClusterDoor;
use super::nemesis::{Fault, Nemesis, counts};
use super::options::{CALL_SECONDS, Options, PATIENCE_SECONDS, WARM_UP_SECONDS};
use crate::check::{self, Finding, Severity};
use crate::drive::{Recorder, call_once, drive};
use crate::evidence::Evidence;
use crate::history::{Call, HistoryError, Outcome, write_history};
use crate::recovery::recovery_ms;
use crate::seed;
use crate::summary::{Percentiles, Summary, Verdict, outcome_counts};
use crate::workload::{Mix, PlanShape, Session, document, tenant_names};

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No program.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The history could not be written.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The run's directory.
    #[error("{0}")]
    Directory(std::io::Error),
}

/// What became of a run.
pub struct Run {
    /// The line for programs.
    pub summary: Summary,
    /// Recovery time of each fault that took the service away, ms.
    pub recovery_ms: Vec<u64>,
    /// Acknowledged operations a second before the first fault.
    pub rate_before: u64,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The evidence.
    pub evidence: Evidence,
}

/// Tenants of the run: the hot one and spread ones.
const TENANTS: u32 = 64;

/// Of a hundred reservations, how many are on the hot tenant.
const HOT_PERCENT: u32 = 40;

/// Runs it. The nodes are gone when it returns; their files stay in the run's directory.
pub async fn run(options: &Options) -> Result<Run, RunError> {
    fs::create_dir_all(&options.directory).map_err(RunError::Directory)?;
    let program = holdfast_binary()?;
    let mut cluster = Cluster::lay_out(program, &options.directory, options.nodes)?;
    for node in cluster.ids() {
        cluster.start(node)?;
    }
    let client = Client::builder(cluster.endpoints())
        .deadline(Duration::from_secs(CALL_SECONDS))
        .connect_lazy()
        .map_err(ClusterError::from)?;
    let began = Instant::now();
    cluster.wait_for_leader(&client, Duration::from_secs(PATIENCE_SECONDS)).await?;

    let recorder = Recorder::default();
    let mut operator = ClusterDoor { client: client.clone(), began, actor: "torment".into() };
    let shape = PlanShape { hold_ttl_ms: 3_600_000, usage_deadline_ms: 3_600_000, slots_per_tenant: 8 };
    let publish = Call::Publish { document: document(shape) };
    let published = call_once(u32::MAX, &mut operator, &recorder, String::new(), publish).await;
    let mut mishaps = Vec::new();
    if published.outcome != Outcome::Ok {
        mishaps.push(format!("the plan was not taken: {published:?}"));
    }

    let winding_down = Arc::new(AtomicBool::new(false));
    let over = Arc::new(AtomicBool::new(false));
    let clients = spawn_clients(options, &operator, &recorder, &winding_down, &over);
    tokio::time::sleep(Duration::from_secs(WARM_UP_SECONDS)).await;
    let rate_before = acknowledged(&recorder) / WARM_UP_SECONDS;

    let until = began + Duration::from_secs(options.seconds);
    let nemesis = Nemesis::new(seed::stream(options.seed, "torment", 0), began);
    let faults = match nemesis.attack(&mut cluster, &client, until).await {
        Ok(faults) => faults,
        Err(error) => {
            mishaps.push(error.to_string());
            Vec::new()
        }
    };

    winding_down.store(true, Ordering::Relaxed);
    let patience = Instant::now() + Duration::from_secs(PATIENCE_SECONDS);
    for (client, task) in clients.into_iter().enumerate() {
        if tokio::time::timeout_at(patience.into(), task).await.is_err() {
            mishaps.push(format!("client {client} could not finish its calls after everything had healed"));
        }
    }
    over.store(true, Ordering::Relaxed);
    resolve_unknown(&mut operator, &recorder).await;
    if let Err(error) = cluster.check_alive() {
        mishaps.push(error.to_string());
    }
    let tenants = tenant_names(TENANTS);
    let evidence = collect(&cluster, &client, &tenants, recorder.take(), mishaps).await;
    client.close().await;
    drop(cluster);
    write_history(&options.directory.join("history.jsonl"), &evidence.operations)?;
    Ok(judge(options, evidence, faults, rate_before))
}

type ClientTask = tokio::task::JoinHandle<()>;

fn spawn_clients(
    options: &Options,
    operator: &ClusterDoor,
    recorder: &Recorder,
    winding_down: &Arc<AtomicBool>,
    over: &Arc<AtomicBool>,
) -> Vec<ClientTask> {
    let mix = Mix { tenants: tenant_names(TENANTS), users: 4, hot_percent: HOT_PERCENT };
    let spawn = |client: u32| {
        let rng = seed::stream(options.seed, "session", u64::from(client));
        let session = Session::new(rng, mix.clone());
        let (down, end) = (winding_down.clone(), over.clone());
        tokio::spawn(drive(
            client,
            session,
            operator.clone(),
            recorder.clone(),
            move || down.load(Ordering::Relaxed),
            move || end.load(Ordering::Relaxed),
        ))
    };
    (0..options.clients).map(spawn).collect()
}

fn acknowledged(recorder: &Recorder) -> u64 {
    recorder.read(|operations| operations.iter().filter(|op| op.outcome == Outcome::Ok).count() as u64)
}

/// Reads what became of every reservation that a call of unknown outcome was about.
async fn resolve_unknown(operator: &mut ClusterDoor, recorder: &Recorder) {
    let ids: BTreeSet<String> = recorder.read(|operations| {
        let unknown = |op: &&crate::history::Operation| op.outcome == Outcome::Unknown && !op.id.is_empty();
        operations.iter().filter(unknown).map(|op| op.id.clone()).collect()
    });
    for id in ids {
        call_once(u32::MAX, operator, recorder, id, Call::Get).await;
    }
}

fn judge(options: &Options, evidence: Evidence, faults: Vec<Fault>, rate_before: u64) -> Run {
    let mut findings = check::judge(&evidence);
    let mut inconclusive = |detail: String| {
        findings.push(Finding { check: "load", severity: Severity::Inconclusive, detail });
    };
    if rate_before < options.rate_min {
        inconclusive(format!(
            "only {rate_before} operations a second before the first fault, {} are wanted: the run is void",
            options.rate_min
        ));
    }
    if faults.is_empty() {
        inconclusive("no fault was done".into());
    }
    let outages: Vec<u64> = faults
        .iter()
        .filter(|fault| fault.kind.takes_the_service_away())
        .map(|fault| fault.from_us)
        .collect();
    let recovery = recovery_ms(&outages, &evidence.operations);
    if recovery.len() < outages.len() {
        inconclusive(format!("{} outages saw no write afterwards", outages.len() - recovery.len()));
    }
    let summary = Summary {
        verdict: Verdict::of(&findings),
        operations: evidence.operations.len() as u64,
        outcomes: outcome_counts(&evidence.operations),
        faults: counts(&faults),
        unavailable_ms: Percentiles::of(recovery.clone()),
        seed: options.seed,
        findings: findings.iter().map(|finding| format!("{}: {}", finding.check, finding.detail)).collect(),
    };
    Run { summary, recovery_ms: recovery, rate_before, faults, evidence }
}
