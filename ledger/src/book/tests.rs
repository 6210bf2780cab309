//! Every check of the account equation fires: a column is corrupted, and the next command on the account stops.

#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::book::Book;
use crate::book::lineage::take;
use crate::command::{
    Command, EntryHeader, EpochBounds, PublishPlan, Release, Request, Reserve, SetTenant, Settle, Start,
};
use crate::event::Effect;
use crate::ids::ReservationId;
use crate::limits::{GENERATIONS_KEPT_MAX, PLANS_KEPT_MAX};
use crate::plan::{Calendar, Override, Plan, TenantRecord};
use crate::query::ViolatedRule;
use crate::record::{Columns, Lineage, Record, RestoreError};
use crate::unit::{Amounts, Unit};

const PLAN: &str = "
schema: admissionBudget.v1
routes:
  - name: chat
limits:
  rate: { scope: tenant, unit: requests, bucket: { amount: 10, per: 1s } }
  total: { scope: tenant, unit: tokens, period: { limit: 100, every: 1h } }
";

const NOW_MS: u64 = 1_800_000_000_000;

fn entry(book: &mut Book, stamp_ms: u64, command: Command) -> crate::Answer {
    let (index, term) = (book.applied().0 + 1, 1);
    let header = EntryHeader { index, term, stamp_ms, epoch_bounds: Vec::new() };
    book.apply_entry(&header, &[command]).remove(0)
}

fn reserve(number: u128, tokens: u64) -> Command {
    let request = Request {
        tenant: "acme".parse().unwrap(),
        user: None,
        route: "chat".parse().unwrap(),
        model: None,
        region: None,
        amounts: Amounts::NONE.with(Unit::Tokens, tokens),
        minimum: Amounts::NONE,
        hold_ttl_ms: None,
    };
    let request_digest = request.digest();
    Command::Reserve(Reserve {
        id: ReservationId::from_parts(NOW_MS, number),
        attempt: 1,
        request,
        request_digest,
        key: None,
    })
}

fn release(number: u128) -> Command {
    Command::Release(Release { id: ReservationId::from_parts(NOW_MS, number) })
}

fn publish(document: &str) -> Command {
    Command::PublishPlan(PublishPlan {
        expected_generation: None,
        force: false,
        document: document.into(),
        plan: Arc::new(Plan::parse(document).unwrap()),
        actor: "test".parse().unwrap(),
    })
}

/// A book with 40 tokens and one request held.
fn book() -> Book {
    let mut book = Book::new();
    entry(&mut book, NOW_MS, publish(PLAN));
    entry(&mut book, NOW_MS, reserve(1, 40));
    assert!(book.audit().ok);
    book
}

fn slot(book: &Book, limit: &str) -> u32 {
    book.lineages.iter().find(|(_, row)| row.key.limit.as_str() == limit).unwrap().0
}

/// What the book says when an account was corrupted and is touched again; and what the audit says before that.
fn panic_after(
    limit: &str,
    command: Command,
    corrupt: impl FnOnce(&mut Lineage),
) -> (String, Vec<ViolatedRule>) {
    let mut book = book();
    let slot = slot(&book, limit);
    corrupt(book.lineages.get_mut(slot));
    let found = book.audit().violations.into_iter().map(|violation| violation.rule).collect();
    let stopped = catch_unwind(AssertUnwindSafe(|| entry(&mut book, NOW_MS, command)));
    let payload = stopped.expect_err("the book went on with a wrong account");
    let text = payload.downcast_ref::<String>().cloned();
    (text.unwrap_or_else(|| (*payload.downcast_ref::<&str>().unwrap()).to_owned()), found)
}

#[test]
fn c1_units_from_nowhere() {
    let (text, audit) = panic_after("rate", reserve(2, 1), |row| row.current.columns.available -= 1);
    assert!(text.starts_with("C1 at rate tenant=acme account 0") && text.contains("available"), "{text}");
    assert!(audit.contains(&ViolatedRule::C1), "{audit:?}");
}

#[test]
fn c2_a_column_below_zero() {
    let (text, _) = panic_after("rate", release(1), |row| row.current.columns.reserved = 0);
    assert!(text.starts_with("C2: column reserved holds 0"), "{text}");
    assert!(catch_unwind(|| take(&mut 1, 2, "spent")).is_err());
}

