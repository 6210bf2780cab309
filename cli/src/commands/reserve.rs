//! `holdfast reserve`: hold capacity by hand.

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;

use super::reservation::{self, wire_amounts};
use crate::cluster::{Cluster, Effect};
use crate::failure::{Failure, Outcome};
use crate::parse::{self, UnitAmount};
use crate::settings::Settings;

/// Options of `reserve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who pays
    tenant: String,
    /// The user within the tenant
    #[arg(long)]
    user: Option<String>,
    /// What it does, for example chat.generate
    #[arg(long)]
    route: String,
    /// The model it names
    #[arg(long)]
    model: Option<String>,
    /// Where it is served
    #[arg(long)]
    region: Option<String>,
    /// How much of a unit, for example tokens=1200; may be repeated. requests and slots are 1 unless given
    #[arg(long = "amount", value_name = "UNIT=AMOUNT", value_parser = parse::unit_amount)]
    amounts: Vec<UnitAmount>,
    /// How long it is held before it is started [default: the route's]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration_ms)]
    hold_ttl: Option<u64>,
    /// The reservation's id, a ULID; give the same again to ask for the same receipt [default: a new one]
    #[arg(long)]
    id: Option<ReservationId>,
}

/// Reserves and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let cluster = Cluster::of(settings)?;
    let id = args.id.unwrap_or_else(reservation::new_id);
    let request = v1::ReserveRequest {
        id: id.to_string(),
        attempt: 1,
        request: Some(v1::Request {
            tenant: args.tenant,
            user: args.user,
            route: args.route,
            model: args.model,
            region: args.region,
            amounts: Some(wire_amounts(&args.amounts)?),
            hold_ttl_ms: args.hold_ttl,
        }),
    };
    let answer = cluster
        .ask(&format!("reserve {id}"), Effect::Writes, async |call| {
            let request = call.request(request.clone());
            v1::ledger_client::LedgerClient::new(call.channel).reserve(request).await
        })
        .await
        .map_err(|failure| keep_id(failure, id))?;
    reservation::show(settings, &answer)
}

/// Where the outcome is unknown, the id is what the caller needs to find out.
fn keep_id(failure: Failure, id: ReservationId) -> Failure {
    match failure.kind {
        crate::failure::Kind::Unknown => failure.advise(format!(
            "It may be held: ask `holdfast get {id}`, or give it up with `holdfast release {id}`."
        )),
        _ => failure,
    }
}
