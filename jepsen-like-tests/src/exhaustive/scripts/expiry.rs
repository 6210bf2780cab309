//! Holds and deadlines that end by themselves.

use super::super::Script;
use super::super::script::*;
use super::{plan, rate, slots, total};

pub(super) fn scripts() -> Vec<Script> {
    let tokens = || vec![plan(vec![total(1_000)])];
    let passes = || [tick().after(4_000), tick().after(4_000), tick().after(1_000)];
    vec![
        Script::new("a start against the end of the hold", tokens(), vec![])
            .client([reserve(1, ACME, 600), start(1, "op"), settle(1, "op", 600)])
            .client(passes())
            .client([reserve(2, ACME, 600), start(2, "op"), settle(2, "op", 600)])
            .client([tick(), tick(), tick()])
            .always("what was started is settled", |o| (o.at(0, 1) == "STARTED") == (o.at(0, 2) == "SETTLED"))
            .sometimes("too late while EXPIRING", |o| o.at(0, 1) == "not while EXPIRING")
            .sometimes("too late after that", |o| o.at(0, 1) == "not while EXPIRED")
            .sometimes("the other one gets the units", |o| {
                o.at(0, 1) == "not while EXPIRED" && o.at(2, 2) == "SETTLED"
            }),
        Script::new("a release against the end of the hold", tokens(), vec![])
            .client([reserve(1, ACME, 600), release(1), release(1)])
            .client(passes())
            .client([reserve(2, ACME, 600), release(2), release(2)])
            .client([tick(), tick(), tick()])
            .sometimes("released while EXPIRING or before", |o| o.at(0, 1) == "RELEASED")
            .sometimes("expired", |o| o.at(0, 1) == "not while EXPIRED"),
        Script::new("a renewal against the end of the hold", tokens(), vec![])
            .client([reserve(1, ACME, 600), renew(1, 9_000), start(1, "op")])
            .client(passes())
            .client([renew(1, 1), renew(1, 1), renew(1, 1)])
            .client([reserve(2, ACME, 600), tick(), release(2)])
            // Nine seconds and the grace are more than what passes.
            .always("a renewal never shortens", |o| {
                !(o.at(0, 1) == "RESERVED" && o.at(0, 2) == "not while EXPIRED")
            })
            .sometimes("it lasts past its first end", |o| o.at(0, 1) == "RESERVED" && o.at(0, 2) == "STARTED")
            .sometimes("too late", |o| o.at(0, 1) == "not while EXPIRED"),
        Script::new("units stay held in the grace", tokens(), vec![])
            .client([reserve(1, ACME, 1_000), tick(), tick()])
            .client([tick().after(8_000), tick().after(499), tick().after(1)])
            .client([reserve(2, ACME, 1_000), tick(), tick()])
            .client([reserve(3, ACME, 1_000), tick(), tick()])
            .sometimes("held", |o| o.count("held") == 2)
            .sometimes("two in turn", |o| o.count("reserved") == 2)
            .always("not all three", |o| o.count("reserved") < 3),
        Script::new("the usage deadline against the settlement", tokens(), vec![])
            .client([reserve(1, ACME, 600), start(1, "op"), settle(1, "op", 200)])
            .client([tick().after(20_000), tick().after(20_000), tick()])
            .client([reserve(2, ACME, 600), tick(), release(2)])
            .client([renew(1, 40_000), unknown(1, "op"), tick()])
            .always("a started one is settled, late or not", |o| {
                o.at(0, 1) != "STARTED" || o.at(0, 2) == "SETTLED"
            })
            .sometimes("its usage is unknown meanwhile", |o| o.at(3, 1) == "USAGE_UNKNOWN"),
        Script::new("unknown is not unused", tokens(), vec![])
            .client([reserve(1, ACME, 1_000), start(1, "op"), unknown(1, "op")])
            .client([tick().after(3_000), tick().after(40_000), tick()])
            .client([reserve(2, ACME, 1), reserve(2, ACME, 1), reserve(2, ACME, 1)])
            .client([tick(), settle(1, "op", 999), tick()])
            .always("nothing is admitted beside it", |o| {
                !(o.at(0, 1) == "STARTED" && o.at(3, 1) != "SETTLED")
                    || (0..3).all(|step| o.at(2, step) != "reserved")
            })
            .sometimes("until a receipt says so", |o| o.at(3, 1) == "SETTLED" && o.at(2, 2) == "reserved"),
        Script::new("a report against the settlement", tokens(), vec![])
            .client([reserve(1, ACME, 600), start(1, "op"), settle(1, "op", 700)])
            .client([unknown(1, "op"), unknown(1, "op"), unknown(1, "other")])
            .client([release(1), renew(1, 1_000), tick()])
            .client([reserve(2, ACME, 400), start(2, "op"), settle(2, "op", 400)])
            .always("a foreign operation is told nothing", |o| o.at(1, 2) != "USAGE_UNKNOWN")
            .sometimes("reported, then settled", |o| {
                o.at(1, 0) == "USAGE_UNKNOWN" && o.at(0, 2).starts_with("SETTLED")
            })
            .sometimes("settled, then reported", |o| o.at(1, 0).starts_with("not while SETTLED")),
        Script::new("slots come back when holds end by themselves", vec![plan(vec![slots(1)])], vec![])
            .client([reserve(1, ACME, 1), tick(), tick()])
            .client([reserve(2, ACME, 1), start(2, "op"), settle(2, "op", 1)])
            .client(passes())
            .client([reserve(3, ACME, 1), tick(), release(3)])
            .sometimes("two in turn", |o| o.count("reserved") == 2)
            .sometimes("three in turn", |o| o.count("reserved") == 3),
        Script::new("rates come back when holds end by themselves", vec![plan(vec![rate(1)])], vec![])
            .client([reserve(1, ACME, 1), tick(), tick()])
            .client([reserve(2, ACME, 1), start(2, "op"), settle(2, "op", 1)])
            .client(passes())
            .client([tick(), reserve(3, ACME, 1), tick()])
            .always("no three in nine seconds", |o| o.count("reserved") < 3)
            .sometimes("two in turn", |o| o.count("reserved") >= 2),
    ]
}
