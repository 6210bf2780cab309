//! Epochs that end while something is held.

use super::super::Script;
use super::super::script::*;
use super::{minute, plan, rate};

fn life(number: u8, held: u64, used: u64) -> [Step; 3] {
    [reserve(number, ACME, held), start(number, "op"), settle(number, "op", used)]
}

pub(super) fn scripts() -> Vec<Script> {
    let with = |carry_over, carry_debt| vec![plan(vec![minute(1_000, carry_over, carry_debt)])];
    let rolls = || [tick().after(59_999), tick().after(1), tick()];
    vec![
        Script::new("a hold over the end of its epoch", with(0, true), vec![])
            .client(life(1, 600, 600))
            .client(rolls())
            .client(life(2, 600, 600))
            .client([tick(), tick(), tick()])
            .always("a started one is settled", |o| o.at(0, 1) != "STARTED" || o.at(0, 2) == "SETTLED")
            .sometimes("each in its own", |o| o.count("reserved") == 2)
            .sometimes("both in one", |o| o.count("held") + o.count("spent") == 1),
        Script::new("what is unused goes over, up to a bound", with(300, true), vec![])
            .client(life(1, 500, 500))
            .client(rolls())
            .client([reserve(2, ACME, 1_300), release(2), tick()])
            .client([tick(), reserve(3, ACME, 1_301), tick()])
            .always("not more", |o| o.at(3, 1) != "reserved")
            .sometimes("all of it", |o| o.at(2, 0) == "reserved"),
        Script::new("debt over the end of its epoch", with(0, true), vec![])
            .client(life(1, 900, 1_400))
            .client(rolls())
            .client([reserve(2, ACME, 700), release(2), tick()])
            .client([tick(), reserve(3, ACME, 600), release(3)])
            .sometimes("the next epoch repays first", |o| {
                o.at(0, 2) == "SETTLED_WITH_DEBT" && (o.at(2, 0) == "spent" || o.at(2, 0) == "debt")
            })
            .sometimes("what is left of it", |o| o.at(3, 1) == "reserved"),
        Script::new("debt that ends with its epoch", with(0, false), vec![])
            .client(life(1, 900, 1_400))
            .client(rolls())
            .client([reserve(2, ACME, 1_000), release(2), tick()])
            .client([tick(), reserve(3, ACME, 100), release(3)])
            .sometimes("the next one is whole", |o| {
                o.at(0, 2) == "SETTLED_WITH_DEBT" && o.at(2, 0) == "reserved"
            })
            .sometimes("suspended until then", |o| o.at(3, 1) == "debt"),
        Script::new("a refund after the end of its epoch", with(0, true), vec![])
            .client(life(1, 1_000, 100))
            .client(rolls())
            .client([reserve(2, ACME, 1_000), release(2), tick()])
            .client([tick(), reserve(3, ACME, 900), release(3)])
            .sometimes("in its epoch it comes back", |o| o.at(3, 1) == "reserved")
            .always("it never gives more than one epoch's", |o| {
                !(o.at(2, 0) == "reserved" && o.at(0, 0) == "reserved" && o.at(1, 1).is_empty())
            }),
        Script::new("an overrun after the end of its epoch", with(200, true), vec![])
            .client(life(1, 500, 800))
            .client(rolls())
            .client([reserve(2, ACME, 1_000), start(2, "op"), settle(2, "op", 1_000)])
            .client([reserve(3, ACME, 100), release(3), tick()])
            .sometimes("the new one pays", |o| o.at(0, 2) == "SETTLED")
            .sometimes("it cannot", |o| o.at(0, 2) == "SETTLED_WITH_DEBT"),
        Script::new("two ends passed over", with(500, true), vec![])
            .client(life(1, 800, 1_900))
            .client([tick().after(150_000), tick(), tick().after(30_000)])
            .client([reserve(2, ACME, 500), release(2), tick()])
            .client([tick(), reserve_now(4, 100), tick()])
            .sometimes("in debt", |o| o.at(0, 2) == "SETTLED_WITH_DEBT"),
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
        .client([reserve(2, U1, 700), start(2, "op"), settle(2, "op", 700)])
        .client([reserve(3, U2, 300), release(3), tick()])
        .always("the user's total does not begin again", |o| {
            !(o.at(0, 2) == "SETTLED" && o.at(2, 2) == "SETTLED")
        }),
    ]
}

fn total_user() -> crate::interleave::facts::Limit {
    super::user_total(1_200)
}

/// A reserve under an id of a later time, for orders in which ids of the begin are too old.
fn reserve_now(number: u8, amount: u64) -> Step {
    let id = holdfast_ledger::ReservationId::from_parts(BEGIN_MS + 2_000, u128::from(number));
    reserve_id(id, ACME, amount)
}