#[test]
fn c3_a_column_that_shrinks() {
    let mut book = book();
    let slot = slot(&book, "total");
    book.note_lineage(slot);
    let columns = &mut book.lineages.get_mut(slot).current.columns;
    columns.granted -= 10;
    columns.available -= 10;
    let stopped = catch_unwind(AssertUnwindSafe(|| book.assert_touched()));
    let text = stopped.unwrap_err().downcast_ref::<String>().cloned().unwrap();
    assert!(text.starts_with("C3 at total tenant=acme account 0: granted shrank from 100 to 90"), "{text}");
}

/// A command that holds a unit on an account without a leg, as a bug would.
#[test]
fn c4_reserved_is_not_the_sum_of_the_legs() {
    let mut book = book();
    let slot = slot(&book, "rate");
    book.note_lineage(slot);
    let columns = &mut book.lineages.get_mut(slot).current.columns;
    columns.reserved += 1;
    columns.available -= 1;
    let stopped = catch_unwind(AssertUnwindSafe(|| book.assert_touched()));
    let text = stopped.unwrap_err().downcast_ref::<String>().cloned().unwrap();
    assert!(text.starts_with("C4: accounts hold [2, 40, 0, 0], open reservations [1, 40, 0, 0]"), "{text}");
    let rules: Vec<_> = book.audit().violations.into_iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&ViolatedRule::C4), "{rules:?}");
}

#[test]
fn c5_units_of_shards_that_nobody_has() {
    let (_, audit) = panic_after("total", release(1), |row| {
        row.current.columns.to_shards += 5;
        row.current.columns.available -= 5;
        row.current.columns.reserved = 0;
    });
    assert!(audit.contains(&ViolatedRule::C5), "{audit:?}");
}

#[test]
fn c6_something_available_in_debt() {
    let (text, audit) = panic_after("rate", reserve(2, 1), |row| row.debt = 1_000_000);
    assert!(text.starts_with("C6 at rate tenant=acme account 0: debt"), "{text}");
    assert!(audit.contains(&ViolatedRule::C6) && audit.contains(&ViolatedRule::Index), "{audit:?}");
}

#[test]
fn c7_more_available_than_the_rule_gives() {
    let (text, audit) = panic_after("total", reserve(2, 1), |row| {
        row.current.columns.granted += 5;
        row.current.columns.available += 5;
    });
    assert!(text.starts_with("C7 at total tenant=acme account 0: available"), "{text}");
    assert!(audit.contains(&ViolatedRule::C7), "{audit:?}");
}

#[test]
fn c8_more_than_the_burst() {
    let (text, audit) = panic_after("rate", reserve(2, 1), |row| {
        row.current.columns.granted += 5;
        row.current.columns.available += 5;
    });
    assert!(
        text.starts_with("C8 at rate tenant=acme account 0: available 13 is over the burst 10"),
        "{text}"
    );
    assert!(audit.contains(&ViolatedRule::C8), "{audit:?}");
}

#[test]
fn c9_an_opening_that_nobody_carried_forward() {
    let mut book = book();
    let lower = PLAN.replace("limit: 100", "limit: 50");
    entry(&mut book, NOW_MS, publish(&lower));
    entry(&mut book, NOW_MS, reserve(2, 1));
    assert!(book.audit().ok);
    let slot = slot(&book, "total");
    let columns = &mut book.lineages.get_mut(slot).current.columns;
    columns.opening += 1;
    columns.forfeited += 1;
    let rules: Vec<_> = book.audit().violations.into_iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&ViolatedRule::C9), "{rules:?}");
}

/// A second generation within the epoch, with a hold on the first one's account.
fn two_generations() -> Book {
    let mut book = book();
    let lower = PLAN.replace("limit: 100", "limit: 90");
    entry(&mut book, NOW_MS, publish(&lower));
    entry(&mut book, NOW_MS, reserve(2, 1));
    assert!(book.audit().ok, "{:#?}", book.audit().violations);
    book
}

