//! Torments a cluster of real node processes and judges what happened.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use jepsen_like_tests::report;
use jepsen_like_tests::summary::Verdict;
use jepsen_like_tests::torment::{Options, Run, run};

/// Starts node processes, loads them, kills them, and judges what the clients saw.
#[derive(Parser)]
#[command(name = "torment")]
struct Args {
    /// The seed of the faults and of the clients' calls; drawn if it is not given.
    #[arg(long)]
    seed: Option<u64>,
    /// How long load and faults last.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The same in minutes; over --seconds.
    #[arg(long)]
    minutes: Option<u64>,
    /// Node processes.
    #[arg(long, default_value_t = 3)]
    nodes: u64,
    /// Clients at the same time.
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// Fewer acknowledged operations a second before the first fault make the run void.
    #[arg(long, default_value_t = 100)]
    rate_min: u64,
    /// Where data, logs and the history go; a temporary directory, removed after a pass, if it is not given.
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Writes a page with the operations over time.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Prints one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("torment: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(torment(&args)) {
        Ok(Verdict::Pass) => ExitCode::SUCCESS,
        Ok(Verdict::Inconclusive | Verdict::Violation) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torment: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn torment(args: &Args) -> Result<Verdict, Box<dyn std::error::Error>> {
    let temporary = match &args.directory {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("torment-").tempdir()?),
    };
    let directory = match (&args.directory, &temporary) {
        (Some(directory), _) => directory.clone(),
        (None, Some(temporary)) => temporary.path().to_path_buf(),
        (None, None) => PathBuf::from("."),
    };
    let options = Options {
        seed: args.seed.unwrap_or_else(drawn_seed),
        seconds: args.minutes.map_or(args.seconds, |minutes| minutes * 60),
        nodes: args.nodes,
        clients: args.clients,
        directory,
        rate_min: args.rate_min,
    };
    let command = format!(
        "cargo run --release --bin torment -- --seed {} --seconds {} --nodes {} --clients {}",
        options.seed, options.seconds, options.nodes, options.clients
    );
    eprintln!(
        "torment: seed {}, {} s, files in {}",
        options.seed,
        options.seconds,
        options.directory.display()
    );
    let run = run(&options).await?;
    if let Some(path) = &args.html {
        std::fs::write(path, report::html(&run, &command))?;
    }
    if args.json {
        println!("{}", serde_json::to_string(&run.summary)?);
    } else {
        show(&run, &command);
    }
    if let Some(temporary) = temporary
        && run.summary.verdict != Verdict::Pass
    {
        eprintln!("torment: the files are kept in {}", temporary.keep().display());
    }
    Ok(run.summary.verdict)
}

fn drawn_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

fn show(run: &Run, command: &str) {
    let summary = &run.summary;
    println!("{}: {} operations {:?}", summary.verdict.as_str(), summary.operations, summary.outcomes);
    println!("  before the first fault {} acknowledged/s", run.rate_before);
    println!("  faults {:?}", summary.faults);
    let away = summary.unavailable_ms;
    println!("  recovery p50 {} ms, p99 {} ms, max {} ms", away.p50, away.p99, away.max);
    for finding in &summary.findings {
        println!("  {finding}");
    }
    println!("  seed {}; reproduce: {command}", summary.seed);
}
