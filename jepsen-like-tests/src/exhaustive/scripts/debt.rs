//! More used than held: overdraft, suspension, freeze.

use super::super::Script;
use super::super::script::*;
use super::{plan, total, user_total};
use crate::interleave::facts::{Limit, Plan};

fn capped(debt_max: Option<u64>, execution_max: Option<u64>, limits: Vec<Limit>) -> Plan {
    let mut plan = plan(limits);
    plan.routes[0].debt_tokens_max = debt_max;
    plan.routes[0].execution_tokens_max = execution_max;
    plan
}

/// A life that uses more than it held.
fn overrun(number: u8, who: Who, held: u64, used: u64) -> [Step; 3] {
    [reserve(number, who, held), start(number, "op"), settle(number, "op", used)]
}

pub(super) fn scripts() -> Vec<Script> {
    let tokens = || vec![plan(vec![total(1_000)])];
    vec![
        Script::new("a settlement over the hold against reserves", tokens(), vec![])
            .client(overrun(1, ACME, 600, 900))
            .client([reserve(2, ACME, 300), start(2, "op"), settle(2, "op", 300)])
            .client([reserve(3, ACME, 200), release(3), release(3)])
            .client([tick(), tick(), tick()])
            .always("everything is booked", |o| o.at(0, 0) != "reserved" || o.at(0, 2).starts_with("SETTLED"))
            .sometimes("it is paid from what is left", |o| o.at(0, 2) == "SETTLED")
            .sometimes("it makes debt", |o| o.at(0, 2) == "SETTLED_WITH_DEBT")
            .sometimes("debt suspends", |o| o.at(2, 0) == "debt"),
        Script::new("debt is repaid by what others give back", tokens(), vec![])
            .client(overrun(1, ACME, 500, 700))
            .client([reserve(2, ACME, 500), start(2, "op"), settle(2, "op", 100)])
            .client([reserve(3, ACME, 100), reserve(3, ACME, 100), release(3)])
            .client([tick(), reserve(4, ACME, 1), release(4)])
            .sometimes("suspended", |o| o.count("debt") > 0)
            .sometimes("and not any more", |o| o.at(2, 0) == "debt" && o.at(2, 1) == "reserved")
            .always("nobody is frozen", |o| o.count("frozen") == 0),
        Script::new("two overruns", tokens(), vec![])
            .client(overrun(1, ACME, 500, 800))
            .client(overrun(2, ACME, 500, 800))
            .client([reserve(3, ACME, 1), reserve(4, ACME, 1), reserve(5, ACME, 1)])
            .client([tick(), tick(), tick()])
            .always("everything is booked", |o| {
                (0..2).all(|client| o.at(client, 0) != "reserved" || o.at(client, 2).starts_with("SETTLED"))
            })
            .sometimes("both in debt", |o| o.count("SETTLED_WITH_DEBT") == 2),
        Script::new("an overrun on two levels", vec![plan(vec![total(1_000), user_total(400)])], vec![])
            .client(overrun(1, U1, 400, 600))
            .client([reserve(2, U1, 1), release(2), tick()])
            .client([reserve(3, U2, 400), start(3, "op"), settle(3, "op", 400)])
            .client([reserve(4, ACME, 100), release(4), tick()])
            .sometimes("the user is suspended", |o| o.at(1, 0) == "debt")
            .always("the other user is not", |o| o.at(2, 0) != "debt" || o.at(0, 2) == "SETTLED_WITH_DEBT")
            .sometimes("the tenant goes on", |o| {
                o.at(0, 2) == "SETTLED_WITH_DEBT" && o.at(3, 0) == "reserved"
            }),
        Script::new(
            "an execution past its cap freezes",
            vec![capped(None, Some(700), vec![total(2_000)])],
            vec![],
        )
        .client(overrun(1, ACME, 600, 701))
        .client([reserve(2, ACME, 100), start(2, "op"), settle(2, "op", 100)])
        .client([reserve(3, ACME, 100), reserve(4, ACME, 100), release(3)])
        .client([unfreeze(ACME), unfreeze(ACME), reserve(5, ACME, 10)])
        .sometimes("frozen", |o| o.at(2, 0) == "frozen")
        .sometimes("and not any more", |o| o.at(2, 0) == "frozen" && o.at(2, 1) == "reserved")
        .always("what was started is settled", |o| o.at(1, 1) != "STARTED" || o.at(1, 2) == "SETTLED"),
        Script::new(
            "exactly the cap freezes nobody",
            vec![capped(None, Some(700), vec![total(2_000)])],
            vec![],
        )
        .client(overrun(1, ACME, 600, 700))
        .client([reserve(2, ACME, 100), reserve(3, ACME, 100), reserve(4, ACME, 100)])
        .client([tick(), tick(), tick()])
        .client([unfreeze(ACME), unfreeze(ACME), unfreeze(ACME)])
        .always("nobody is frozen", |o| o.count("frozen") == 0 && o.count("unfrozen") == 0)
        .always("all are admitted", |o| o.count("reserved") == 4),
        Script::new(
            "debt past its maximum freezes",
            vec![capped(Some(99), None, vec![total(1_000)])],
            vec![],
        )
        .client(overrun(1, ACME, 600, 1_100))
        .client([reserve(2, ACME, 400), start(2, "op"), settle(2, "op", 400)])
        .client([reserve(3, ACME, 50), release(3), release(3)])
        .client([unfreeze(ACME), reserve(4, ACME, 1), release(4)])
        .sometimes("frozen", |o| o.at(2, 0) == "frozen")
        .sometimes("lifted, and still in debt", |o| o.at(3, 0) == "unfrozen" && o.at(3, 1) == "debt"),
        Script::new(
            "the narrowest level is frozen",
            vec![capped(None, Some(500), vec![total(5_000), user_total(5_000)])],
            vec![],
        )
        .client(overrun(1, U1, 100, 501))
        .client(overrun(2, U2, 100, 100))
        .client([reserve(3, U1, 1), reserve(4, U2, 1), reserve(5, ACME, 1)])
        .client([unfreeze(ACME), unfreeze(U2), unfreeze(U1)])
        .always("the others are not", |o| o.at(2, 1) == "reserved" && o.at(2, 2) == "reserved")
        .always("no freeze of theirs is lifted", |o| o.at(3, 0) == "not frozen" && o.at(3, 1) == "not frozen")
        .sometimes("frozen", |o| o.at(2, 0) == "frozen")
        .sometimes("lifted", |o| o.at(3, 2) == "unfrozen"),
        Script::new(
            "a start is let through by a freeze",
            vec![capped(None, Some(500), vec![total(5_000)])],
            vec![],
        )
        .client(overrun(1, ACME, 100, 900))
        .client([reserve(2, ACME, 100), start(2, "op"), settle(2, "op", 100)])
        .client([reserve(3, ACME, 100), renew(3, 9_000), release(3)])
        .client([reserve(1, ACME, 100), reserve(1, ACME, 100), reserve(1, ACME, 100)])
        .always("admitted before, started after", |o| {
            o.at(1, 0) != "reserved" || (o.at(1, 1) == "STARTED" && o.at(1, 2) == "SETTLED")
        })
        .sometimes("a repeat finds its receipt in spite of it", |o| {
            o.at(3, 2).starts_with("SETTLED") && o.at(2, 0) == "frozen"
        }),
    ]
}
