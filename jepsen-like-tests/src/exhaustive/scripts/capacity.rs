//! Who gets what there is.

use super::super::Script;
use super::super::script::*;
use super::{all_total, plan, rate, slots, total, user_total};
use crate::interleave::facts::Override;

/// A whole life under an id, by the same name as its operation.
fn life(number: u8, who: Who, held: u64, used: u64) -> [Step; 3] {
    [reserve(number, who, held), start(number, "op"), settle(number, "op", used)]
}

pub(super) fn scripts() -> Vec<Script> {
    vec![
        Script::new("estimates that fit only one by one", vec![plan(vec![total(1_000)])], vec![])
            .client(life(1, ACME, 600, 200))
            .client(life(2, ACME, 600, 200))
            .client(life(3, ACME, 600, 200))
            .client(life(4, ACME, 600, 200))
            .always("one is admitted, and never all", |o| (1..4).contains(&o.count("reserved")))
            .sometimes("three are", |o| o.count("reserved") == 3)
            .sometimes("only one is", |o| o.count("reserved") == 1),
        Script::new("exactly to zero", vec![plan(vec![total(1_000)])], vec![])
            .client(life(1, ACME, 250, 250))
            .client(life(2, ACME, 250, 250))
            .client(life(3, ACME, 250, 250))
            .client(life(4, ACME, 250, 250))
            .always("all are admitted and settled", |o| o.count("reserved") == 4 && o.count("SETTLED") == 4),
        Script::new("one unit too many", vec![plan(vec![total(1_000)])], vec![])
            .client(life(1, ACME, 251, 251))
            .client(life(2, ACME, 251, 251))
            .client(life(3, ACME, 251, 251))
            .client(life(4, ACME, 251, 251))
            .always("three are admitted", |o| o.count("reserved") == 3)
            .always("the fourth is told why", |o| o.count("held") + o.count("spent") == 1)
            .sometimes("held", |o| o.count("held") == 1)
            .sometimes("spent", |o| o.count("spent") == 1),
        Script::new("two slots", vec![plan(vec![slots(2)])], vec![])
            .client(life(1, ACME, 1, 1))
            .client(life(2, ACME, 1, 1))
            .client(life(3, ACME, 1, 1))
            .client(life(4, ACME, 1, 1))
            .always("at least two", |o| o.count("reserved") >= 2)
            .always("slots are never spent", |o| o.count("spent") == 0)
            .sometimes("all four, one after the other", |o| o.count("reserved") == 4),
        Script::new("a burst of three", vec![plan(vec![rate(3)])], vec![])
            .client(life(1, ACME, 1, 1))
            .client(life(2, ACME, 1, 1))
            .client(life(3, ACME, 1, 1))
            .client(life(4, ACME, 1, 1))
            .always("three, in whatever order", |o| o.count("reserved") == 3),
        Script::new("a released request gives its rate back", vec![plan(vec![rate(2)])], vec![])
            .client([reserve(1, ACME, 1), release(1), release(1)])
            .client([reserve(2, ACME, 1), release(2), release(2)])
            .client([reserve(3, ACME, 1), release(3), release(3)])
            .client([reserve(4, ACME, 1), release(4), release(4)])
            .sometimes("all four", |o| o.count("reserved") == 4)
            .always("at least two", |o| o.count("reserved") >= 2),
        Script::new("users under their tenant", vec![plan(vec![total(1_000), user_total(500)])], vec![])
            .client(life(1, U1, 400, 400))
            .client(life(2, U1, 400, 400))
            .client(life(3, U2, 400, 400))
            .client(life(4, U2, 400, 400))
            .always("one of each user", |o| o.count("reserved") == 2)
            .always("one of the first", |o| (o.at(0, 0) == "reserved") != (o.at(1, 0) == "reserved")),
        Script::new("tenants under the global limit", vec![plan(vec![all_total(1_000), total(700)])], vec![])
            .client(life(1, ACME, 600, 600))
            .client(life(2, ACME, 100, 100))
            .client(life(3, BRAVO, 600, 600))
            .client(life(4, BRAVO, 100, 100))
            .always("one large", |o| (o.at(0, 0) == "reserved") != (o.at(2, 0) == "reserved"))
            .always("both small", |o| o.at(1, 0) == "reserved" && o.at(3, 0) == "reserved"),
        Script::new(
            "refused by slots, nothing is taken elsewhere",
            vec![plan(vec![total(1_000), slots(1)])],
            vec![],
        )
        .client(life(1, ACME, 500, 500))
        .client(life(2, ACME, 500, 500))
        .client([reserve(3, ACME, 1_000), reserve(4, ACME, 500), reserve(5, ACME, 500)])
        .client([tick(), tick(), tick()])
        .sometimes("two halves", |o| o.at(0, 0) == "reserved" && o.at(1, 0) == "reserved")
        .sometimes("the whole", |o| o.at(2, 0) == "reserved"),
        Script::new("never fits", vec![plan(vec![total(1_000)])], vec![])
            .client([reserve(1, ACME, 1_001), reserve(1, ACME, 1_001), reserve(1, ACME, 1_000)])
            .client(life(2, ACME, 10, 10))
            .client(life(3, ACME, 10, 0))
            .client([reserve(4, ACME, 990), release(4), release(4)])
            .always("whatever is left", |o| o.at(0, 0) == "never fits" && o.at(0, 1) == "never fits")
            .sometimes("a refusal leaves the id free", |o| o.at(0, 2) == "reserved"),
        Script::new(
            "an unlimited tenant beside one with nothing",
            vec![plan(vec![total(500)])],
            vec![vec![("tokens", Override::Unlimited)], vec![("tokens", Override::Amount(0, None))]],
        )
        .client([set_tenant(0, Some(0)), reserve(1, ACME, 5_000), release(1)])
        .client([set_tenant(1, Some(1)), reserve(2, BRAVO, 1), release(2)])
        .client([reserve(3, ACME, 500), start(3, "op"), settle(3, "op", 700)])
        .client([reserve(4, BRAVO, 500), start(4, "op"), settle(4, "op", 500)])
        .always("unlimited is never refused", |o| o.at(0, 1) == "reserved" || o.at(2, 0) == "reserved")
        .always("nothing is nothing", |o| o.at(1, 1) != "reserved"),
        Script::new("what is released is reserved by another", vec![plan(vec![total(1_000)])], vec![])
            .client([reserve(1, ACME, 1_000), release(1), reserve(5, ACME, 1_000)])
            .client([reserve(2, ACME, 1_000), release(2), reserve(6, ACME, 1_000)])
            .client([reserve(3, ACME, 1_000), release(3), reserve(7, ACME, 1_000)])
            .client([tick(), tick(), tick()])
            .sometimes("three in turn, and one more", |o| o.count("reserved") == 4)
            .always("somebody first", |o| o.count("reserved") >= 1),
    ]
}
