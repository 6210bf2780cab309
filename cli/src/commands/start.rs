//! `holdfast start`: bind an operation to a reservation.

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;

use super::reservation;
use crate::cluster::{Cluster, Effect};
use crate::failure::Outcome;
use crate::settings::Settings;

/// Options of `start`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
    /// The operation that runs; settle must name the same
    #[arg(long)]
    operation: String,
}

/// Starts and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let request = v1::StartRequest { id: args.id.to_string(), operation: args.operation };
    let answer = Cluster::of(settings)?
        .ask(&format!("start {}", args.id), Effect::Writes, async |call| {
            let request = call.request(request.clone());
            v1::ledger_client::LedgerClient::new(call.channel).start(request).await
        })
        .await?;
    reservation::show(settings, &answer)
}
