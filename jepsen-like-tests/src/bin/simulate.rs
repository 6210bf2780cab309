//! Runs whole clusters on virtual time, one seed after the other, and judges them.

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use jepsen_like_tests::sim::{
    Mutant, SimOptions, SimRun, acknowledged_and_lost, acknowledged_but_replaced, read_at_a_former_leader,
    simulate,
};
use jepsen_like_tests::summary::Verdict;
use serde::Serialize;

/// Simulates clusters with faults and judges what happened.
#[derive(Parser)]
#[command(name = "simulate")]
struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// How long load and faults last in each, virtual seconds.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Clients at the same time.
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Builds a bug in; the command then succeeds if the bug is caught.
    #[arg(long)]
    mutant: Option<MutantName>,
    /// Prints one JSON object on stdout.
    #[arg(long)]
    json: bool,
    /// Shows each seed's faults and what the nodes say.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum MutantName {
    /// The log acknowledges before the sync.
    AckBeforeSync,
    /// A restarted leader resumes its term.
    LeaderRestore,
    /// Linearizable reads are answered by the leader's lease.
    LeaseRead,
}

#[derive(Serialize)]
struct Report {
    verdict: Verdict,
    operations: u64,
    faults: std::collections::BTreeMap<String, u64>,
    unavailable_ms: jepsen_like_tests::summary::Percentiles,
    seed: u64,
    seeds: u64,
    seeds_failed: Vec<u64>,
    findings: Vec<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.verbose {
        tracing_subscriber::fmt()
            .with_env_filter(
                tracing_subscriber::EnvFilter::try_from_default_env()
                    .unwrap_or_else(|_| "warn,jepsen_like_tests=info".into()),
            )
            .with_writer(std::io::stderr)
            .without_time()
            .init();
    }
    if let Some(mutant) = args.mutant {
        return directed(&args, mutant);
    }
    let report = run_seeds(&args);
    if args.json {
        match serde_json::to_string(&report) {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("simulate: {error}"),
        }
    } else {
        println!(
            "{}: {} seeds from {}, {} operations, seeds that failed: {:?}",
            report.verdict.as_str(),
            report.seeds,
            report.seed,
            report.operations,
            report.seeds_failed
        );
        for finding in &report.findings {
            println!("  {finding}");
        }
    }
    exit(&args, report.verdict)
}

/// With a bug built in, catching it is success.
fn exit(args: &Args, verdict: Verdict) -> ExitCode {
    let expected = if args.mutant.is_some() { Verdict::Violation } else { Verdict::Pass };
    if verdict == expected { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_seeds(args: &Args) -> Report {
    let mut report = Report {
        verdict: Verdict::Pass,
        operations: 0,
        faults: Default::default(),
        unavailable_ms: Default::default(),
        seed: args.seed,
        seeds: args.seeds,
        seeds_failed: vec![],
        findings: vec![],
    };
    let mut outages = Vec::new();
    for seed in args.seed..args.seed + args.seeds {
        let began = Instant::now();
        let options = SimOptions { seconds: args.seconds, clients: args.clients, ..SimOptions::of(seed) };
        // A panic inside a run (an assertion of the book, say) must name its seed.
        std::panic::set_hook(Box::new(move |panic| {
            eprintln!("{panic}\nreproduce: simulate --seed {seed} --seeds 1 --verbose");
        }));
        let run = simulate(&options);
        if !args.json {
            show(&run, began);
        }
        report.verdict = report.verdict.max(run.summary.verdict);
        report.operations += run.summary.operations;
        for (kind, count) in &run.summary.faults {
            *report.faults.entry(kind.clone()).or_default() += count;
        }
        outages.extend(jepsen_like_tests::recovery::recovery_ms(
            &run.faults.outages_us(),
            &run.evidence.operations,
        ));
        if run.summary.verdict != Verdict::Pass {
            report.seeds_failed.push(seed);
            report
                .findings
                .extend(run.summary.findings.into_iter().map(|text| format!("seed {seed}: {text}")));
        }
    }
    report.unavailable_ms = jepsen_like_tests::summary::Percentiles::of(outages);
    report
}

fn show(run: &SimRun, began: Instant) {
    let summary = &run.summary;
    println!(
        "seed {}: {} ({} operations {:?}, {} faults, unavailable p50 {} ms, max {} ms, trace {:016x}, {:.2} s)",
        summary.seed,
        summary.verdict.as_str(),
        summary.operations,
        summary.outcomes,
        run.faults.faults.len(),
        summary.unavailable_ms.p50,
        summary.unavailable_ms.max,
        run.trace,
        began.elapsed().as_secs_f64(),
    );
    if summary.verdict != Verdict::Pass {
        println!("  reproduce: simulate --seed {} --seeds 1 --verbose", summary.seed);
    }
}

/// Random faults find these bugs too rarely for a gate; each has a scenario in which it must show.
fn directed(args: &Args, mutant: MutantName) -> ExitCode {
    let (what, findings) = match mutant {
        MutantName::AckBeforeSync => (
            "all nodes lose power after acknowledgements",
            acknowledged_and_lost(args.seed, Some(Mutant::AckBeforeSync)),
        ),
        MutantName::LeaderRestore => (
            "a leader comes back after losing power",
            acknowledged_but_replaced(args.seed, Some(Mutant::LeaderRestore)),
        ),
        // Not every seed elects in time.
        MutantName::LeaseRead => (
            "what a new leader acknowledged is read at the old one",
            (args.seed..args.seed + args.seeds)
                .map(|seed| read_at_a_former_leader(seed, Some(Mutant::LeaseRead)))
                .find(|findings| !findings.is_empty())
                .unwrap_or_default(),
        ),
    };
    let verdict = Verdict::of(&findings);
    if args.json {
        println!("{{\"verdict\":\"{}\",\"seed\":{}}}", verdict.as_str(), args.seed);
    } else {
        println!("{}: {what}, seed {}", verdict.as_str(), args.seed);
        for finding in findings {
            println!("  {}: {}", finding.check, finding.detail);
        }
    }
    exit(args, verdict)
}
