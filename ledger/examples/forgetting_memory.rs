//! Memory after mass forgetting (field case 59): a million users (or as many as the first argument says) reserve and
//! release once each, among a few that stay. Two id windows after the last period has ended, the live heap must be back
//! at what it was, within a tenth.
//!
//! `cargo run --release -p holdfast-ledger --example forgetting_memory`

mod support;

use std::error::Error;
use std::sync::Arc;

use cap::Cap;
use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Release, Request, Reserve};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId, Unit};
use mimalloc::MiMalloc;
use support::{PLAN, resident_bytes};

/// Counts what is allocated and not freed; below it is the allocator of the program.
#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

const ENTRY: u64 = 512;
const BEGIN_MS: u64 = 1_800_000_000_000;
const HOUR_MS: u64 = 3_600_000;
const ID_WINDOW_MS: u64 = 900_000;
/// Users that stay: the baseline.
const STAYING: u64 = 10_000;

struct Run {
    book: Book,
    now_ms: u64,
    made: u128,
}

impl Run {
    fn apply(&mut self, commands: &[Command]) -> Vec<Answer> {
        let index = self.book.applied().0 + 1;
        let header = EntryHeader { index, term: 1, stamp_ms: self.now_ms, epoch_bounds: Vec::new() };
        let answers = self.book.apply_entry(&header, commands);
        self.book.drain_effects();
        answers
    }

    /// These users reserve and release once each.
    fn visit(&mut self, users: std::ops::Range<u64>) -> Result<(), Box<dyn Error>> {
        for first in users.clone().step_by(ENTRY as usize) {
            let mut commands = Vec::new();
            for user in first..users.end.min(first + ENTRY) {
                let request = Request {
                    tenant: format!("tenant-{}", user % 10).parse()?,
                    user: Some(format!("user-{user}").parse()?),
                    route: "chat".parse()?,
                    model: None,
                    region: None,
                    amounts: Amounts::NONE.with(Unit::Tokens, 400),
                    minimum: Amounts::NONE,
                    hold_ttl_ms: None,
                };
                self.made += 1;
                let id = ReservationId::from_parts(self.now_ms, self.made);
                commands.push(Command::Reserve(Reserve {
                    id,
                    attempt: 1,
                    request,
                    request_digest: [7; 32],
                    key: None,
                }));
                commands.push(Command::Release(Release { id }));
            }
            self.apply(&commands);
        }
        Ok(())
    }

    /// Lets time pass, with the ticks that a leader proposes.
    fn pass(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while self.now_ms < until_ms {
            self.now_ms = until_ms.min(self.now_ms + 60_000);
            while let Some(Answer::Ticked { more: true, .. }) = self.apply(&[Command::Tick]).first() {}
        }
    }

    fn show(&self, when: &str) -> Result<usize, Box<dyn Error>> {
        let (live, counts) = (ALLOCATOR.allocated(), self.book.counts());
        println!(
            "{when}: {} KiB live, {} KiB resident; {} lineages, {} reservations remembered",
            live / 1024,
            resident_bytes()? / 1024,
            counts.lineages,
            counts.remembered
        );
        Ok(live)
    }
}

/// The live heap before and after so many one-shot users, bytes.
pub fn measure(users: u64) -> Result<(usize, usize), Box<dyn Error>> {
    let mut run = Run { book: Book::new(), now_ms: BEGIN_MS, made: 0 };
    let plan = Plan::parse(PLAN).map_err(|errors| format!("{errors:?}"))?;
    run.apply(&[Command::PublishPlan(PublishPlan {
        expected_generation: None,
        force: false,
        document: PLAN.into(),
        plan: Arc::new(plan),
        actor: "example".parse()?,
    })]);
    // Twice, so that the baseline is that of a book that has forgotten before.
    for _ in 0..2 {
        run.visit(0..STAYING)?;
        run.pass(HOUR_MS + 2 * ID_WINDOW_MS);
    }
    run.visit(0..STAYING)?;
    let baseline = run.show("baseline")?;
    run.visit(STAYING..STAYING + users)?;
    run.show("with the one-shot users")?;
    run.pass(HOUR_MS + 2 * ID_WINDOW_MS);
    run.visit(0..STAYING)?;
    let after = run.show("two id windows after the period")?;
    Ok((baseline, after))
}

fn main() -> Result<(), Box<dyn Error>> {
    let users: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 1_000_000,
    };
    let (baseline, after) = measure(users)?;
    println!("{:.1} % of the baseline", after as f64 * 100.0 / baseline as f64);
    if after > baseline + baseline / 10 {
        return Err("memory did not come back to the baseline + 10 %".into());
    }
    Ok(())
}
