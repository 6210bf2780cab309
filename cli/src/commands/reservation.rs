//! What the commands on one reservation share.

use holdfast_ledger::ids::ReservationId;
use holdfast_proto::v1;
use holdfast_proto::v1::command_answer;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::parse::{self, UnitAmount};
use crate::settings::Settings;
use crate::show::{at_ms, receipt_document, receipt_text};

/// A new id: this machine's time and 80 random bits.
pub fn new_id() -> ReservationId {
    ReservationId::from_parts(at_ms(), rand::random())
}

/// Amounts as they travel.
pub fn wire_amounts(parts: &[UnitAmount]) -> Outcome<v1::Amounts> {
    let amounts = parse::amounts(parts).map_err(Failure::usage)?;
    Ok(amounts.into())
}

/// Shows the answer to a command on a reservation.
pub fn show(settings: &Settings, answer: &v1::CommandAnswer) -> Outcome {
    match &answer.outcome {
        Some(command_answer::Outcome::Receipt(receipt)) => show_receipt(settings, answer.revision, receipt),
        Some(command_answer::Outcome::Tombstone(tombstone)) => {
            let document = json!({"id": tombstone.id, "state": "RELEASED", "tombstone": true, "revision": answer.revision});
            settings.output.show(&document, || {
                format!(
                    "{} was never seen and is closed now: a reserve that comes later finds it RELEASED\n",
                    tombstone.id
                )
            })
        }
        None => Err(Failure::failed("the answer holds neither a receipt nor a tombstone")
            .advise("The member may be newer than this program.")),
    }
}

/// Shows a receipt.
pub fn show_receipt(settings: &Settings, revision: u64, receipt: &v1::Receipt) -> Outcome {
    settings.output.show(&receipt_document(revision, receipt), || receipt_text(receipt))
}
