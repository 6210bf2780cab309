//! Load on etcd for a comparison: reserve + settle pairs by compare-and-swap.
//!
//! Run it by `scripts/bench-against-etcd`, which starts the etcd members. A pair is two transactions: the
//! first moves an amount from available to reserved on the account and writes the reservation, the second
//! settles both. At the end the accounts' sums must agree with what the clients counted.

mod account;
mod kv;
mod pair;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;

use kv::Kv;
use pair::{ACTUAL, Book, Failure, Mode};

/// Drives reserve + settle pairs at etcd and prints one line of JSON.
#[derive(Parser)]
struct Args {
    /// etcd members, for example http://127.0.0.1:2379,http://127.0.0.1:2380
    #[arg(long, value_delimiter = ',', required = true)]
    endpoints: Vec<String>,
    /// Accounts, picked evenly.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    accounts: u32,
    /// Clients at the same time, each with one pair under way.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// Connections to each member that is used.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    connections: u32,
    /// Seconds of load that count; one more before them warms up.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// How a client learns the account's revision.
    #[arg(long, value_enum, default_value_t = Mode::Read)]
    mode: Mode,
    /// Sends everything to the leader instead of spreading over the members.
    #[arg(long)]
    leader_only: bool,
    /// Only writes the accounts, to see whether the cluster serves.
    #[arg(long)]
    only_open: bool,
}

/// What one client saw.
struct Tally {
    pairs: u64,
    conflicts: u64,
    /// Pairs done outside the counted seconds.
    uncounted: u64,
    errors: BTreeMap<String, u64>,
    latency_us: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self, String> {
        let latency_us = Histogram::new_with_bounds(1, 60_000_000, 3).map_err(|e| e.to_string())?;
        Ok(Tally { pairs: 0, conflicts: 0, uncounted: 0, errors: BTreeMap::new(), latency_us })
    }
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match run(Args::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("etcd_pairs: {problem}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), String> {
    let connections = connect(&args).await?;
    let book = Arc::new(Book::new(args.mode, args.accounts as usize));
    book.open(&connections[0]).await.map_err(|e| format!("cannot write the accounts: {e:?}"))?;
    if args.only_open {
        return Ok(());
    }
    for kv in &connections {
        book.wait_until_applied(kv).await.map_err(|e| format!("cannot read the accounts: {e:?}"))?;
    }

    let count_from = Instant::now() + Duration::from_secs(1);
    let until = count_from + Duration::from_secs(args.seconds);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..args.clients as usize {
        let kv = connections[client % connections.len()].clone();
        let book = book.clone();
        let accounts = args.accounts as usize;
        clients.spawn(async move { drive(&book, &kv, accounts, count_from, until).await });
    }
    let mut total = Tally::new()?;
    while let Some(ended) = clients.join_next().await {
        let tally = ended.map_err(|e| format!("a client stopped: {e}"))??;
        total.pairs += tally.pairs;
        total.conflicts += tally.conflicts;
        total.uncounted += tally.uncounted;
        total.latency_us.add(&tally.latency_us).map_err(|e| e.to_string())?;
        for (kind, count) in tally.errors {
            *total.errors.entry(kind).or_default() += count;
        }
    }
    check(&book, &connections[0], &total).await?;
    print(&args, &total);
    Ok(())
}

async fn connect(args: &Args) -> Result<Vec<Kv>, String> {
    let mut connections = Vec::new();
    for endpoint in &args.endpoints {
        let kv = Kv::connect(endpoint).await?;
        let status = kv.status().await.map_err(|e| format!("{endpoint}: {e}"))?;
        let leads = status.header.is_some_and(|header| header.member_id == status.leader);
        if args.leader_only && !leads {
            continue;
        }
        connections.push(kv);
        for _ in 1..args.connections {
            connections.push(Kv::connect(endpoint).await?);
        }
    }
    if connections.is_empty() {
        return Err("none of the endpoints is the leader".into());
    }
    Ok(connections)
}

async fn drive(
    book: &Book,
    kv: &Kv,
    accounts: usize,
    count_from: Instant,
    until: Instant,
) -> Result<Tally, String> {
    let mut tally = Tally::new()?;
    loop {
        let begun = Instant::now();
        if begun >= until {
            return Ok(tally);
        }
        let outcome = book.pair(kv, rand::random_range(0..accounts), rand::random()).await;
        let counts = begun >= count_from && Instant::now() <= until;
        match outcome {
            Ok(conflicts) if counts => {
                tally.pairs += 1;
                tally.conflicts += conflicts;
                tally.latency_us.saturating_record(begun.elapsed().as_micros() as u64);
            }
            Ok(_) => tally.uncounted += 1,
            Err(Failure::Wrong(what)) => return Err(format!("etcd holds what was never written: {what}")),
            Err(Failure::Status(code)) => {
                *tally.errors.entry(format!("{code:?}")).or_default() += 1;
                // A refused connection answers at once: without a pause this loop would only spin.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// A pair that failed may have been done in part, so the sums are exact only without errors.
async fn check(book: &Book, kv: &Kv, total: &Tally) -> Result<(), String> {
    let (reserved, spent) = book.sums(kv).await.map_err(|e| format!("cannot read the accounts: {e:?}"))?;
    let expected = (total.pairs + total.uncounted) * ACTUAL;
    if total.errors.is_empty() && (reserved, spent) != (0, expected) {
        return Err(format!("the accounts show {reserved} reserved and {spent} spent, not 0 and {expected}"));
    }
    Ok(())
}

fn print(args: &Args, total: &Tally) {
    let pairs_per_s = total.pairs as f64 / args.seconds as f64;
    let quantile_ms = |q: f64| total.latency_us.value_at_quantile(q) as f64 / 1000.0;
    let line = serde_json::json!({
        "accounts": args.accounts,
        "clients": args.clients,
        "connections": args.connections,
        "mode": format!("{:?}", args.mode).to_lowercase(),
        "leader_only": args.leader_only,
        "seconds": args.seconds,
        "pairs_per_s": pairs_per_s.round(),
        "ops_per_s": (pairs_per_s * 2.0).round(),
        "conflicts_per_pair": total.conflicts as f64 / total.pairs.max(1) as f64,
        "p50_ms": quantile_ms(0.50),
        "p99_ms": quantile_ms(0.99),
        "p999_ms": quantile_ms(0.999),
        "errors": total.errors,
    });
    println!("{line}");
}
