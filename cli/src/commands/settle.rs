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
}

/// Settles and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let Args { id, operation, actual } = args;
    let actual = parse::amounts(&actual).map_err(Failure::usage)?;
    reservation::submit(settings, &format!("settle {id}"), Command::Settle(Settle { id, operation, actual }))
        .await
}
