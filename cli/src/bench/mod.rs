//! Load on a cluster, and what it took.

mod cpu;
mod load;
mod report;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_client::Client;
use holdfast_ledger::ids::{RouteName, TenantId};
use indicatif::{ProgressBar, ProgressStyle};

pub use cpu::Process;
pub use load::Mix;
pub use report::Report;

use self::load::Load;
use crate::calls;
use crate::failure::{Failure, Outcome};

/// Nothing is counted before: connections are made, accounts opened, caches warmed.
const WARM_UP: Duration = Duration::from_secs(2);
/// Deadline of each command: longer than an election, so that one shows as latency and not as an error.
const COMMAND_DEADLINE: Duration = Duration::from_secs(10);
/// How often the progress bar moves.
const PROGRESS_STEP: Duration = Duration::from_millis(100);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Client addresses of the cluster.
    pub endpoints: Vec<String>,
    /// What a round consists of.
    pub mix: Mix,
    /// How many accounts it goes to.
    pub accounts: u32,
    /// Callers at the same time.
    pub clients: u32,
    /// Callers besides them who are only refused.
    pub storm: u32,
    /// Clients of the library, each with its own stream.
    pub gateways: u32,
    /// Most commands in one message of a stream.
    pub batch: usize,
    /// Measured time.
    pub seconds: u64,
    /// The route that is asked for.
    pub route: RouteName,
    /// Names of the tenants begin so.
    pub tenant_prefix: String,
    /// Local processes whose CPU time is measured, beside our own.
    pub processes: Vec<Process>,
}

/// Puts the load on the cluster and measures.
pub async fn measure(plan: &Plan) -> Outcome<Report> {
    let accounts = if plan.mix == Mix::Hot { 1 } else { plan.accounts };
    let clients = connect(plan).await?;
    let begun = Instant::now();
    let count_from = begun + WARM_UP;
    let seconds = Duration::from_secs(plan.seconds);
    let load = Load {
        mix: plan.mix,
        tenants: tenants(&plan.tenant_prefix, accounts)?,
        route: plan.route.clone(),
        callers: plan.clients,
        storm: plan.storm,
        storm_tenant: tenant(&plan.tenant_prefix, "storm")?,
        count_from,
        until: count_from + seconds,
    };
    let mut processes = plan.processes.clone();
    processes.push(Process { name: "load".into(), pid: std::process::id() });

    let running = tokio::spawn({
        let (load, clients) = (load.clone(), clients.clone());
        async move { load::run(&load, &clients).await }
    });
    tokio::time::sleep_until(load.count_from.into()).await;
    let before = cpu::sample(&processes);
    show_progress(&load, seconds).await;
    let after = cpu::sample(&processes);
    let tally = running.await.map_err(|e| Failure::failed(format!("the load stopped: {e}")))??;
    for client in clients {
        client.close().await;
    }
    Ok(Report {
        mix: plan.mix.name(),
        accounts,
        clients: plan.clients,
        storm: plan.storm,
        gateways: plan.gateways,
        batch: plan.batch,
        seconds: seconds.as_secs_f64(),
        cpu_us_per_op: cpu::per_operation(&before, &after, tally.operations),
        tally,
    })
}

async fn connect(plan: &Plan) -> Outcome<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..plan.gateways {
        let builder = Client::builder(&plan.endpoints).deadline(COMMAND_DEADLINE).batch_max(plan.batch);
        clients.push(builder.connect().await.map_err(|error| calls::failure("connect", error))?);
    }
    Ok(clients)
}

fn tenants(prefix: &str, accounts: u32) -> Outcome<Arc<[TenantId]>> {
    (0..accounts)
        .map(|number| tenant(prefix, &number.to_string()))
        .collect::<Outcome<Vec<_>>>()
        .map(Arc::from)
}

fn tenant(prefix: &str, name: &str) -> Outcome<TenantId> {
    let tenant = format!("{prefix}{name}").parse::<TenantId>();
    tenant.map_err(|e| Failure::usage(format!("--tenant-prefix {prefix:?} {e}")))
}

/// Returns when the measured time is up. The bar hides itself where standard error is no terminal.
async fn show_progress(load: &Load, seconds: Duration) {
    let bar = ProgressBar::new(u64::try_from(seconds.as_millis()).unwrap_or(u64::MAX));
    if let Ok(style) = ProgressStyle::with_template("measuring {wide_bar} {elapsed}") {
        bar.set_style(style);
    }
    while Instant::now() < load.until {
        let next = (Instant::now() + PROGRESS_STEP).min(load.until);
        tokio::time::sleep_until(next.into()).await;
        let done = load.count_from.elapsed();
        bar.set_position(u64::try_from(done.as_millis()).unwrap_or(u64::MAX));
    }
    bar.finish_and_clear();
}
