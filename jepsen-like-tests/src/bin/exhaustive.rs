//! Every order of four clients with three steps each, for every script.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use jepsen_like_tests::exhaustive::{Explored, Script, all, explore};
use jepsen_like_tests::interleave::parked::guarded;

/// Follows every order of the steps of every script.
#[derive(Parser)]
#[command(name = "exhaustive")]
struct Args {
    /// Only scripts whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let began = Instant::now();
    let names: Vec<_> =
        all().iter().map(|script| script.name).filter(|name| name.contains(&args.only)).collect();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Explored)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..args.threads.max(1) {
            scope.spawn(|| {
                while let Some((at, name)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    names.get(at).map(|name| (at, *name))
                } {
                    let explored = explore_by(name);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((at, explored));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    let mut failed = 0;
    for (at, explored) in &results {
        println!("{:<60}{:>8} orders {:>7} states", names[*at], explored.orders, explored.states);
        for failure in &explored.failures {
            println!("  {failure}");
        }
        failed += usize::from(!explored.failures.is_empty());
    }
    let orders: u64 = results.iter().map(|(_, explored)| explored.orders).sum();
    println!(
        "{}: {} scripts, {orders} orders, {failed} fail, {:.1} s",
        if failed == 0 { "pass" } else { "violation" },
        results.len(),
        began.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One script, on a thread of its own where the book may stop itself.
fn explore_by(name: &'static str) -> Explored {
    let explored = guarded(move || {
        let scripts: Vec<Script> = all();
        scripts.iter().find(|script| script.name == name).map(explore).unwrap_or_default()
    });
    explored.unwrap_or_else(|said| Explored { failures: vec![said], ..Explored::default() })
}
