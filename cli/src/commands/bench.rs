//! `holdfast bench`: drive reservations at a cluster and measure.

use std::path::PathBuf;

use holdfast_ledger::ids::RouteName;

use crate::bench::{self, Mix, Plan, Process};
use crate::dev::{Running, StopSignal, Wanted};
use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// One account for each tenant, too large to be used up.
const BENCH_PLAN: &str = include_str!("../../../scripts/plans/bench.yaml");

/// Options of `bench`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start a cluster for it, with its own plan, and stop it afterwards. Otherwise the cluster at --endpoints
    /// must have a plan with the route, for example scripts/plans/bench.yaml
    #[arg(long)]
    dev: bool,
    /// With --dev: keep the data here [default: a temporary directory]
    #[arg(long, value_name = "DIR", requires = "dev")]
    data: Option<PathBuf>,
    /// With --dev: how many nodes
    #[arg(long, requires = "dev", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: u16,
    /// What a round consists of
    #[arg(long, value_enum, default_value_t = Mix::Pairs)]
    mix: Mix,
    /// Accounts, picked evenly; the mix hot has one
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    accounts: u32,
    /// Callers at the same time, over all gateways, each with one command under way
    #[arg(long, default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// As many callers besides, of a tenant of their own, who ask for more than there ever is and are refused
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    storm: u32,
    /// Clients of the library: the callers of one share its stream and are batched together
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    gateways: u32,
    /// Most commands in one message of a stream
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u16).range(1..=1_024))]
    batch: u16,
    /// Measured seconds; two more before them warm up
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// The route that is asked for
    #[arg(long, default_value = "bench")]
    route: RouteName,
    /// Tenants are named so, with a number behind
    #[arg(long, default_value = "bench-")]
    tenant_prefix: String,
    /// Local processes whose CPU time is measured, as PID or NAME=PID
    #[arg(long, value_delimiter = ',', value_name = "PIDS", value_parser = process)]
    pids: Vec<Process>,
}

/// Measures and reports.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let mut plan = Plan {
        endpoints: Vec::new(),
        mix: args.mix,
        accounts: args.accounts,
        clients: args.clients,
        storm: args.storm,
        gateways: args.gateways,
        batch: args.batch.into(),
        seconds: args.seconds,
        route: args.route,
        tenant_prefix: args.tenant_prefix,
        processes: args.pids,
    };
    if !args.dev {
        plan.endpoints = settings.endpoints()?;
        return report(settings, &plan).await;
    }
    let mut stop = StopSignal::listen(false)?;
    let wanted = Wanted { data: args.data, nodes: Some(args.nodes), port_base: None };
    let mut running = Running::start(&wanted, BENCH_PLAN.to_owned(), &mut stop).await?;
    plan.endpoints = running.client_addresses();
    plan.processes.extend(running.processes());
    let outcome = tokio::select! {
        outcome = report(settings, &plan) => outcome,
        death = running.fleet.death() => Err(Failure::failed(death.describe())),
        () = stop.asked() => Err(Failure::failed("stopped before the measurement was done")),
    };
    running.stop().await;
    outcome
}

async fn report(settings: &Settings, plan: &Plan) -> Outcome {
    let report = bench::measure(plan).await?;
    settings.output.show(&report.document(), || report.text())?;
    if report.tally.operations == 0 {
        let kinds: Vec<&str> = report.tally.errors.keys().copied().collect();
        return Err(Failure::failed(format!("no command succeeded; errors: {}", kinds.join(", ")))
            .advise("Does the plan in force have the route? `holdfast plan apply scripts/plans/bench.yaml` brings it."));
    }
    Ok(())
}

fn process(text: &str) -> Result<Process, String> {
    let (name, pid) = match text.split_once('=') {
        Some((name, pid)) => (name.to_owned(), pid),
        None => (format!("pid-{text}"), text),
    };
    let pid = pid.parse::<u32>().map_err(|_| format!("{pid:?} is not a process id"))?;
    Ok(Process { name, pid })
}
