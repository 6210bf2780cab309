//! Memory over ten million reservations (or as many as the first argument says) of 1000 users that are made, ended and
//! forgotten, wave after wave. After the first waves the live heap must not grow any more.
//!
//! `cargo run --release -p holdfast-ledger --example forgotten_reservations`

mod support;

use std::error::Error;

use holdfast_ledger::command::{Command, Release, Request, Settle, Start};
use holdfast_ledger::ids::OperationId;
use holdfast_ledger::limits::STATEMENTS_KEPT_MAX;
use holdfast_ledger::{Amounts, ReservationId, Unit};
use support::{Run, count_asked, live, request};

/// The first waves are smaller: each leaves 601 statements or more, of 500 users, 100 tenants and the global limit.
const FIRST_WAVE: u64 = 10_000;
const FIRST_WAVES: usize = STATEMENTS_KEPT_MAX / 601 + 1;
const ENTRY: u64 = 512;
/// Past the hour that the waves' periods last, and two id windows.
const BETWEEN_MS: u64 = 3_600_000 + 2 * 900_000;

/// Makes and ends a wave, all of it remembered at its end: of four reservations one is released, two settle, one is left to expire.
fn wave(run: &mut Run, requests: &[Request], count: u64) -> Result<(), Box<dyn Error>> {
    let operation: OperationId = "operation-1".parse()?;
    let actual = Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 300);
    for first in (0..count).step_by(ENTRY as usize) {
        let numbers = first..count.min(first + ENTRY);
        let reserves: Vec<Command> = numbers
            .clone()
            .map(|number| {
                let request = requests[number as usize % requests.len()].clone();
                Command::Reserve(run.reserve(request))
            })
            .collect();
        run.apply(&reserves);
        let ids: Vec<ReservationId> = reserves.iter().filter_map(Command::reservation).collect();
        let starts: Vec<Command> = (ids.iter().zip(numbers.clone()))
            .filter(|(_, number)| number % 4 >= 2)
            .map(|(id, _)| Command::Start(Start { id: *id, operation: operation.clone() }))
            .collect();
        run.apply(&starts);
        let ends: Vec<Command> = (ids.iter().zip(numbers))
            .filter_map(|(id, number)| match number % 4 {
                0 => None,
                1 => Some(Command::Release(Release { id: *id })),
                _ => {
                    let operation = operation.clone();
                    Some(Command::Settle(Settle { id: *id, operation, actual, estimated: false }))
                }
            })
            .collect();
        run.apply(&ends);
    }
    Ok(())
}

/// The live heap before and after so many reservations in waves of so many, bytes.
pub fn measure(count: u64, wave_max: u64) -> Result<(usize, usize), Box<dyn Error>> {
    let requests: Vec<Request> = (0..1000).map(|user| request(user / 10, user)).collect::<Result<_, _>>()?;
    let mut run = Run::new()?;
    // So many that the book has all the statements that it keeps before anything is compared.
    for _ in 0..FIRST_WAVES {
        wave(&mut run, &requests, FIRST_WAVE)?;
        run.pass(BETWEEN_MS);
    }
    let before = live::show(&run, "after the first waves")?;
    let (mut made, mut after) = (0, before);
    while made < count {
        let size = wave_max.min(count - made);
        wave(&mut run, &requests, size)?;
        made += size;
        live::show(&run, &format!("{made:>9} made"))?;
        run.pass(BETWEEN_MS);
        after = live::show(&run, &format!("{made:>9} forgotten"))?;
    }
    Ok((before, after))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (before, after) = measure(count_asked(10_000_000)?, 500_000)?;
    live::judge(before, after)
}
