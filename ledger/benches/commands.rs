//! Reserve + settle commands per second on the pure book, one core: three levels × two units, so that each
//! reservation has six legs. `cargo bench -p holdfast-ledger` prints commands/s as criterion's throughput.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast_ledger::answer::Answer;
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Request, Reserve, Settle, Start};
use holdfast_ledger::ids::{OperationId, TenantId, UserId};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId, Unit};

const PLAN: &str = "
schema: admissionBudget.v1
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

/// Book time between entries: what 256 commands at about 1 000 000 a second take.
const STEP_US: u64 = 256;

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
            document: PLAN.into(),
            plan: Arc::new(Plan::parse(PLAN).unwrap()),
            actor: "bench".parse().unwrap(),
        });
        load.apply(&[publish]);
        load
    }

    /// Entries of reserves, starts and settles for `pairs` reservations.
    fn entries(&mut self, pairs: usize) -> Vec<Vec<Command>> {
        let mut entries = Vec::new();
        let mut left = pairs;
        while left > 0 {
            let size = left.min(ENTRY);
            left -= size;
            let time_ms = (self.now_us + STEP_US * 3 * entries.len() as u64) / 1000;
            let ids: Vec<ReservationId> =
                (0..size).map(|i| ReservationId::from_parts(time_ms, self.next + i as u128)).collect();
            let reserve = |(i, id): (usize, &ReservationId)| {
                let request = self.requests[(self.next as usize + i) % self.requests.len()].clone();
                let request_digest = [7; 32];
                Command::Reserve(Reserve { id: *id, attempt: 1, request, request_digest })
            };
            entries.push(ids.iter().enumerate().map(reserve).collect());
            let start =
                |id: &ReservationId| Command::Start(Start { id: *id, operation: self.operation.clone() });
            entries.push(ids.iter().map(start).collect());
            let actual = Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 300);
            let settle = |id: &ReservationId| {
                Command::Settle(Settle { id: *id, operation: self.operation.clone(), actual })
            };
            entries.push(ids.iter().map(settle).collect());
            self.next += size as u128;
        }
        entries
    }

    fn apply(&mut self, commands: &[Command]) -> usize {
        self.index += 1;
        self.now_us += STEP_US;
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

    /// Applies the entries; how long the reserves and settles took. Starts are applied outside of the measured time.
    fn measure(&mut self, pairs: usize) -> Duration {
        let mut took = Duration::ZERO;
        for commands in self.entries(pairs) {
            let is_start = matches!(commands.first(), Some(Command::Start(_)));
            let begun = Instant::now();
            self.apply(&commands);
            if !is_start {
                took += begun.elapsed();
            }
        }
        took
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
        hold_ttl_ms: None,
    }
}

/// Reservations per measured round.
const PAIRS: usize = 64 * ENTRY;

fn reserve_and_settle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reserve+settle");
    group.throughput(Throughput::Elements(2 * PAIRS as u64));
    for (name, accounts) in [("1000 accounts", 1000), ("one hot account", 1)] {
        let mut load = Load::new(accounts);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| load.measure(PAIRS)).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, reserve_and_settle);
criterion_main!(benches);
