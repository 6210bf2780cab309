//! One request of the demo: reserve, start, run, settle.

use std::time::Duration;

use holdfast_client::{Amounts, CallError, Client, Request, Unit};

use super::log::{Ended, Seen};
use super::scenario::Caller;
use crate::show::{hours_minutes, instant};

/// How long a run of the pretended model takes.
const RUN: Duration = Duration::from_millis(60);

/// Sends one request through its whole life and says how it ended.
pub async fn one(client: &Client, caller: &Caller, user: String) -> Seen {
    let (ended, note) = match admit_and_run(client, caller, &user).await {
        Ok(tier) => (Ended::Admitted(tier), String::new()),
        Err(error) => of_error(&error),
    };
    Seen { tenant: caller.tenant.clone(), user, ended, note }
}

async fn admit_and_run(client: &Client, caller: &Caller, user: &str) -> Result<&'static str, CallError> {
    let request = Request::new(&caller.tenant, super::ROUTE).user(user).tokens(caller.tokens);
    let mut reservation = client.reserve(request).await?;
    let tier = reservation.tier().as_str();
    let operation = format!("demo-{}", reservation.id());
    reservation.start(operation).await?;
    tokio::time::sleep(RUN).await;
    let used = caller.tokens * caller.used_percent / 100;
    reservation.settle(Amounts::NONE.with(Unit::Tokens, used)).await?;
    Ok(tier)
}

fn of_error(error: &CallError) -> (Ended, String) {
    if let Some(rejection) = error.rejection() {
        let limit = format!("{} ({}, {})", rejection.limit, rejection.level.as_str(), rejection.unit);
        // A pause of seconds is a pause; a longer one is better told as the time of the reset.
        let note = match (rejection.retry_after_ms, rejection.reset_at_ms) {
            (Some(ms), Some(reset_at_ms)) if ms > 60_000 => format!("resets {}", instant(reset_at_ms)),
            (Some(ms), _) => format!("again in {}", hours_minutes(ms)),
            (None, _) => String::new(),
        };
        return (Ended::Refused { limit, reason: rejection.reason.as_str() }, note);
    }
    let word = match error {
        CallError::Rejected(_) | CallError::Invalid(_) => "invalid",
        CallError::Unavailable(_) => "unavailable",
        CallError::Unknown(_) => "outcome unknown",
    };
    (Ended::Failed(word.to_owned()), error.to_string())
}
