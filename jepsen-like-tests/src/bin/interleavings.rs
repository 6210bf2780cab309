//! Tier 1's release gate: a million seeded interleavings of gateways, members and everything between them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jepsen_like_tests::interleave::shrink::{shrink, tape_of};
use jepsen_like_tests::interleave::{Choices, Kind, Options, Report, Script, parked, play, run};
use jepsen_like_tests::report::interleavings_html;
use serde::Serialize;
use serde_json::Value;

/// Attempts at shortening a failing script.
const SHRINK_ATTEMPTS_MAX: u32 = 2_000;
/// The same where the book stops itself, and each attempt costs a thread.
const SHRINK_STOPPED_MAX: u32 = 300;

/// Plays worlds of gateways and members over the pure book, and judges them.
#[derive(Parser)]
#[command(name = "interleavings")]
struct Args {
    /// How many worlds.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// The seed of all of them.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; the result does not depend on them.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Plays only the world with this number, and says what happens in it.
    #[arg(long)]
    only: Option<u64>,
    /// Writes the result as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes a page with plots.
    #[arg(long)]
    html: Option<PathBuf>,
}

/// The result, as programs read it.
#[derive(Serialize)]
struct Json {
    count: u64,
    seed: u64,
    seconds: f64,
    violations: u64,
    by_kind: BTreeMap<&'static str, Value>,
    /// `null`: there is no scheduler in this build.
    fairness_error_max: Option<f64>,
    unknown_p99_s: f64,
    counts: jepsen_like_tests::interleave::world::Counts,
    trace: String,
    failing: Vec<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(number) = args.only {
        return show_one(args.seed, number);
    }
    let bar = ProgressBar::with_draw_target(Some(args.count), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} {per_sec} {eta} left") {
        bar.set_style(style);
    }
    let options = Options { seed: args.seed, count: args.count, threads: args.threads, until_found: false };
    let report = run(&options, |done| bar.set_position(done));
    bar.finish_and_clear();
    show(&report, args.seed);
    let first = report.failing.first();
    let command = match first {
        Some(failing) => format!("{} --seed {} --only {}", COMMAND, args.seed, failing.number),
        None => format!("{} --seed {} --count {}", COMMAND, args.seed, args.count),
    };
    let script = first.map(|failing| explain(args.seed, failing.number, failing.found[0].kind));
    if first.is_some() {
        println!("reproduce: {command}");
    }
    let script = script.unwrap_or_default();
    let mut failed = report.violations() > 0 || report.played < args.count;
    for (path, text) in [
        (&args.json, json(&report, args.seed)),
        (&args.html, interleavings_html(&report, args.seed, &command, &script)),
    ] {
        if let Some(path) = path
            && let Err(error) = std::fs::write(path, text)
        {
            eprintln!("interleavings: {}: {error}", path.display());
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

const COMMAND: &str = "cargo run --release -p jepsen-like-tests --bin interleavings --";

fn show(report: &Report, seed: u64) {
    let verdict = if report.violations() == 0 { "pass" } else { "violation" };
    println!(
        "{verdict}: {} worlds of seed {seed} in {:.1} s, {:.0} a second, trace {:016x}",
        report.played,
        report.seconds,
        report.played as f64 / report.seconds.max(0.001),
        report.trace
    );
    for kind in Kind::ALL {
        println!("  {:<22}{:>12}", kind.as_str(), report.by_kind.get(&kind).copied().unwrap_or(0));
    }
    println!("  {:<22}{:>12}", "double_shard_use", "not in this build");
    println!("  {:<22}{:>12}", "fairness", "not in this build");
    let unknown = &report.unknown_ms;
    println!(
        "  {} outcomes were unknown for a while: p50 {} ms, p99 {} ms, max {} ms of the worlds' time, which jumps by up to a day",
        unknown.len(),
        unknown.value_at_quantile(0.5),
        unknown.value_at_quantile(0.99),
        unknown.max()
    );
    println!("  {:?}", report.counts);
    for failing in &report.failing {
        for found in &failing.found {
            println!("  world {}: {found}", failing.number);
        }
    }
}

/// Shortens a failing world and says what happens in what is left of it.
fn explain(seed: u64, number: u64, kind: Kind) -> Vec<String> {
    let attempts = if kind == Kind::Assertion { SHRINK_STOPPED_MAX } else { SHRINK_ATTEMPTS_MAX };
    let tape = shrink(tape_of(seed, number), kind, attempts);
    let (mut script, found) = tell(Choices::replay(tape));
    script.extend(found.iter().map(|found| format!("=> {found}")));
    println!("the shortest failing script of world {number}:");
    for line in &script {
        println!("  {line}");
    }
    script
}

/// What happens, as far as it goes, and what is found.
fn tell(mut choices: Choices) -> (Vec<String>, Vec<String>) {
    let script = Script::default();
    let lines = script.clone();
    let found = parked::guarded(move || play(&mut choices, Some(script)).found);
    let found = match found {
        Ok(found) => found.iter().map(ToString::to_string).collect(),
        Err(said) => vec![format!("the book stops itself: {said}")],
    };
    (lines.lines(), found)
}

fn show_one(seed: u64, number: u64) -> ExitCode {
    let (script, found) = tell(Choices::seeded(seed, number));
    for line in script {
        println!("{line}");
    }
    for found in &found {
        println!("=> {found}");
    }
    if found.is_empty() {
        println!("pass: world {number} of seed {seed}");
        return ExitCode::SUCCESS;
    }
    ExitCode::FAILURE
}

fn json(report: &Report, seed: u64) -> String {
    let of = |kind: &Kind| Value::from(report.by_kind.get(kind).copied().unwrap_or(0));
    let mut by_kind: BTreeMap<_, _> = Kind::ALL.iter().map(|kind| (kind.as_str(), of(kind))).collect();
    by_kind.insert("double_shard_use", Value::from("not in this build"));
    by_kind.insert("fairness", Value::from("not in this build"));
    let json = Json {
        count: report.played,
        seed,
        seconds: report.seconds,
        violations: report.violations(),
        by_kind,
        fairness_error_max: None,
        unknown_p99_s: report.unknown_ms.value_at_quantile(0.99) as f64 / 1000.0,
        counts: report.counts,
        trace: format!("{:016x}", report.trace),
        failing: report.failing.iter().map(|failing| failing.number).collect(),
    };
    serde_json::to_string(&json).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
}
