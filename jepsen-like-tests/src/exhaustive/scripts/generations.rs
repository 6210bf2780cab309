//! Plans and records that change while something is held.

use super::super::Script;
use super::super::script::*;
use super::{plan, rate, slots, total, user_total};
use crate::interleave::facts::{Override, Plan, Rule};
use holdfast_ledger::Unit;
use holdfast_ledger::plan::Level;

fn life(number: u8, held: u64, used: u64) -> [Step; 3] {
    [reserve(number, ACME, held), start(number, "op"), settle(number, "op", used)]
}

fn two(first: Plan, second: Plan) -> Vec<Plan> {
    vec![first, second]
}

pub(super) fn scripts() -> Vec<Script> {
    vec![
        Script::new(
            "a limit falls under what is held",
            two(plan(vec![total(1_000)]), plan(vec![total(500)])),
            vec![],
        )
        .client(life(1, 600, 600))
        .client(life(2, 400, 100))
        .client([publish(1), reserve(3, ACME, 100), release(3)])
        .client([tick(), reserve(4, ACME, 300), release(4)])
        .always("holds are kept", |o| {
            (0..2).all(|client| o.at(client, 0) != "reserved" || o.at(client, 2) == "SETTLED")
        })
        .sometimes("nothing is left under the new one", |o| o.at(2, 1) == "spent" || o.at(2, 1) == "held")
        .sometimes("never fits the new one", |o| o.at(0, 0) == "never fits"),
        Script::new(
            "a limit rises while others wait",
            two(plan(vec![total(500)]), plan(vec![total(1_200)])),
            vec![],
        )
        .client(life(1, 500, 500))
        .client(life(2, 400, 400))
        .client([publish(1), reserve(3, ACME, 301), start(3, "op")])
        .client([publish(1), publish(0), tick()])
        .sometimes("both are under the larger one", |o| o.at(0, 2) == "SETTLED" && o.at(1, 2) == "SETTLED")
        .always("publishing never refills", |o| {
            !(o.at(0, 2) == "SETTLED" && o.at(1, 2) == "SETTLED" && o.at(2, 1) == "reserved")
        }),
        Script::new(
            "debt under a limit that rises and falls",
            two(plan(vec![total(1_000)]), plan(vec![total(1_500)])),
            vec![],
        )
        .client(life(1, 900, 1_300))
        .client([publish(1), publish(0), publish(1)])
        .client([reserve(2, ACME, 100), release(2), reserve(3, ACME, 100)])
        .client([tick(), tick(), tick()])
        .sometimes("in debt", |o| o.at(0, 2) == "SETTLED_WITH_DEBT")
        .sometimes("not in debt under the larger one", |o| o.at(0, 2) == "SETTLED"),
        Script::new("the same plan twice", two(plan(vec![total(1_000)]), plan(vec![total(900)])), vec![])
            .client([publish(1), publish(1), publish(1)])
            .client([publish(1), publish(1), publish(1)])
            .client(life(1, 900, 900))
            .client(life(2, 100, 100))
            .always("it is published once", |o| o.count("published") == 1 && o.count("unchanged") == 5),
        Script::new(
            "two publishers who saw the same",
            vec![plan(vec![total(1_000)]), plan(vec![total(900)]), plan(vec![total(800)])],
            vec![],
        )
        .client([publish_over(1, 1), tick(), tick()])
        .client([publish_over(2, 1), tick(), tick()])
        .client(life(1, 700, 700))
        .client(life(2, 300, 300))
        .always("one of them wins", |o| o.count("published") == 1 && o.count("another generation") == 1),
        Script::new(
            "a settlement reaches a closed account",
            two(plan(vec![total(1_000)]), plan(vec![total(1_001)])),
            vec![],
        )
        .client(life(1, 600, 200))
        .client([publish(1), publish(0), publish(1)])
        .client([reserve(2, ACME, 800), release(2), tick()])
        .client([reserve(3, ACME, 400), start(3, "op"), settle(3, "op", 500)])
        .sometimes("what came back is reserved again", |o| {
            o.at(0, 2) == "SETTLED" && o.at(2, 0) == "reserved" && o.at(1, 0) == "published"
        })
        .always("both are settled if they were started", |o| {
            [0, 3]
                .iter()
                .all(|client| o.at(*client, 1) != "STARTED" || o.at(*client, 2).starts_with("SETTLED"))
        }),
        Script::new(
            "a limit is withdrawn with holds on it and comes back",
            two(plan(vec![total(1_000), user_total(300)]), plan(vec![total(1_000)])),
            vec![],
        )
        .client([reserve(1, U1, 300), start(1, "op"), settle(1, "op", 400)])
        .client([publish(1), publish(0), publish(1)])
        .client([reserve(2, U1, 300), release(2), tick()])
        .client([reserve(3, U1, 300), start(3, "op"), settle(3, "op", 100)])
        .sometimes("two fit without it", |o| o.at(0, 0) == "reserved" && o.at(2, 0) == "reserved")
        .sometimes("one with it", |o| o.at(2, 0) == "held" || o.at(2, 0) == "spent"),
        Script::new(
            "a bucket's burst shrinks and grows",
            two(plan(vec![rate(4)]), plan(vec![rate(2)])),
            vec![],
        )
        .client([reserve(1, ACME, 1), release(1), tick()])
        .client([publish(1), publish(0), tick().after(10_000)])
        .client([reserve(2, ACME, 1), reserve(3, ACME, 1), reserve(4, ACME, 1)])
        .client([reserve(5, ACME, 1), start(5, "op"), settle(5, "op", 1)])
        .always("never more than the first burst and what came since", |o| o.count("reserved") <= 6)
        .sometimes("the small burst refuses", |o| o.count("spent") + o.count("held") > 0),
        Script::new(
            "slots are taken away while they are held",
            two(plan(vec![slots(3)]), plan(vec![slots(1)])),
            vec![],
        )
        .client(life(1, 1, 1))
        .client(life(2, 1, 1))
        .client([publish(1), reserve(3, ACME, 1), release(3)])
        .client([tick(), publish(0), tick()])
        .sometimes("refused until they are back", |o| o.at(2, 1) == "held")
        .always("holds are kept", |o| {
            (0..2).all(|client| o.at(client, 0) != "reserved" || o.at(client, 2) == "SETTLED")
        }),
        Script::new(
            "a tenant's record comes and goes",
            vec![plan(vec![total(1_000)])],
            vec![vec![("tokens", Override::Amount(300, None))]],
        )
        .client([set_tenant(0, Some(0)), set_tenant(0, None), set_tenant(0, Some(0))])
        .client(life(1, 400, 400))
        .client(life(2, 300, 300))
        .client([reserve(3, BRAVO, 900), release(3), tick()])
        .always("the other tenant is not touched", |o| o.at(3, 0) == "reserved")
        .sometimes("never fits with it", |o| o.at(1, 0) == "never fits")
        .sometimes("fits without it", |o| o.at(1, 0) == "reserved"),
        Script::new(
            "a tenant goes unlimited and back",
            vec![plan(vec![total(500)])],
            vec![vec![("tokens", Override::Unlimited)]],
        )
        .client([set_tenant(0, Some(0)), set_tenant(0, None), tick()])
        .client(life(1, 500, 900))
        .client([reserve(2, ACME, 400), release(2), tick()])
        .client([reserve(3, ACME, 100), start(3, "op"), settle(3, "op", 100)])
        .sometimes("what was used while unlimited counts after it", |o| o.at(3, 0) == "spent")
        .sometimes("more than the limit", |o| o.at(1, 2) == "SETTLED" && o.at(2, 0) == "reserved"),
        Script::new(
            "a record against a publish",
            two(plan(vec![total(1_000)]), plan(vec![total(2_000)])),
            vec![vec![("tokens", Override::Amount(300, None))]],
        )
        .client([set_tenant(0, Some(0)), reserve(1, ACME, 301), reserve(2, ACME, 300)])
        .client([publish(1), reserve(3, BRAVO, 2_000), release(3)])
        .client([set_tenant(0, Some(0)), tick(), tick()])
        .client([tick(), tick(), tick()])
        .always("the record holds, whoever is first", |o| {
            o.at(0, 1) == "never fits" && o.at(0, 2) == "reserved"
        })
        .always("the plan holds for the other", |o| o.at(1, 1) == "reserved"),
        Script::new(
            "a limit is added under open holds",
            two(plan(vec![total(1_000)]), plan(vec![total(1_000), slots(1)])),
            vec![],
        )
        .client([reserve(1, ACME, 100), start(1, "op"), tick()])
        .client([reserve(2, ACME, 100), start(2, "op"), tick()])
        .client([publish(1), reserve(3, ACME, 100), start(3, "op")])
        .client([tick(), tick(), tick()])
        .always("nobody ends, so that one of them holds the only slot", |o| o.count("held") <= 2)
        // All three only if the two came before it: the third holds the slot for good.
        .sometimes("what was held before it does not count", |o| o.count("reserved") == 3)
        .sometimes("it refuses", |o| o.count("held") > 0),
        Script::new(
            "a rate's refill changes while time passes",
            two(plan(vec![rate(2)]), plan(vec![faster()])),
            vec![],
        )
        .client([reserve(1, ACME, 1), reserve(2, ACME, 1), reserve(3, ACME, 1)])
        .client([publish(1), publish(0), publish(1)])
        .client([tick().after(2_500), tick().after(2_500), tick().after(2_500)])
        .client([reserve(4, ACME, 1), release(4), tick()])
        .sometimes("all three", |o| (0..3).all(|step| o.at(0, step) == "reserved"))
        .sometimes("refused", |o| o.count("spent") + o.count("held") > 0),
    ]
}

fn faster() -> crate::interleave::facts::Limit {
    super::limit("rate", Level::Tenant, Unit::Requests, Rule::Bucket { amount: 1, per_ms: 2_000, burst: 2 })
}
