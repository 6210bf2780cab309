//! Memory per open reservation: holds a million (or as many as the first argument says) on 1000 users with
//! three levels × two units, and prints what the process grew by. Then everything expires and is forgotten,
//! and it prints what is left.
//!
//! `cargo run --release -p holdfast-ledger --example reservation_memory`

mod support;

use std::error::Error;
use std::sync::Arc;

use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Request, Reserve};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId, Unit};
use support::{PLAN, resident_bytes};

const ENTRY: u64 = 1024;

fn request(user: u64) -> Result<Request, Box<dyn Error>> {
    Ok(Request {
        tenant: format!("tenant-{}", user / 10).parse()?,
        user: Some(format!("user-{user}").parse()?),
        route: "chat".parse()?,
        model: None,
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, 400),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 1_000_000,
    };
    let mut book = Book::new();
    let mut now_ms = 1_800_000_000_000;
    let plan = Plan::parse(PLAN).map_err(|errors| format!("{errors:?}"))?;
    let publish = Command::PublishPlan(PublishPlan {
        expected_generation: None,
        force: false,
        document: PLAN.into(),
        plan: Arc::new(plan),
        actor: "example".parse()?,
    });
    let mut index = 0;
    let mut apply = |book: &mut Book, stamp_ms: u64, commands: &[Command]| -> Vec<Answer> {
        index += 1;
        let header = EntryHeader { index, term: 1, stamp_ms, epoch_bounds: Vec::new() };
        let answers = book.apply_entry(&header, commands);
        book.drain_effects();
        answers
    };
    apply(&mut book, now_ms, &[publish]);
    let requests: Vec<Request> = (0..1000).map(request).collect::<Result<_, _>>()?;
    let before = resident_bytes()?;
    for first in (0..count).step_by(ENTRY as usize) {
        let commands: Vec<Command> = (first..count.min(first + ENTRY))
            .map(|number| {
                let request = requests[(number % 1000) as usize].clone();
                let id = ReservationId::from_parts(now_ms, number.into());
                Command::Reserve(Reserve { id, attempt: 1, request, request_digest: [7; 32], key: None })
            })
            .collect();
        apply(&mut book, now_ms, &commands);
    }
    let held = resident_bytes()?;
    let open = book.counts().reserved;
    let per_reservation = held.saturating_sub(before) / open.max(1);
    println!("{open} open reservations of six legs: {per_reservation} bytes each");

    // All expire, then all are forgotten; the leader's ticks do the work.
    for step_ms in [61_000, 1_000_000] {
        now_ms += step_ms;
        while let Some(Answer::Ticked { more: true, .. }) = apply(&mut book, now_ms, &[Command::Tick]).first()
        {
        }
    }
    let counts = book.counts();
    let left = resident_bytes()?.saturating_sub(before);
    println!(
        "forgotten: {} remembered, {} lineages, {} KiB more than at the start (the allocator keeps some)",
        counts.remembered,
        counts.lineages,
        left / 1024
    );
    Ok(())
}
