//! Demo traffic on the sample plan: reservations admitted, degraded and refused within a few seconds.

mod log;
mod request;
mod scenario;

use std::time::{Duration, Instant};

use holdfast_client::Client;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::log::{DemoLog, Seen};
use self::scenario::Caller;
use crate::calls;
use crate::failure::{Failure, Outcome};
use crate::output::print;

/// What the callers ask for; the sample plan admits it.
const ROUTE: &str = "chat.generate";
/// Requests seen that wait to be shown; callers wait when the terminal is slower.
const SEEN_WAITING_MAX: usize = 256;
/// When the counts are shown: soon at first, then rarely.
const SUMMARY_AFTER_S: [u64; 2] = [10, 30];
const SUMMARY_EVERY_S: u64 = 60;
/// A user changes its name after this many requests, so that a demo left running does not end at the daily limit.
const REQUESTS_PER_NAME: u64 = 150;
/// Names of the tenant that climbs the ladder: the first whose month is unspent.
const LADDER_TENANTS_MAX: u32 = 1_000;

/// Sends demo traffic for as long as it is polled, or nothing; only ever returns a failure.
pub async fn demo(client: Client, traffic: bool) -> Failure {
    if !traffic {
        return std::future::pending().await;
    }
    match run(&client).await {
        Ok(()) => std::future::pending().await,
        Err(failure) => failure,
    }
}

async fn run(client: &Client) -> Outcome {
    let callers = scenario::callers(&ladder_tenant(client).await?);
    let begun = Instant::now();
    let (report, mut seen) = mpsc::channel(SEEN_WAITING_MAX);
    let mut tasks = JoinSet::new();
    for caller in callers {
        tasks.spawn(call_again_and_again(client.clone(), caller, report.clone()));
    }
    drop(report);
    print("Demo traffic; a line for everything that happens for the first time:\n\n")?;
    let mut log = DemoLog::default();
    let mut summaries = 0;
    loop {
        let next = begun + Duration::from_secs(summary_at(summaries));
        tokio::select! {
            one = seen.recv() => match one {
                Some(one) => print(&log.note(begun.elapsed(), &one).unwrap_or_default())?,
                None => return Ok(()),
            },
            () = tokio::time::sleep_until(next.into()) => {
                summaries += 1;
                print(&log.summary())?;
            }
        }
    }
}

/// Seconds after the start at which summary number `n` is shown.
fn summary_at(n: usize) -> u64 {
    match SUMMARY_AFTER_S.get(n) {
        Some(seconds) => *seconds,
        None => SUMMARY_EVERY_S * (n - SUMMARY_AFTER_S.len() + 1) as u64,
    }
}

async fn call_again_and_again(client: Client, caller: Caller, report: mpsc::Sender<Seen>) {
    let mut ticks = tokio::time::interval(caller.pause);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for number in 0_u64.. {
        ticks.tick().await;
        let name = match number / REQUESTS_PER_NAME {
            0 => caller.user.to_owned(),
            again => format!("{}-{}", caller.user, again + 1),
        };
        let seen = request::one(&client, &caller, name).await;
        if report.send(seen).await.is_err() {
            return;
        }
    }
}

/// A demo on kept data would begin refused if it used the same tenant's month again.
async fn ladder_tenant(client: &Client) -> Outcome<String> {
    for number in 1..=LADDER_TENANTS_MAX {
        let tenant = if number == 1 { "demo".to_owned() } else { format!("demo-{number}") };
        let quota = client.quota(&tenant, None).await;
        let quota = quota.map_err(|error| calls::failure(&format!("quota of {tenant}"), error))?;
        let own = v1::Level::Tenant as i32;
        if quota.lines.iter().all(|line| line.level != own || line.used + line.held == 0) {
            return Ok(tenant);
        }
    }
    Ok("demo".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_come_soon_and_then_rarely() {
        let at: Vec<u64> = (0..5).map(summary_at).collect();
        assert_eq!(at, [10, 30, 60, 120, 180]);
    }
}
