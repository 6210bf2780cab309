//! Reserve + settle commands per second on the pure book, one core: three levels × two units, so that each
//! reservation has six legs. Time is what the thread had a core for. `cargo bench -p holdfast-ledger` prints commands/s as criterion's throughput.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Request, Reserve, Settle, Start};
use holdfast_ledger::ids::{OperationId, TenantId, UserId};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId, Unit};

/// The allocator of the `holdfast` program, which the book runs with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PLAN: &str = "
schema: admissionBudget.v1
id_window: 10s
routes:
  - name: chat
limits:
  global-requests: { scope: global, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  global-tokens: { scope: global, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
  tenant-requests: { scope: tenant, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  tenant-tokens: { scope: tenant, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
  user-requests: { scope: tenant+user, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  user-tokens: { scope: tenant+user, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
";

/// Commands of an entry, as the proposer makes them under load.
const ENTRY: usize = 256;

/// Book time between measured entries. Ended reservations are remembered for 15 s, so that some 64 000 are: the book
/// is in its steady state, it does not just grow. Book time stands still for entries of starts, whose time does not
/// count: all forgetting is done with reserves and settles and charged to them in full.
const STEP_US: u64 = 30_000;

struct Load {
    book: Book,
    requests: Vec<Request>,
    operation: OperationId,
    now_us: u64,
    index: u64,
    next: u128,
}

impl Load {
    fn new(accounts: usize) -> Load {
        let mut load = Load {
            book: Book::new(),
            requests: (0..accounts).map(request).collect(),
            operation: "operation-1".parse().unwrap(),
            now_us: 1_800_000_000_000_000,
            index: 0,
            next: 0,
        };
        let publish = Command::PublishPlan(PublishPlan {
            expected_generation: None,
            force: false,
            document: PLAN.into(),
            plan: Arc::new(Plan::parse(PLAN).unwrap()),
            actor: "bench".parse().unwrap(),
        });
        load.apply(&[publish], STEP_US);
        load
    }

    /// The entries of a round: all its reserves, all its starts, all its settles.
    fn round(&mut self) -> [Vec<Vec<Command>>; 3] {
        let time_ms = self.now_us / 1000;
        let numbers = self.next..self.next + PAIRS as u128;
        self.next = numbers.end;
        let ids: Vec<ReservationId> =
            numbers.map(|number| ReservationId::from_parts(time_ms, number)).collect();
        let reserve = |(i, id): (usize, &ReservationId)| {
            let request = self.requests[i % self.requests.len()].clone();
            Command::Reserve(Reserve { id: *id, attempt: 1, request, request_digest: [7; 32], key: None })
        };
        let actual = Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 300);
        let start = |id: &ReservationId| Command::Start(Start { id: *id, operation: self.operation.clone() });
        let settle = |id: &ReservationId| {
            Command::Settle(Settle { id: *id, operation: self.operation.clone(), actual, estimated: false })
        };
        let entries = |commands: Vec<Command>| commands.chunks(ENTRY).map(<[Command]>::to_vec).collect();
        [
            entries(ids.iter().enumerate().map(reserve).collect()),
            entries(ids.iter().map(start).collect()),
            entries(ids.iter().map(settle).collect()),
        ]
    }

    fn apply(&mut self, commands: &[Command], step_us: u64) -> usize {
        self.index += 1;
        self.now_us += step_us;
        let header = EntryHeader {
            index: self.index,
            term: 1,
            stamp_ms: self.now_us / 1000,
            epoch_bounds: Vec::new(),
        };
        let answers = self.book.apply_entry(&header, commands);
        assert!(!answers.iter().any(|answer| matches!(answer, Answer::Refused(_))), "{:?}", answers.first());
        self.book.drain_effects();
        answers.len()
    }

    /// Plays a round; how much time its reserves and settles took. The starts between them are not measured.
    fn measure(&mut self) -> Duration {
        let [reserves, starts, settles] = self.round();
        let reserving = self.time(&reserves, STEP_US);
        self.time(&starts, 0);
        reserving + self.time(&settles, STEP_US)
    }

    fn time(&mut self, entries: &[Vec<Command>], step_us: u64) -> Duration {
        let begun = cpu_time();
        for commands in entries {
            self.apply(commands, step_us);
        }
        cpu_time() - begun
    }
}

/// Time that this thread has had a core, where the kernel tells it: on a machine that does other work too, the
/// wall clock would measure that work. Elsewhere the wall clock.
fn cpu_time() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = schedstat.as_ref().and_then(|text| text.split_whitespace().next()?.parse().ok());
    match nanos {
        Some(nanos) => Duration::from_nanos(nanos),
        None => BEGUN.get_or_init(Instant::now).elapsed(),
    }
}

fn request(account: usize) -> Request {
    let tenant: TenantId = format!("tenant-{}", account / 10).parse().unwrap();
    let user: UserId = format!("user-{account}").parse().unwrap();
    Request {
        tenant,
        user: Some(user),
        route: "chat".parse().unwrap(),
        model: None,
        region: None,
        amounts: Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 400),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    }
}

/// Reservations per measured round: as many are in flight at a time.
const PAIRS: usize = 16 * ENTRY;

/// Rounds whose rate is printed besides criterion's own figures.
const ROUNDS: usize = 400;

fn reserve_and_settle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reserve+settle");
    group.throughput(Throughput::Elements(2 * PAIRS as u64));
    for (name, accounts) in [("1000 accounts", 1000), ("one hot account", 1)] {
        let mut load = Load::new(accounts);
        for _ in 0..32 {
            load.measure();
        }
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| load.measure()).sum());
        });
        let took: Duration = (0..ROUNDS).map(|_| load.measure()).sum();
        let rate = (2 * PAIRS * ROUNDS) as f64 / took.as_secs_f64();
        println!("{name}: {rate:.0} reserve + settle commands/s over {ROUNDS} rounds");
    }
    group.finish();
}

criterion_group!(benches, reserve_and_settle);
criterion_main!(benches);
