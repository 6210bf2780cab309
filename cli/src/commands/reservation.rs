//! What the commands on one reservation share.

use holdfast_client::{Decided, Done, Receipt};
use holdfast_ledger::Command;
use holdfast_ledger::ids::ReservationId;
use serde_json::json;

use crate::calls;
use crate::failure::Outcome;
use crate::settings::Settings;
use crate::show::{at_ms, receipt_document, receipt_text};

/// A new id: this machine's time and 80 random bits.
pub fn new_id() -> ReservationId {
    ReservationId::from_parts(at_ms(), rand::random())
}

/// Submits a command and shows the answer.
pub async fn submit(settings: &Settings, what: &str, command: Command) -> Outcome {
    let client = calls::client(settings)?;
    let decided = client.submit(command).await.map_err(|error| calls::failure(what, error))?;
    show(settings, &decided)
}

/// Shows what was decided.
pub fn show(settings: &Settings, decided: &Decided) -> Outcome {
    match &decided.done {
        Done::Receipt(receipt) => show_receipt(settings, decided.revision, receipt),
        Done::Tombstone(id) => {
            let document = json!({
                "id": id.to_string(),
                "state": "RELEASED",
                "tombstone": true,
                "revision": decided.revision,
            });
            settings.output.show(&document, || {
                format!(
                    "{id} was never seen and is closed now: a reserve that comes later finds it RELEASED\n"
                )
            })
        }
    }
}

/// Shows a receipt.
pub fn show_receipt(settings: &Settings, revision: u64, receipt: &Receipt) -> Outcome {
    let receipt = receipt.into();
    settings.output.show(&receipt_document(revision, &receipt), || receipt_text(&receipt))
}
