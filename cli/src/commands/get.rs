//! `holdfast get`: what stands under a reservation's id.

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;

use super::reservation;
use crate::cluster::{Cluster, Effect};
use crate::failure::{Failure, Outcome};
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
    let answer = Cluster::of(settings)?
        .ask(&format!("get {}", args.id), Effect::Reads, async |call| {
            let request = v1::GetReservationRequest { id: args.id.to_string(), stale: args.stale };
            let request = call.request(request);
            v1::ledger_client::LedgerClient::new(call.channel).get_reservation(request).await
        })
        .await?;
    let receipt = answer
        .receipt
        .ok_or_else(|| Failure::failed(format!("get {}: the answer holds no receipt", args.id)))?;
    reservation::show_receipt(settings, answer.revision, &receipt)
}
