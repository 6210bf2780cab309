//! What operators and executors say by hand, against what goes on meanwhile.

use super::super::Script;
use super::super::script::*;
use super::{minute, plan, total};

fn life(number: u8, held: u64, used: u64) -> [Step; 3] {
    [reserve(number, ACME, held), start(number, "op"), settle(number, "op", used)]
}

pub(super) fn scripts() -> Vec<Script> {
    let tokens = || vec![plan(vec![total(1_000)])];
    vec![
        Script::new("less is granted than was asked", tokens(), vec![])
            .client([reserve_up_to(1, ACME, 900, 300), start(1, "op"), settle(1, "op", 300)])
            .client([reserve_up_to(2, ACME, 900, 300), start(2, "op"), settle(2, "op", 300)])
            .client(life(3, 400, 400))
            .client([tick(), tick(), tick()])
            .sometimes("all three", |o| o.count("SETTLED") == 3)
            .sometimes("not even the least is there", |o| o.count("held") > 0)
            .always("the least settles without debt", |o| o.count("SETTLED_WITH_DEBT") == 0),
        Script::new("an estimate is corrected once", tokens(), vec![])
            .client([reserve(1, ACME, 600), start(1, "op"), settle_estimated(1, "op")])
            .client([correct(1, "op", 100), correct(1, "op", 100), correct(1, "op", 200)])
            .client([reserve(2, ACME, 900), start(2, "op"), tick()])
            .client([correct(1, "other", 0), tick(), tick()])
            .sometimes("it gives back", |o| o.at(0, 2) == "SETTLED" && o.at(2, 0) == "reserved")
            .sometimes("another one is a conflict", |o| o.at(1, 0) == "SETTLED" && o.at(1, 2) == "conflict")
            .always("a foreign operation corrects nothing", |o| o.at(3, 0) != "SETTLED"),
        Script::new("an estimate is corrected upward against a reserve", tokens(), vec![])
            .client([reserve(1, ACME, 600), start(1, "op"), settle_estimated(1, "op")])
            .client([correct(1, "op", 1_100), tick(), tick()])
            .client([reserve(2, ACME, 400), release(2), tick()])
            .client([tick(), reserve(3, ACME, 1), release(3)])
            .sometimes("it makes debt", |o| o.at(1, 0) == "SETTLED_WITH_DEBT")
            .sometimes("which admits nobody", |o| o.at(3, 1) == "debt"),
        Script::new("an operator and an executor end the same", tokens(), vec![])
            .client([reserve(1, ACME, 600), start(1, "op"), unknown(1, "op")])
            .client([resolve(1, 200), resolve(1, 200), tick()])
            .client([settle(1, "op", 300), settle(1, "op", 300), settle(1, "op", 300)])
            .client([reserve(2, ACME, 700), release(2), tick()])
            .always("what runs is not resolved", |o| o.at(1, 0) != "SETTLED" || o.at(0, 2) == "USAGE_UNKNOWN")
            .sometimes("the operator first", |o| o.at(1, 1) == "SETTLED" && o.at(2, 2) == "conflict")
            .sometimes("the executor first", |o| o.at(2, 2) == "SETTLED" && o.at(1, 1) == "conflict"),
        Script::new("a freeze by hand against a request", tokens(), vec![])
            .client(life(1, 400, 400))
            .client([freeze(ACME), unfreeze(ACME), freeze(ACME)])
            .client([reserve(2, U1, 400), start(2, "op"), settle(2, "op", 400)])
            .client([reserve(3, BRAVO, 400), release(3), tick()])
            .always("it is the tenant's alone", |o| o.at(3, 0) == "reserved")
            .always("what was admitted ends", |o| o.at(0, 0) != "reserved" || o.at(0, 2) == "SETTLED")
            .sometimes("users too", |o| o.at(2, 0) == "frozen"),
        Script::new("a grant comes once", vec![plan(vec![minute(1_000, 0, true)])], vec![])
            .client([adjust(1, Adjustment::Grant(500)), adjust(1, Adjustment::Grant(500)), tick()])
            .client([adjust(1, Adjustment::Grant(500)), adjust(1, Adjustment::Grant(600)), tick()])
            .client([reserve(1, ACME, 1_500), release(1), reserve(2, ACME, 1_501)])
            .client([tick(), tick(), tick()])
            .always("never twice", |o| o.at(2, 2) != "reserved")
            .always("other content is refused or comes first", |o| {
                o.at(1, 1) == "another adjustment" && o.at(1, 0) == "adjusted"
            })
            .sometimes("it gives more", |o| o.at(2, 0) == "reserved")
            .sometimes("not before", |o| o.at(2, 0) == "never fits"),
        Script::new("a charge makes debt, and what is taken back repays it", tokens(), vec![])
            .client([adjust(1, Adjustment::Charge(700)), adjust(2, Adjustment::Correct(700)), tick()])
            .client(life(1, 600, 600))
            .client([reserve(2, ACME, 300), release(2), tick()])
            .client([adjust(3, Adjustment::Take(300)), tick(), tick()])
            .sometimes("it is in debt", |o| o.at(2, 0) == "debt")
            .sometimes("it is not", |o| o.at(2, 0) == "reserved" && o.at(0, 1) == "adjusted"),
        Script::new(
            "a roll-back against what was admitted meanwhile",
            vec![plan(vec![total(1_000)]), plan(vec![total(1_600)])],
            vec![],
        )
        .client([publish(1), roll_back(1), roll_back(1)])
        .client(life(1, 800, 800))
        .client(life(2, 800, 800))
        .client([reserve(3, ACME, 100), release(3), tick()])
        .always("what was admitted ends", |o| {
            (1..3).all(|client| o.at(client, 0) != "reserved" || o.at(client, 2) == "SETTLED")
        })
        .always("once", |o| o.at(0, 2) == "unchanged")
        .sometimes("both under the larger one", |o| o.count("SETTLED") == 2),
    ]
}
