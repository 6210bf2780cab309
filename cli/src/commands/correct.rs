//! `holdfast correct`: put the usage of an estimated settlement right, once.

use holdfast_ledger::Command;
use holdfast_ledger::command::Correct;
use holdfast_ledger::ids::{OperationId, ReservationId};

use super::reservation;
use crate::failure::{Failure, Outcome};
use crate::parse::{self, UnitAmount};
use crate::settings::Settings;

/// Options of `correct`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
    /// The operation that was started
    #[arg(long)]
    operation: OperationId,
    /// How much of a unit it really used, for example tokens=511; may be repeated. What is not given stays as estimated
    #[arg(long = "actual", value_name = "UNIT=AMOUNT", required = true, value_parser = parse::unit_amount)]
    actual: Vec<UnitAmount>,
}

/// Corrects and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let Args { id, operation, actual } = args;
    let actual = parse::amounts(&actual).map_err(Failure::usage)?;
    let correct = Correct { id, operation, actual };
    reservation::submit(settings, &format!("correct {id}"), Command::Correct(correct)).await
}
