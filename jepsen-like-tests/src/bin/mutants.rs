//! Plants one deliberate bug after the other and plays interleavings until it is found. Fails if one survives.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget};
use jepsen_like_tests::interleave::Kind;
use jepsen_like_tests::interleave::mutants::{Caught, MUTANTS, Mutant, hunt};
use jepsen_like_tests::interleave::plans::FAMILIES;

/// Plants bugs and sees that they are found.
#[derive(Parser)]
#[command(name = "mutants")]
struct Args {
    /// The seed of the worlds.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Worlds after which a mutant counts as surviving.
    #[arg(long, default_value_t = 30_000)]
    most: u64,
    /// Worlds after the first that fails, to see which other checkers notice.
    #[arg(long, default_value_t = 150)]
    more: u64,
    /// Only these.
    #[arg(long)]
    only: Vec<String>,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(name) = args.only.iter().find(|name| MUTANTS.iter().all(|mutant| mutant.name != **name)) {
        eprintln!(
            "mutants: there is no mutant {name:?}; without --only all are planted, and the table names them"
        );
        return ExitCode::from(2);
    }
    LazyLock::force(&FAMILIES);
    let chosen: Vec<_> = MUTANTS
        .iter()
        .filter(|mutant| args.only.is_empty() || args.only.iter().any(|name| name == mutant.name))
        .collect();
    let bar = ProgressBar::with_draw_target(Some(chosen.len() as u64), ProgressDrawTarget::stderr());
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Caught)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                while let Some((at, mutant)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    chosen.get(at).map(|mutant| (at, mutant))
                } {
                    let caught = hunt(mutant.name, args.seed, args.most, args.more);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, caught));
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    println!("| mutant | what it breaks | caught by | in world | also noticed by |");
    println!("| --- | --- | --- | --- | --- |");
    let mut survivors = 0;
    for (at, caught) in &results {
        survivors += usize::from(caught.first.is_none());
        println!("{}", row(chosen[*at], caught));
    }
    let outside = results.iter().filter(|(_, caught)| seen_from_outside(caught)).count();
    println!(
        "\n{} mutants, {survivors} survive; {outside} are seen by a checker outside the book",
        results.len()
    );
    if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(mutant: &Mutant, caught: &Caught) -> String {
    let Some((number, found)) = &caught.first else {
        return format!("| `{}` | {} | **nobody** | | |", mutant.name, mutant.breaks);
    };
    let others: Vec<_> = caught
        .by_kind
        .iter()
        .filter(|(kind, _)| *kind != found.kind)
        .map(|(kind, _)| format!("`{}`", kind.as_str()))
        .collect();
    format!(
        "| `{}` | {} | `{}` | {number} | {} |",
        mutant.name,
        mutant.breaks,
        found.kind.as_str(),
        others.join(", ")
    )
}

fn seen_from_outside(caught: &Caught) -> bool {
    caught.by_kind.iter().any(|(kind, _)| *kind != Kind::Assertion)
}
