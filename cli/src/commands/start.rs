//! `holdfast start`: bind an operation to a reservation.

use holdfast_ledger::Command;
use holdfast_ledger::command::Start;
use holdfast_ledger::ids::{OperationId, ReservationId};

use super::reservation;
use crate::failure::Outcome;
use crate::settings::Settings;

/// Options of `start`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
    /// The operation that runs; settle must name the same
    #[arg(long)]
    operation: OperationId,
}

/// Starts and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let Args { id, operation } = args;
    reservation::submit(settings, &format!("start {id}"), Command::Start(Start { id, operation })).await
}