fn violated(book: &Book) -> Vec<ViolatedRule> {
    book.audit().violations.into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn c9_units_that_moved_in_from_nowhere() {
    let mut book = two_generations();
    let slot = slot(&book, "total");
    let columns = &mut book.lineages.get_mut(slot).current.columns;
    columns.moved_in += 1;
    columns.forfeited += 1;
    assert!(violated(&book).contains(&ViolatedRule::C9));
}

#[test]
fn c9_units_that_were_carried_to_nobody() {
    let mut book = two_generations();
    let (closed, _) = book.closed.iter().next().unwrap();
    let columns = &mut book.closed.get_mut(closed).account.columns;
    let most = columns.forfeited.min(1);
    assert_eq!(most, 1, "something was forfeited at the change");
    columns.forfeited -= 1;
    columns.carried_forward += 1;
    assert!(violated(&book).contains(&ViolatedRule::C9));
}

#[test]
fn c9_a_closed_account_that_holds_on_to_something() {
    let mut book = two_generations();
    let (closed, _) = book.closed.iter().next().unwrap();
    let columns = &mut book.closed.get_mut(closed).account.columns;
    columns.forfeited -= 1;
    columns.available += 1;
    assert!(violated(&book).contains(&ViolatedRule::C9));
}

/// What the audit adds up over an epoch: a debt that only the lineage claims is not among them.
#[test]
fn c7_a_debt_of_earlier_accounts_that_nobody_made() {
    let mut book = two_generations();
    let slot = slot(&book, "total");
    let row = book.lineages.get_mut(slot);
    // Next to usage that is not there either, so that C7 holds on the lineage by itself.
    row.past_debt += 1;
    row.past_used += 1;
    row.archived_used += 1;
    assert!(violated(&book).contains(&ViolatedRule::C7));
}

#[test]
fn c9_an_epoch_that_opens_with_less_than_was_carried() {
    const HOUR_MS: u64 = 3_600_000;
    let mut book = Book::new();
    entry(&mut book, NOW_MS, publish(&PLAN.replace("limit: 100", "limit: 100, carry_over: 10")));
    entry(&mut book, NOW_MS, reserve(1, 40));
    let Command::Reserve(mut next) = reserve(1, 40) else { unreachable!() };
    next.id = ReservationId::from_parts(NOW_MS + HOUR_MS, 1);
    entry(&mut book, NOW_MS + HOUR_MS, Command::Reserve(next));
    assert!(book.audit().ok, "{:#?}", book.audit().violations);
    let (closed, _) = book.closed.iter().next().unwrap();
    let columns = &mut book.closed.get_mut(closed).account.columns;
    assert_eq!(columns.carried_forward, 10);
    columns.forfeited -= 1;
    columns.carried_forward += 1;
    assert!(violated(&book).contains(&ViolatedRule::C9));
}

#[test]
fn the_digest_notices_a_row_that_was_not_written_by_a_command() {
    let mut book = book();
    let slot = slot(&book, "total");
    book.lineages.get_mut(slot).current.legs += 1;
    let rules: Vec<_> = book.audit().violations.into_iter().map(|violation| violation.rule).collect();
    assert!(rules.contains(&ViolatedRule::Digest) && rules.contains(&ViolatedRule::Index), "{rules:?}");
}

#[test]
fn sums_of_columns_are_by_unit() {
    let report = book().audit();
    let tokens = report.sums[Unit::Tokens as usize];
    assert_eq!(tokens, Columns { granted: 100, available: 60, reserved: 40, ..Columns::default() });
}

#[test]
fn a_snapshot_is_not_changed_by_what_follows_it() {
    let mut book = book();
    let snapshot = book.snapshot();
    let digest = book.digest();
    for number in 2..200 {
        entry(&mut book, NOW_MS + 100 * number as u64, reserve(number, 1));
        entry(&mut book, NOW_MS + 100 * number as u64, release(number));
    }
    assert_ne!(book.digest(), digest);
    let restored = Book::restore(snapshot.records()).unwrap();
    assert_eq!(restored.digest(), digest);
    assert!(restored.audit().ok);
}

/// A lineage is forgotten and opened again in the same place, by the request of another user: what the first
/// user's receipts said of it before is no longer true.
#[test]
fn receipts_name_the_epoch_of_the_row_that_is_there_now() {
    const SHORT: &str = "
schema: admissionBudget.v1
id_window: 10s
routes:
  - name: chat
limits:
  total: { scope: tenant, unit: tokens, period: { limit: 100, every: 1h } }
";
    const HOUR_MS: u64 = 3_600_000;
    let mut book = Book::new();
    entry(&mut book, NOW_MS, publish(SHORT));
    let mut epoch_of = |user: &str, hours: u64| {
        let now_ms = NOW_MS + hours * HOUR_MS;
        let Command::Reserve(mut reserve) = reserve(1, 40) else { unreachable!() };
        reserve.id = ReservationId::from_parts(now_ms, user.len() as u128);
        reserve.request.user = Some(user.parse().unwrap());
        reserve.request_digest = reserve.request.digest();
        let id = reserve.id;
        let crate::Answer::Reservation(receipt) = entry(&mut book, now_ms, Command::Reserve(reserve)) else {
            panic!("{user} was refused")
        };
        entry(&mut book, now_ms, Command::Release(Release { id }));
        receipt.hold.legs[0].epoch_start_ms
    };
    let now = |hours: u64| Some((NOW_MS + hours * HOUR_MS) / HOUR_MS * HOUR_MS);
    assert_eq!([epoch_of("ada", 10), epoch_of("bobby", 10)], [now(10), now(10)]);
    // Half a day without use: the book forgets the reservations and then the lineage.
    assert_eq!(epoch_of("bobby", 20), now(20));
    assert_eq!(epoch_of("ada", 20), now(20));
}

#[test]
fn records_that_make_no_book_are_refused() {
    let snapshot = book().snapshot();
    let records = || snapshot.records();
    let error = |records: Vec<Record>| Book::restore(records.into_iter()).unwrap_err();
    assert_eq!(error(Vec::new()), RestoreError::Header);
    assert_eq!(error(records().skip(1).collect()), RestoreError::Header);
    let short: Vec<_> = records().take(3).collect();
    assert!(matches!(error(short), RestoreError::Records { .. }));
    let no_lineages = records().filter(|record| !matches!(record, Record::Lineage(..))).collect();
    assert!(matches!(error(no_lineages), RestoreError::Dangling(_)));
    let twice = records().flat_map(|record| match record {
        Record::Lineage(..) => vec![record.clone(), record],
        _ => vec![record],
    });
    assert!(matches!(error(twice.collect()), RestoreError::Duplicate(_)));
    let changed = records().map(|record| match record {
        Record::Lineage(slot, mut row) => {
            row.current.columns.spent += 1;
            Record::Lineage(slot, row)
        }
        other => other,
    });
    assert!(matches!(error(changed.collect()), RestoreError::Digest { .. }));
    let newer = records().map(|record| match record {
        Record::Header(mut header) => {
            header.rules_version = 99;
            Record::Header(header)
        }
        other => other,
    });
    assert_eq!(error(newer.collect()), RestoreError::RulesVersion(99));
}

#[test]
fn the_rules_version_of_a_newer_ledger_stops_this_one() {
    let mut book = book();
    let raise = Command::RaiseRules { rules_version: 2 };
    assert!(catch_unwind(AssertUnwindSafe(|| entry(&mut book, NOW_MS, raise))).is_err());
}

/// Found by interleavings: what was used of a withdrawn limit left the book without a statement.
#[test]
fn the_usage_of_a_withdrawn_limit_is_told_before_it_is_dropped() {
    let mut book = book();
    let id = ReservationId::from_parts(NOW_MS, 1);
    let operation: crate::ids::OperationId = "op".parse().unwrap();
    entry(&mut book, NOW_MS, Command::Start(Start { id, operation: operation.clone() }));
    let actual = Amounts::NONE.with(Unit::Tokens, 30);
    entry(&mut book, NOW_MS, Command::Settle(Settle { id, operation, actual, estimated: false }));
    let start = PLAN.find("  total:").unwrap();
    let without = &PLAN[..start];
    let publish = Command::PublishPlan(PublishPlan {
        expected_generation: None,
        document: without.into(),
        plan: Arc::new(Plan::parse(without).unwrap()),
        actor: "test".parse().unwrap(),
        force: true,
    });
    entry(&mut book, NOW_MS, publish);
    let mut told = Vec::new();
    for hours in 1..4 {
        entry(&mut book, NOW_MS + hours * 3_600_000, Command::Tick);
        let effects = book.drain_effects().into_iter();
        told.extend(effects.filter_map(|effect| match effect {
            Effect::Statement(statement) if statement.lineage.limit.as_str() == "total" => {
                Some(statement.columns.spent)
            }
            _ => None,
        }));
    }
    assert!(book.lineages.iter().all(|(_, row)| row.key.limit.as_str() != "total"), "it was not dropped");
    assert_eq!(told, [30]);
}

/// The history of generations is bounded, and what an open reservation was admitted under is kept.
#[test]
fn old_generations_are_dropped_but_not_those_in_use() {
    let mut book = book();
    for round in 0..200_u64 {
        let changed = PLAN.replace("limit: 100", &format!("limit: {}", 101 + round));
        let publish = Command::PublishPlan(PublishPlan {
            expected_generation: Some(book.generation()),
            force: false,
            document: changed.as_str().into(),
            plan: Arc::new(Plan::parse(&changed).unwrap()),
            actor: "test".parse().unwrap(),
        });
        assert!(matches!(entry(&mut book, NOW_MS, publish), crate::Answer::Published { changed: true, .. }));
    }
    assert!(book.plans().count() <= PLANS_KEPT_MAX + 1, "{} plans are kept", book.plans().count());
    assert_eq!(book.plans().next().unwrap().generation, 1, "the plan of the open reservation is gone");
    for round in 0..=GENERATIONS_KEPT_MAX as u64 + 1 {
        let limit = "total".parse().unwrap();
        let amount = Override::Amount { amount: 50 + round % 2, burst: None };
        let record = TenantRecord { overrides: [(limit, amount)].into(), ..TenantRecord::default() };
        let set = Command::SetTenant(SetTenant {
            tenant: "acme".parse().unwrap(),
            record: Some(Arc::new(record)),
            expected_generation: None,
            actor: "test".parse().unwrap(),
        });
        assert!(matches!(entry(&mut book, NOW_MS, set), crate::Answer::Published { changed: true, .. }));
    }
    assert_eq!(book.generations.versions, 1);
    let report = book.audit();
    assert!(report.ok, "{:#?}", report.violations);
    let restored = Book::restore(book.snapshot().records()).unwrap();
    assert_eq!(restored.digest(), book.digest());
    // 40 of 51 are held by the first reservation still.
    assert!(matches!(entry(&mut book, NOW_MS, reserve(2, 12)), crate::Answer::Refused(_)));
    assert!(matches!(entry(&mut book, NOW_MS, reserve(3, 11)), crate::Answer::Reservation(_)));
    assert!(matches!(entry(&mut book, NOW_MS, release(1)), crate::Answer::Reservation(_)));
}

/// The plan with a total that rolls over each day.
fn daily(limit: u64, window_s: u64) -> String {
    let daily = format!("period: {{ limit: {limit}, every: day, carry_over: 150 }}");
    let window = format!("schema: admissionBudget.v1\nid_window: {window_s}s");
    PLAN.replace("period: { limit: 100, every: 1h }", &daily).replace("schema: admissionBudget.v1", &window)
}

/// Publishes at an instant; the leader brings the bounds of the days along.
fn publish_at(book: &mut Book, stamp_ms: u64, document: &str) {
    let plan = Arc::new(Plan::parse(document).unwrap());
    let publish = Command::PublishPlan(PublishPlan {
        expected_generation: None,
        force: false,
        document: document.into(),
        plan: Arc::clone(&plan),
        actor: "test".parse().unwrap(),
    });
    let day = |ms: u64| ms / DAY_MS * DAY_MS;
    let bounds = |calendar: Arc<Calendar>| {
        let known = book.calendars.known_until_ms(&calendar);
        let from = known.map_or(day(stamp_ms), |known| known - DAY_MS);
        let bounds_ms = (from..=day(stamp_ms) + 2 * DAY_MS).step_by(DAY_MS as usize).collect();
        EpochBounds { calendar, bounds_ms }
    };
    let calendars = plan.calendars().into_iter().filter(|calendar| calendar.period.wants_bounds());
    let epoch_bounds = calendars.map(bounds).collect();
    let header = EntryHeader { index: book.applied().0 + 1, term: 1, stamp_ms, epoch_bounds };
    let answer = book.apply_entry(&header, &[publish]).remove(0);
    assert!(matches!(answer, crate::Answer::Published { changed: true, .. }), "{answer:?}");
}

const DAY_MS: u64 = 24 * 3_600_000;

/// Bounds go once neither a lineage nor the replay of one that was never seen can ask for them; nothing else changes.
#[test]
fn bounds_that_nothing_can_need_are_pruned() {
    let mut book = Book::new();
    let of = |book: &Book, tenant: &str| book.quota(&tenant.parse().unwrap(), None, book.clock_ms() + DAY_MS);
    for day in 0..300 {
        publish_at(&mut book, NOW_MS + day * DAY_MS, &daily(100 + day % 7, 900));
        if day == 150 {
            let id = ReservationId::from_parts(book.clock_ms(), 1);
            let Command::Reserve(mut used) = reserve(1, 40) else { unreachable!() };
            used.id = id;
            let at_ms = book.clock_ms();
            let answer = entry(&mut book, at_ms, Command::Reserve(used));
            assert!(matches!(answer, crate::Answer::Reservation(_)), "{answer:?}");
        }
        let before = [of(&book, "acme"), of(&book, "never")];
        let held_before = book.calendars.rows.values().map(|bounds| bounds.len()).max();
        assert!(held_before <= Some(PLANS_KEPT_MAX + 4), "{held_before:?} bounds on day {day}");
        let digest = book.digest();
        book.prune_calendars();
        assert_eq!([of(&book, "acme"), of(&book, "never")], before, "day {day}");
        let restored = Book::restore(book.snapshot().records()).unwrap();
        assert_eq!(restored.digest(), book.digest(), "day {day}");
        assert!(
            day != 20 || digest == book.digest(),
            "while the first plan is kept, everything may be needed"
        );
    }
    // Without the limit nothing has days any more, once the plans that had it are gone, and its lineage.
    for round in 0..2 * PLANS_KEPT_MAX as u64 {
        let at_ms = NOW_MS + (400 + round) * DAY_MS;
        publish_at(&mut book, at_ms, &PLAN.replace("limit: 100", &format!("limit: {}", 100 + round)));
    }
    assert!(book.calendars.rows.keys().all(|calendar| !calendar.period.wants_bounds()));
    assert!(book.audit().ok);
}

/// Plans that were dropped may have had a shorter window than those that are kept.
#[test]
fn what_is_retained_is_complete_although_plans_are_missing() {
    let mut book = Book::new();
    publish_at(&mut book, NOW_MS, &daily(100, 900));
    entry(&mut book, NOW_MS, reserve(1, 1));
    publish_at(&mut book, NOW_MS, &daily(101, 10));
    entry(&mut book, NOW_MS, reserve(2, 1));
    entry(&mut book, NOW_MS, release(2));
    let ended = book.revision();
    assert_eq!(book.snapshot().retained(9).complete_from_revision, 1);
    // From here on the id of the one that ended is too old to be taken anew, so that it may be forgotten.
    let later_ms = NOW_MS + 12_000;
    entry(&mut book, later_ms, Command::Tick);
    // The first plan stays, since a reservation under it is open; the second goes.
    for round in 0..2 * PLANS_KEPT_MAX as u64 {
        publish_at(&mut book, later_ms, &daily(200 + round, 900));
    }
    assert_eq!(book.plans().next().unwrap().generation, 1);
    let frozen = book.snapshot();
    let retained = frozen.retained(usize::MAX);
    assert!(retained.complete_from_revision <= ended);
    assert!(retained.filter(|effect| matches!(effect, Effect::Ended(_))).count() == 1);
    entry(&mut book, NOW_MS + 20_000, Command::Tick);
    let frozen = book.snapshot();
    let retained = frozen.retained(usize::MAX);
    assert!(retained.complete_from_revision > ended, "{retained:?}");
    assert!(retained.filter(|effect| matches!(effect, Effect::Ended(_))).count() == 0);
}
