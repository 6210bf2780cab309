//! `holdfast release`: end a reservation that was not started, or close an id for ever.

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;

use super::reservation;
use crate::cluster::{Cluster, Effect};
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
    let answer = Cluster::of(settings)?
        .ask(&format!("release {}", args.id), Effect::Writes, async |call| {
            let request = call.request(v1::ReleaseRequest { id: args.id.to_string() });
            v1::ledger_client::LedgerClient::new(call.channel).release(request).await
        })
        .await?;
    reservation::show(settings, &answer)
}
