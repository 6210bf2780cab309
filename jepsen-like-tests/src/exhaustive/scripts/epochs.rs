//! Epochs that end while something is held.

use holdfast_ledger::ReservationId;

use super::super::Script;
use super::super::script::*;
use super::{minute, plan, rate};

/// An id made just before the first minute ends: too early for the begin, and good over the end.
fn late(number: u8) -> ReservationId {
    ReservationId::from_parts(BEGIN_MS + 59_990, u128::from(number))
}

fn life(number: u8, held: u64, used: u64) -> [Step; 3] {
    [reserve(number, ACME, held), start(number, "op"), settle(number, "op", used)]
}

/// The same under an id of the first minute's end.
fn late_life(number: u8, who: Who, held: u64, used: u64) -> [Step; 3] {
    [reserve_id(late(number), who, held), start_id(late(number), "op"), settle_id(late(number), "op", used)]
}

pub(super) fn scripts() -> Vec<Script> {
    let with = |carry_over, carry_debt| vec![plan(vec![minute(1_000, carry_over, carry_debt)])];
    let rolls = || [tick().after(59_999), tick().after(1), tick()];
    let third = ReservationId::from_parts(BEGIN_MS + 149_000, 9);
    vec![
        Script::new("a hold over the end of its epoch", with(0, true), vec![])
            .client(life(1, 600, 600))
            .client(rolls())
            .client(late_life(2, ACME, 600, 600))
            .client([tick(), tick(), tick()])
            .always("a started one is settled", |o| o.at(0, 1) != "STARTED" || o.at(0, 2) == "SETTLED")
            .sometimes("each in its own", |o| o.count("reserved") == 2)
            .sometimes("both in one", |o| o.count("held") + o.count("spent") == 1),
        Script::new("what is unused goes over, up to a bound", with(300, true), vec![])
            .client(life(1, 500, 500))
            .client(rolls())
            .client([reserve_id(late(2), ACME, 1_300), release_id(late(2)), tick()])
            .client([tick(), reserve_id(late(3), ACME, 1_301), tick()])
            .always("not more", |o| o.at(3, 1) != "reserved")
            .sometimes("all of it", |o| o.at(2, 0) == "reserved"),
        Script::new("debt over the end of its epoch", with(0, true), vec![])
            .client(life(1, 900, 1_400))
            .client(rolls())
            .client([reserve_id(late(2), ACME, 601), release_id(late(2)), tick()])
            .client([tick(), reserve_id(late(3), ACME, 600), release_id(late(3))])
            .sometimes("the next epoch repays first, and gives what is left", |o| {
                o.at(0, 2) == "SETTLED_WITH_DEBT" && o.at(3, 1) == "reserved" && o.at(2, 0) == "spent"
            }),
        Script::new("debt that ends with its epoch", with(0, false), vec![])
            .client(life(1, 900, 1_400))
            .client(rolls())
            .client([reserve_id(late(2), ACME, 1_000), release_id(late(2)), tick()])
            .client([tick(), reserve(3, ACME, 100), release(3)])
            .sometimes("the next one is whole", |o| {
                o.at(0, 2) == "SETTLED_WITH_DEBT" && o.at(2, 0) == "reserved"
            })
            .sometimes("suspended until then", |o| o.at(3, 1) == "debt"),
        Script::new("a refund after the end of its epoch", with(0, true), vec![])
            .client(life(1, 1_000, 100))
            .client(rolls())
            .client([reserve_id(late(2), ACME, 1_001), reserve_id(late(3), ACME, 1_000), release_id(late(3))])
            .client([tick(), reserve(4, ACME, 900), release(4)])
            .sometimes("in its epoch it comes back", |o| o.at(0, 2) == "SETTLED" && o.at(3, 1) == "reserved")
            .sometimes("the next one is whole", |o| o.at(0, 0) == "reserved" && o.at(2, 1) == "reserved")
            .always("it never gives more than one epoch's", |o| o.at(2, 0) != "reserved"),
        Script::new("an overrun after the end of its epoch", with(200, true), vec![])
            .client(life(1, 500, 800))
            .client(rolls())
            .client(late_life(2, ACME, 1_000, 1_000))
            .client([reserve(3, ACME, 100), release(3), tick()])
            .sometimes("the new one pays", |o| o.at(0, 2) == "SETTLED")
            .sometimes("it cannot", |o| o.at(0, 2) == "SETTLED_WITH_DEBT"),
        Script::new("two ends passed over", with(500, true), vec![])
            .client(life(1, 800, 1_900))
            .client([tick().after(150_000), tick(), tick().after(30_000)])
            .client([reserve_id(third, ACME, 1_100), release_id(third), tick()])
            .client([tick(), tick(), tick()])
            // 900 of debt: the second minute repays them and hands 100 on to the third.
            .sometimes("each repays and hands on", |o| {
                o.at(0, 2) == "SETTLED_WITH_DEBT" && o.at(2, 0) == "reserved"
            }),
        Script::new(
            "a publish at the end of an epoch",
            vec![plan(vec![minute(1_000, 400, true)]), plan(vec![minute(600, 400, true)])],
            vec![],
        )
        .client(life(1, 700, 300))
        .client([tick().after(59_999), publish(1).after(1), publish(0)])
        .client([reserve(2, ACME, 900), release(2), tick()])
        .client([tick(), tick(), tick()])
        .sometimes("before", |o| o.at(2, 0) == "reserved")
        .sometimes("not after", |o| o.at(2, 0) != "reserved"),
        Script::new("a rate fills up between reserves", vec![plan(vec![rate(2)])], vec![])
            .client([reserve(1, ACME, 1), reserve(2, ACME, 1), tick()])
            .client([tick().after(4_999), tick().after(5_000), tick().after(1)])
            .client([reserve(3, ACME, 1), tick(), tick()])
            .client([tick(), reserve(4, ACME, 1), tick()])
            .always("two at once, one more after ten seconds", |o| (2..=4).contains(&o.count("reserved")))
            .sometimes("three", |o| o.count("reserved") == 3)
            .sometimes("two", |o| o.count("reserved") == 2),
        Script::new(
            "one minute beside for ever",
            vec![plan(vec![total_user(), minute(1_000, 0, true)])],
            vec![],
        )
        .client([reserve(1, U1, 700), start(1, "op"), settle(1, "op", 700)])
        .client(rolls())
        .client(late_life(2, U1, 700, 700))
        .client([reserve(3, U2, 300), release(3), tick()])
        .always("the user's total does not begin again", |o| {
            !(o.at(0, 2) == "SETTLED" && o.at(2, 2) == "SETTLED")
        }),
    ]
}

fn total_user() -> crate::interleave::facts::Limit {
    super::user_total(1_200)
}
