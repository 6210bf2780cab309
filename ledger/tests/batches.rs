//! Field case 20: what hits come to does not depend on how many of them share a log entry.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use holdfast_ledger::answer::{Answer, Receipt};
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan, Request, Reserve};
use holdfast_ledger::query::QuotaLine;
use holdfast_ledger::record::{Header, Lane, Record};
use holdfast_ledger::{Amounts, Book, Plan, ReservationId};

const NOW_MS: u64 = 1_800_000_000_000;

fn plan(limit: u64) -> String {
    format!(
        "schema: admissionBudget.v1\nroutes:\n  - name: chat\nlimits:\n  \
         requests: {{ scope: tenant, unit: requests, period: {{ limit: {limit}, every: 1h }} }}\n  \
         pace: {{ scope: global, unit: requests, bucket: {{ amount: 1, per: 1h, burst: 100 }} }}\n  \
         at-once: {{ scope: tenant, unit: slots, concurrency: 100 }}\n"
    )
}

fn hit(n: u128) -> Command {
    let request = Request {
        tenant: "acme".parse().unwrap(),
        user: None,
        route: "chat".parse().unwrap(),
        model: None,
        region: None,
        amounts: Amounts::NONE,
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    };
    let request_digest = request.digest();
    Command::Reserve(Reserve {
        id: ReservationId::from_parts(NOW_MS, n),
        attempt: 1,
        request,
        request_digest,
        key: None,
    })
}

fn apply(book: &mut Book, commands: &[Command]) -> Vec<Answer> {
    let index = book.applied().0 + 1;
    let header = EntryHeader { index, term: 1, stamp_ms: NOW_MS, epoch_bounds: Vec::new() };
    book.apply_entry(&header, commands)
}

/// Everything that the hits have come to.
#[derive(Debug, PartialEq)]
struct Outcome {
    answers: Vec<Answer>,
    receipts: Vec<Option<Receipt>>,
    quotas: Vec<QuotaLine>,
    revision: u64,
    digest: u128,
    /// The whole book, but for the index of its last entry.
    records: Vec<Record>,
}

/// Ten hits, this many of them in each entry.
fn ten_hits(limit: u64, entries: &[usize]) -> Outcome {
    let mut book = Book::new();
    let document = plan(limit);
    let plan = Arc::new(Plan::parse(&document).unwrap());
    let publish = PublishPlan {
        document: document.into(),
        plan,
        expected_generation: None,
        force: false,
        actor: "ops".parse().unwrap(),
    };
    apply(&mut book, &[Command::PublishPlan(publish)]);
    let hits: Vec<_> = (1..=10).map(hit).collect();
    let (mut rest, mut answers) = (hits.as_slice(), Vec::new());
    for count in entries {
        let (now, later) = rest.split_at(*count);
        answers.extend(apply(&mut book, now));
        rest = later;
    }
    assert!(rest.is_empty());
    assert!(book.audit().ok);
    let mut quotas = book.quota(&"acme".parse().unwrap(), None, NOW_MS);
    quotas.extend(book.quota_global(Lane::Enforced, NOW_MS));
    let known = |n| book.reservation(ReservationId::from_parts(NOW_MS, n), NOW_MS);
    let receipts = (1..=10).map(known).collect();
    let (revision, digest) = (book.revision(), book.digest());
    let without_index = |record| match record {
        Record::Header(header) => Record::Header(Header { index: 0, ..header }),
        other => other,
    };
    let records = book.snapshot().records().map(without_index).collect();
    Outcome { answers, receipts, quotas, revision, digest, records }
}

#[test]
fn ten_hits_come_to_the_same_in_whatever_entries_they_stand() {
    for (limit, admitted) in [(100, 10), (7, 7)] {
        let apart = ten_hits(limit, &[1; 10]);
        assert_eq!(apart.receipts.iter().flatten().count(), admitted);
        let held = apart.quotas.iter().find(|line| line.limit.as_str() == "requests").unwrap().held;
        assert_eq!(held, admitted as u64);
        for entries in [&[3, 7][..], &[10], &[1, 0, 9]] {
            assert_eq!(ten_hits(limit, entries), apart, "{limit} with entries of {entries:?}");
        }
    }
}
