//! `holdfast release`: end a reservation that was not started, or close an id for ever.

use holdfast_ledger::Command;
use holdfast_ledger::command::Release;
use holdfast_ledger::ids::ReservationId;

use super::reservation;
use crate::failure::Outcome;
use crate::settings::Settings;

/// Options of `release`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
}

/// Releases and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let Args { id } = args;
    reservation::submit(settings, &format!("release {id}"), Command::Release(Release { id })).await
}
