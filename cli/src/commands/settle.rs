//! `holdfast settle`: end a started reservation with what it used.

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;

use super::reservation::{self, wire_amounts};
use crate::cluster::{Cluster, Effect};
use crate::failure::Outcome;
use crate::parse::{self, UnitAmount};
use crate::settings::Settings;

/// Options of `settle`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The reservation
    id: ReservationId,
    /// The operation that was started
    #[arg(long)]
    operation: String,
    /// How much of a unit it used, for example tokens=800; may be repeated
    #[arg(long = "actual", value_name = "UNIT=AMOUNT", value_parser = parse::unit_amount)]
    actual: Vec<UnitAmount>,
}

/// Settles and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let request = v1::SettleRequest {
        id: args.id.to_string(),
        operation: args.operation,
        actual: Some(wire_amounts(&args.actual)?),
    };
    let answer = Cluster::of(settings)?
        .ask(&format!("settle {}", args.id), Effect::Writes, async |call| {
            let request = call.request(request.clone());
            v1::ledger_client::LedgerClient::new(call.channel).settle(request).await
        })
        .await?;
    reservation::show(settings, &answer)
}
