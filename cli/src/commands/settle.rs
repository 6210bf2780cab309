//! `holdfast settle`: end a started reservation with what it used.

use holdfast_ledger::Command;
use holdfast_ledger::command::Settle;
use holdfast_ledger::ids::{OperationId, ReservationId};

use super::reservation;
use crate::failure::{Failure, Outcome};
use crate::parse::{self, UnitAmount};
use crate::settings::Settings;

/// Options of `settle`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
    /// The operation that was started
    #[arg(long)]
    operation: OperationId,
    /// How much of a unit it used, for example tokens=800; may be repeated
    #[arg(long = "actual", value_name = "UNIT=AMOUNT", value_parser = parse::unit_amount)]
    actual: Vec<UnitAmount>,
    /// Its usage was not reported: what is not given counts as held, and `holdfast correct` may put it right once
    #[arg(long)]
    estimated: bool,
}

/// Settles and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let Args { id, operation, actual, estimated } = args;
    let actual = parse::amounts(&actual).map_err(Failure::usage)?;
    let settle = Settle { id, operation, actual, estimated };
    reservation::submit(settings, &format!("settle {id}"), Command::Settle(settle)).await
}
