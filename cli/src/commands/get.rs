//! `holdfast get`: what stands under a reservation's id.

use holdfast_ledger::ids::ReservationId;

use super::reservation;
use crate::calls;
use crate::failure::Outcome;
use crate::settings::Settings;

/// Options of `get`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
    /// Answer from what the asked member has applied, which may be behind
    #[arg(long)]
    stale: bool,
}

/// Asks and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let client = calls::client(settings)?;
    let client = if args.stale { client.with_stale_reads() } else { client };
    let decided =
        client.get(args.id).await.map_err(|error| calls::failure(&format!("get {}", args.id), error))?;
    reservation::show(settings, &decided)
}
