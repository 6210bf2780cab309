//! The callers: each sends one round of the mix after the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_client::{Amounts, CallError, Client, Command, ReservationId, Unit};
use holdfast_ledger::command::{Release, Request, Reserve, Settle, Start};
use holdfast_ledger::ids::{OperationId, RouteName, TenantId};
use tokio::task::JoinSet;

use super::tally::Tally;
use crate::failure::{Failure, Outcome};
use crate::show::at_ms;

/// What each round holds and uses, in tokens.
const HELD: u64 = 10;
const ACTUAL: u64 = 7;
/// After an error, so that callers do not only spin where answers come at once.
const ERROR_PAUSE: Duration = Duration::from_millis(2);

/// What a round consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mix {
    /// Reserve, start, settle: the ledger settles only what was started
    Pairs,
    /// The same under its full name
    ReserveStartSettle,
    /// Reserve, release
    ReserveRelease,
    /// Pairs on one account
    Hot,
}

impl Mix {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Pairs => "pairs",
            Mix::ReserveStartSettle => "reserve-start-settle",
            Mix::ReserveRelease => "reserve-release",
            Mix::Hot => "hot",
        }
    }
}

/// A load to put on a cluster.
#[derive(Clone, Debug)]
pub struct Load {
    /// What a round consists of.
    pub mix: Mix,
    /// Tenants, one account each.
    pub tenants: Arc<[TenantId]>,
    /// The route that is asked for.
    pub route: RouteName,
    /// Callers in all.
    pub callers: u32,
    /// Callers besides them who ask for more than there ever is.
    pub storm: u32,
    /// Whom they ask for: nobody else's requests are of that tenant.
    pub storm_tenant: TenantId,
    /// What begins before does not count.
    pub count_from: Instant,
    /// Nothing begins any more, and what ends after counts as waited for or as failed only.
    pub until: Instant,
}

/// Runs the load over the clients until its time is up, and adds up what was seen.
pub async fn run(load: &Load, clients: &[Client]) -> Outcome<Tally> {
    // One tally a client: callers share it, since a histogram for each of thousands would take the memory.
    let tallies: Vec<Arc<Mutex<Tally>>> = clients.iter().map(|_| Arc::default()).collect();
    let mut callers = JoinSet::new();
    for number in 0..load.callers as usize {
        let at = number % clients.len();
        let caller = Caller {
            load: load.clone(),
            client: clients[at].clone(),
            tally: Arc::clone(&tallies[at]),
            operation: operation(number)?,
        };
        callers.spawn(caller.drive());
    }
    let refusals: Arc<Mutex<Tally>> = Arc::default();
    for number in 0..load.storm as usize {
        let caller = Caller {
            load: load.clone(),
            client: clients[number % clients.len()].clone(),
            tally: Arc::clone(&refusals),
            operation: operation(number)?,
        };
        callers.spawn(caller.storm());
    }
    while let Some(ended) = callers.join_next().await {
        ended.map_err(|e| Failure::failed(format!("a caller stopped: {e}")))?;
    }
    let mut total = Tally { refused: lock(&refusals).refused, ..Tally::default() };
    total.errors.clone_from(&lock(&refusals).errors);
    for tally in &tallies {
        total.merge(&lock(tally));
    }
    Ok(total)
}

fn operation(number: usize) -> Outcome<OperationId> {
    format!("bench-{number}").parse().map_err(|e| Failure::failed(format!("operation name: {e}")))
}

struct Caller {
    load: Load,
    client: Client,
    tally: Arc<Mutex<Tally>>,
    operation: OperationId,
}

impl Caller {
    async fn drive(self) {
        while Instant::now() < self.load.until {
            if self.round().await.is_err() {
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }

    /// Nothing but requests that are refused, one after the other, as fast as they are answered.
    async fn storm(self) {
        while Instant::now() < self.load.until {
            let begun = Instant::now();
            let reserve = self.reserve(self.load.storm_tenant.clone(), u64::MAX);
            let answer = self.client.submit(Command::Reserve(reserve)).await;
            let refused = matches!(answer, Err(CallError::Rejected(_)));
            if self.counts(begun) {
                let mut tally = lock(&self.tally);
                match &answer {
                    Err(CallError::Rejected(_)) if self.in_time() => tally.refused += 1,
                    Err(CallError::Rejected(_)) => {}
                    Err(error) => tally.failed(kind(error)),
                    Ok(_) => tally.failed("admitted"),
                }
            }
            if !refused {
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }

    async fn round(&self) -> Result<(), ()> {
        let begun = Instant::now();
        let tenants = &self.load.tenants;
        let reserve = self.reserve(tenants[rand::random_range(0..tenants.len())].clone(), HELD);
        let id = reserve.id;
        self.submit(Command::Reserve(reserve)).await?;
        match self.load.mix {
            Mix::ReserveRelease => self.submit(Command::Release(Release { id })).await?,
            Mix::Pairs | Mix::Hot | Mix::ReserveStartSettle => {
                self.submit(Command::Start(Start { id, operation: self.operation.clone() })).await?;
                let actual = Amounts::NONE.with(Unit::Tokens, ACTUAL);
                let settle = Settle { id, operation: self.operation.clone(), actual, estimated: false };
                self.submit(Command::Settle(settle)).await?;
            }
        }
        if self.counts(begun) && self.in_time() {
            lock(&self.tally).rounds += 1;
        }
        Ok(())
    }

    fn reserve(&self, tenant: TenantId, tokens: u64) -> Reserve {
        let id = ReservationId::from_parts(at_ms(), rand::random());
        let request = Request {
            tenant,
            user: None,
            route: self.load.route.clone(),
            model: None,
            region: None,
            amounts: Amounts::NONE.with(Unit::Tokens, tokens),
            minimum: Amounts::NONE,
            hold_ttl_ms: None,
        };
        // The client counts the attempts, and the member that takes the call computes the digest.
        Reserve { id, attempt: 1, request, request_digest: [0; 32], key: None }
    }

    async fn submit(&self, command: Command) -> Result<(), ()> {
        let begun = Instant::now();
        let answer = self.client.submit(command).await;
        if self.counts(begun) {
            let mut tally = lock(&self.tally);
            tally.waited(begun.elapsed());
            match &answer {
                Ok(_) => tally.operations += u64::from(self.in_time()),
                Err(error) => tally.failed(kind(error)),
            }
        }
        answer.map(drop).map_err(drop)
    }

    fn counts(&self, begun: Instant) -> bool {
        begun >= self.load.count_from && begun <= self.load.until
    }

    fn in_time(&self) -> bool {
        Instant::now() <= self.load.until
    }
}

/// The word an error is counted under.
fn kind(error: &CallError) -> &'static str {
    match error {
        CallError::Unknown(_) => "unknown",
        other => other.reason().map_or("unknown", |reason| reason.as_str()),
    }
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
