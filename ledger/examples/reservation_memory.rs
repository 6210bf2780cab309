//! Memory per open reservation: holds a million (or as many as the first argument says) on 1000 users with
//! three levels × two units, and prints what the live heap grew by. Then everything expires and is forgotten,
//! and it prints what is left.
//!
//! `cargo run --release -p holdfast-ledger --example reservation_memory`

mod support;

use std::error::Error;

use holdfast_ledger::command::{Command, Request};
use support::{Run, count_asked, live, request};

const ENTRY: u64 = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let count = count_asked(1_000_000)?;
    let mut run = Run::new()?;
    let requests: Vec<Request> = (0..1000).map(|user| request(user / 10, user)).collect::<Result<_, _>>()?;
    let before = live::show(&run, "empty")?;
    for first in (0..count).step_by(ENTRY as usize) {
        let commands: Vec<Command> = (first..count.min(first + ENTRY))
            .map(|number| Command::Reserve(run.reserve(requests[(number % 1000) as usize].clone())))
            .collect();
        run.apply(&commands);
    }
    let held = live::show(&run, "held")?;
    let open = run.book.counts().reserved;
    let per_reservation = held.saturating_sub(before) / (open.max(1) as usize);
    println!("{open} open reservations of six legs: {per_reservation} bytes each");

    // All expire, then all are forgotten.
    run.pass(1_061_000);
    live::show(&run, "forgotten")?;
    Ok(())
}
