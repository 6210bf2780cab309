//! `holdfast reserve`: hold capacity by hand.

use std::time::Duration;

use holdfast_client::{CallError, Request};
use holdfast_ledger::ids::ReservationId;

use super::reservation;
use crate::calls;
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
    /// The least of a unit that will do, for example tokens=200: then as much is granted as there is. May be repeated
    #[arg(long = "min", value_name = "UNIT=AMOUNT", value_parser = parse::unit_amount)]
    minimum: Vec<UnitAmount>,
    /// How long it is held before it is started [default: the route's]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration_ms)]
    hold_ttl: Option<u64>,
    /// The tenant's own name for it: the same request with the same key gives the first one's receipt
    #[arg(long)]
    key: Option<String>,
    /// The reservation's id, a ULID; give the same again to ask for the same receipt [default: a new one]
    #[arg(long)]
    id: Option<ReservationId>,
}

/// Reserves and shows the receipt.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let id = args.id.unwrap_or_else(reservation::new_id);
    let request = request(id, args)?;
    let client = calls::client(settings)?;
    match client.reserve(request).await {
        Ok(reservation) => {
            let revision = reservation.revision();
            // It outlives this program: whoever has the id ends it.
            reservation::show_receipt(settings, revision, &reservation.detach())
        }
        Err(error) => Err(failure(id, error)),
    }
}

fn request(id: ReservationId, args: Args) -> Outcome<Request> {
    let mut request = Request::new(args.tenant, args.route).id(id);
    for (unit, amount) in parse::amounts(&args.amounts).map_err(Failure::usage)?.iter() {
        request = request.amount(unit, amount);
    }
    for (unit, amount) in parse::amounts(&args.minimum).map_err(Failure::usage)?.iter() {
        request = request.at_least(unit, amount);
    }
    if let Some(user) = args.user {
        request = request.user(user);
    }
    if let Some(model) = args.model {
        request = request.model(model);
    }
    if let Some(region) = args.region {
        request = request.region(region);
    }
    if let Some(key) = args.key {
        request = request.idempotency_key(key);
    }
    if let Some(ms) = args.hold_ttl {
        request = request.hold_ttl(Duration::from_millis(ms));
    }
    Ok(request)
}

/// Where the outcome is unknown, the id is what the caller needs to find out.
fn failure(id: ReservationId, error: CallError) -> Failure {
    let unknown = matches!(error, CallError::Unknown(_));
    let failure = calls::failure(&format!("reserve {id}"), error);
    match unknown {
        true => failure.advise(format!(
            "It may be held: ask `holdfast get {id}`, or give it up with `holdfast release {id}`."
        )),
        false => failure,
    }
}
