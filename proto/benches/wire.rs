//! What a command costs on its way: wire to ledger, ledger to log entry, log entry to ledger, answer to wire.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast_ledger::answer::{Hold, LegReceipt, Receipt, State, Tier};
use holdfast_ledger::command::{Request, Reserve, Settle};
use holdfast_ledger::plan::Level;
use holdfast_ledger::record::Subject;
use holdfast_ledger::{Amounts, Command, ReservationId, Unit};
use holdfast_proto::answers::encode_answer;
use holdfast_proto::commands::{decode_batched, encode_batched};
use holdfast_proto::ledger::answer::Answer;
use holdfast_proto::log::{decode_entry, encode_entry};
use holdfast_proto::v1;
use prost::Message;

/// As many as a busy entry holds.
const COMMANDS: usize = 256;

fn parse<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().expect("a valid name")
}

fn reserve(at: usize) -> Command {
    let request = Request {
        tenant: parse("acme"),
        user: Some(parse(&format!("user-{at}"))),
        route: parse("chat.generate"),
        model: Some(parse("large-2")),
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, 600).with(Unit::Micros, 90_000),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    };
    let request_digest = request.digest();
    let id = ReservationId::from_parts(1_800_000_000_000, at as u128);
    Command::Reserve(Reserve { id, attempt: 1, request, request_digest, key: None })
}

fn settle(at: usize) -> Command {
    Command::Settle(Settle {
        id: ReservationId::from_parts(1_800_000_000_000, at as u128),
        operation: parse("operation-00001"),
        actual: Amounts::NONE.with(Unit::Tokens, 200).with(Unit::Micros, 30_000),
        estimated: false,
    })
}

fn receipt() -> Answer {
    let leg = |level, unit| LegReceipt {
        limit: parse("tenant-tokens-month"),
        level,
        unit,
        amount: 600,
        generation: 3,
        epoch_start_ms: Some(1_800_000_000_000),
    };
    let mut legs = Vec::new();
    for unit in [Unit::Requests, Unit::Tokens] {
        legs.extend([Level::Global, Level::Tenant, Level::User].map(|level| leg(level, unit)));
    }
    let subject = Subject { tenant: parse("acme"), user: Some(parse("user-1")), route: parse("chat") };
    let receipt = Receipt {
        id: ReservationId::from_parts(1_800_000_000_000, 7),
        state: State::Reserved,
        hold: Hold::new(subject, legs.into()).into(),
        request_digest: [7; 32],
        generation: 3,
        tier: Tier::Normal,
        reserved: Amounts::NONE.with(Unit::Requests, 1).with(Unit::Tokens, 600),
        reserved_at_ms: 1_800_000_000_000,
        reserved_revision: 12_345_678,
        expires_at_ms: 1_800_000_030_000,
        operation: None,
        started_at_ms: None,
        actual: None,
        ended_at_ms: None,
        ended_revision: None,
        debt: Amounts::NONE,
        shadow: None,
        extras: None,
    };
    Answer::Reservation(receipt.into())
}

fn wire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wire");
    group.throughput(Throughput::Elements(COMMANDS as u64));
    for (name, make) in [("reserve", reserve as fn(usize) -> Command), ("settle", settle)] {
        let commands: Vec<Command> = (0..COMMANDS).map(make).collect();
        let payload = encode_entry(1, &[], &commands);
        group.bench_function(format!("{name}: command to log"), |b| {
            b.iter(|| black_box(encode_entry(1, &[], black_box(&commands))));
        });
        group.bench_function(format!("{name}: log to command"), |b| {
            b.iter(|| black_box(decode_entry(payload.clone(), 1, 1)).is_ok());
        });
        let batch = v1::BatchRequest {
            commands: commands
                .iter()
                .map(|command| v1::BatchCommand { command: encode_batched(command), ..Default::default() })
                .collect(),
        };
        let bytes = bytes::Bytes::from(batch.encode_to_vec());
        group.bench_function(format!("{name}: wire to command"), |b| {
            b.iter(|| {
                let batch = v1::BatchRequest::decode(bytes.clone()).expect("valid bytes");
                let commands: Vec<_> = batch.commands.iter().map(decode_batched).collect();
                black_box(commands)
            });
        });
    }
    let answer = receipt();
    group.bench_function("receipt of six legs to wire", |b| {
        b.iter(|| {
            let answers = (0..COMMANDS).map(|_| encode_answer(&answer, 1, None).expect("a receipt"));
            let bytes: usize = answers.map(|answer| answer.encode_to_vec().len()).sum();
            black_box(bytes)
        });
    });
    group.finish();
}

criterion_group!(benches, wire);
criterion_main!(benches);
