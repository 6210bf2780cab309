//! One id, one debit.

use holdfast_ledger::ReservationId;

use super::super::Script;
use super::super::script::*;
use super::{plan, slots, total};

fn tokens_and_slots() -> Vec<crate::interleave::facts::Plan> {
    vec![plan(vec![total(1_000), slots(2)])]
}

pub(super) fn scripts() -> Vec<Script> {
    let same = || [reserve(1, ACME, 400), start(1, "op"), settle(1, "op", 100)];
    vec![
        Script::new("the same request four times", tokens_and_slots(), vec![])
            .client(same())
            .client(same())
            .client(same())
            .client(same())
            .always("one admission", |o| o.count("reserved") == 1)
            .always("every settlement is the same", |o| (0..4).all(|client| o.at(client, 2) == "SETTLED")),
        Script::new("one id, two requests", tokens_and_slots(), vec![])
            .client(same())
            .client([reserve(1, ACME, 300), start(1, "op"), settle(1, "op", 100)])
            .client([reserve(1, BRAVO, 400), reserve(1, BRAVO, 400), reserve(1, BRAVO, 400)])
            .client([reserve(2, ACME, 600), release(2), release(2)])
            .always("at most one admission of it", |o| {
                (0..3).filter(|client| o.at(*client, 0) == "reserved").count() == 1
            })
            .sometimes("the other tenant's", |o| o.at(2, 0) == "reserved" && o.at(0, 0) == "conflict"),
        Script::new("two operations start one hold", tokens_and_slots(), vec![])
            .client([reserve(1, ACME, 400), start(1, "a"), settle(1, "a", 100)])
            .client([start(1, "b"), settle(1, "b", 200), release(1)])
            .client([start(1, "a"), start(1, "b"), tick()])
            .client([reserve(2, ACME, 600), start(2, "a"), settle(2, "a", 600)])
            .always("not both are settled", |o| !(o.at(0, 2) == "SETTLED" && o.at(1, 1) == "SETTLED"))
            .sometimes("the second wins", |o| o.at(1, 1) == "SETTLED")
            .sometimes("the first wins", |o| o.at(0, 2) == "SETTLED" && o.at(1, 0) == "conflict"),
        Script::new("three executors report the same", tokens_and_slots(), vec![])
            .client(same())
            .client([settle(1, "op", 100), settle(1, "op", 100), settle(1, "op", 100)])
            .client([settle(1, "op", 100), settle(1, "op", 100), tick()])
            .client([reserve(2, ACME, 900), release(2), release(2)])
            .always("no conflict", |o| o.count("conflict") == 0)
            .sometimes("what was unused is there again", |o| o.at(3, 0) == "reserved"),
        Script::new("three executors report different things", tokens_and_slots(), vec![])
            .client([reserve(1, ACME, 400), start(1, "op"), settle(1, "op", 100)])
            .client([settle(1, "op", 200), settle(1, "op", 200), settle(1, "op", 200)])
            .client([settle(1, "op", 300), settle(1, "op", 300), tick()])
            .client([tick(), tick(), tick()])
            .always("the first one counts", |o| {
                let told = |client, step| o.at(client, step) == "SETTLED";
                let mine = told(0, 2);
                let second = (0..3).any(|step| told(1, step));
                let third = told(2, 0) || told(2, 1);
                u8::from(mine) + u8::from(second) + u8::from(third) == 1
            }),
        Script::new("release, again and late", tokens_and_slots(), vec![])
            .client([reserve(1, ACME, 1_000), release(1), release(1)])
            .client([release(1), release(1), reserve(1, ACME, 1_000)])
            .client([start(1, "op"), settle(1, "op", 1_000), release(1)])
            .client([reserve(2, ACME, 1), release(2), reserve(2, ACME, 1)])
            .always("a released id is not reserved again", |o| {
                o.at(1, 2) != "reserved" && o.at(3, 2) != "reserved"
            })
            .sometimes("the tombstone was first", |o| o.at(0, 0) == "not while RELEASED")
            .sometimes("the start was first", |o| o.at(2, 1) == "SETTLED"),
        Script::new("a tombstone against the reserve that is on its way", tokens_and_slots(), vec![])
            .client(same())
            .client([release(1), tick(), release(1)])
            .client([reserve(2, ACME, 1_000), start(2, "op"), settle(2, "op", 0)])
            .client([release(3), reserve(3, ACME, 1), release(3)])
            .always("after a tombstone nothing is held", |o| {
                o.at(1, 0) != "tombstone" || o.at(0, 0) != "reserved"
            })
            .always("also its own", |o| o.at(3, 1) == "not while RELEASED")
            .sometimes("the reserve is first", |o| o.at(1, 0) == "RELEASED"),
        Script::new("a release against a start", tokens_and_slots(), vec![])
            .client(same())
            .client([release(1), release(1), tick()])
            .client([reserve(2, ACME, 600), release(2), release(2)])
            .client([reserve(3, ACME, 600), release(3), release(3)])
            .always("released or settled, never both", |o| {
                let released = o.at(1, 0) == "RELEASED" || o.at(1, 1) == "RELEASED";
                !(released && o.at(0, 2) == "SETTLED")
            })
            .sometimes("released", |o| o.at(0, 1) == "not while RELEASED")
            .sometimes("settled", |o| o.at(1, 0) == "not while STARTED"),
        Script::new("an id comes again after it was forgotten", tokens_and_slots(), vec![])
            .client([reserve(1, ACME, 400), release(1), tick().after(26_000)])
            .client([tick(), reserve(1, ACME, 400), tick()])
            .client([release(1), tick(), reserve(1, ACME, 400)])
            .client([reserve(2, ACME, 100), tick(), release(2)])
            .always("it is held once at most", |o| {
                [o.at(0, 0), o.at(1, 1), o.at(2, 2)].iter().filter(|word| **word == "reserved").count() <= 1
            })
            .sometimes("it is too old by then", |o| o.at(2, 2) == "too old"),
        Script::new("ids from the future wait for their time", tokens_and_slots(), vec![])
            .client([future_id(9_000), future_id(9_000), future_id(9_000)])
            .client([tick().after(1_500), tick().after(1_500), start_future(9_000).after(1_500)])
            .client([reserve(1, ACME, 100), start(1, "op"), settle(1, "op", 100)])
            .client([future_id(4_000), release(2), tick()])
            .always("not before four seconds have passed", |o| o.at(1, 2) == "not found")
            .sometimes("in the future", |o| o.at(0, 0) == "in the future" && o.at(0, 2) == "reserved"),
        Script::new("a late repeat of a settled reserve", tokens_and_slots(), vec![])
            .client([reserve(1, ACME, 1_000), start(1, "op"), settle(1, "op", 1_000)])
            .client([reserve(1, ACME, 1_000), reserve(1, ACME, 1_000), reserve(1, ACME, 1_000)])
            .client([start(1, "op"), start(1, "op"), start(1, "op")])
            .client([reserve(2, ACME, 1), reserve(2, ACME, 1), reserve(2, ACME, 1)])
            .always("one admission at most", |o| {
                usize::from(o.at(0, 0) == "reserved") + (0..3).filter(|s| o.at(1, *s) == "reserved").count()
                    <= 1
            })
            .sometimes("it finds it settled", |o| o.at(1, 2) == "SETTLED"),
    ]
}

fn future(ahead_ms: u64) -> ReservationId {
    ReservationId::from_parts(BEGIN_MS + ahead_ms, 99)
}

fn future_id(ahead_ms: u64) -> Step {
    reserve_id(future(ahead_ms), ACME, 10)
}

/// Finds the id only if it was admitted before.
fn start_future(ahead_ms: u64) -> Step {
    start_id(future(ahead_ms), "op")
}
