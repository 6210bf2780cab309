//! Memory after mass forgetting (field case 59): a million users (or as many as the first argument says) come once
//! each, among a few that stay. Two id windows after the last period has ended, the live heap must be back at what it
//! was, within a tenth. Once for users that reserve and release, once for users that settle and so leave statements.
//!
//! `cargo run --release -p holdfast-ledger --example forgetting_memory`

mod support;

use std::error::Error;

use holdfast_ledger::command::{Command, Release, Settle, Start};
use holdfast_ledger::ids::OperationId;
use holdfast_ledger::{Amounts, Unit};
use support::{Run, count_asked, live, request};

const ENTRY: u64 = 512;
const HOUR_MS: u64 = 3_600_000;
const ID_WINDOW_MS: u64 = 900_000;
/// Users that stay: the baseline.
const STAYING: u64 = 10_000;

/// How a user's reservation ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// Before it started.
    Release,
    /// With its usage, which leaves a statement.
    Settle,
}

/// Each of these users makes one reservation that ends so.
fn visit(run: &mut Run, users: std::ops::Range<u64>, end: End) -> Result<(), Box<dyn Error>> {
    let operation: OperationId = "operation-1".parse()?;
    let actual = Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 300);
    for first in users.clone().step_by(ENTRY as usize) {
        let mut commands = Vec::new();
        for user in first..users.end.min(first + ENTRY) {
            let reserve = run.reserve(request(user % 10, user)?);
            let id = reserve.id;
            commands.push(Command::Reserve(reserve));
            match end {
                End::Release => commands.push(Command::Release(Release { id })),
                End::Settle => {
                    let operation = operation.clone();
                    commands.push(Command::Start(Start { id, operation: operation.clone() }));
                    commands.push(Command::Settle(Settle { id, operation, actual, estimated: false }));
                }
            }
        }
        for entry in commands.chunks(ENTRY as usize) {
            run.apply(entry);
        }
    }
    Ok(())
}

/// The live heap before and after so many one-shot users, bytes.
pub fn measure(users: u64, end: End) -> Result<(usize, usize), Box<dyn Error>> {
    let mut run = Run::new()?;
    // Twice, so that the baseline is that of a book that has forgotten before.
    for _ in 0..2 {
        visit(&mut run, 0..STAYING, end)?;
        run.pass(HOUR_MS + 2 * ID_WINDOW_MS);
    }
    visit(&mut run, 0..STAYING, end)?;
    let before = live::show(&run, "baseline")?;
    visit(&mut run, STAYING..STAYING + users, end)?;
    live::show(&run, "with the one-shot users")?;
    run.pass(HOUR_MS + 2 * ID_WINDOW_MS);
    visit(&mut run, 0..STAYING, end)?;
    let after = live::show(&run, "two id windows after the period")?;
    Ok((before, after))
}

fn main() -> Result<(), Box<dyn Error>> {
    let users = count_asked(1_000_000)?;
    for end in [End::Release, End::Settle] {
        println!("{users} users that {}", format!("{end:?}").to_lowercase());
        let (before, after) = measure(users, end)?;
        live::judge(before, after)?;
    }
    Ok(())
}
