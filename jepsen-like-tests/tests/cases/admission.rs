//! Cases 2 to 5: many ask at the same moment.

use std::sync::Arc;

use holdfast_ledger::answer::{Answer, State};
use holdfast_ledger::command::{Command, EntryHeader, PublishPlan};
use holdfast_ledger::ids::ActorName;
use holdfast_ledger::{Book, Plan, ReservationId};
use jepsen_like_tests::convert::command_of;
use jepsen_like_tests::history::Outcome;
use jepsen_like_tests::seed;
use jepsen_like_tests::sim::{Scenario, Sim, WorldOptions};
use openraft_rt::AsyncRuntime;
use rand::RngExt;

use crate::{admitted, all_at_once, assert_sound, id, plan, reserve, settle, start};

const TOKENS_100: &str =
    "  tokens:\n    scope: tenant\n    unit: tokens\n    period: { limit: 100, every: lifetime }\n";

/// Case 2 in the book: L=100, 60 held; settle 60 races reserve 50, 10 000 rounds, the order drawn.
#[test]
fn a_settle_never_lets_a_reserve_slip_in() {
    let at_ms = 1_800_000_000_000;
    let mut book = Book::new();
    let document = plan(TOKENS_100);
    let publish = PublishPlan {
        expected_generation: None,
        force: false,
        plan: Arc::new(Plan::parse(&document).expect("the plan is well formed")),
        document: document.as_str().into(),
        actor: ActorName::new("case").expect("the name is well formed"),
    };
    let mut index = 0;
    let mut apply = |book: &mut Book, commands: Vec<Command>| {
        index += 1;
        let header = EntryHeader { index, term: 1, stamp_ms: at_ms, epoch_bounds: vec![] };
        book.apply_entry(&header, &commands)
    };
    apply(&mut book, vec![Command::PublishPlan(publish)]);
    let command = |id: ReservationId, call| {
        command_of(&id.to_string(), &call, 1).expect("well formed").expect("a command")
    };
    let mut rng = seed::stream(2, "case", 2);
    for round in 0..10_000u128 {
        let tenant = format!("t{round}");
        let (first, second) =
            (ReservationId::from_parts(at_ms, 2 * round), ReservationId::from_parts(at_ms, 2 * round + 1));
        apply(&mut book, vec![command(first, reserve(&tenant, "tokens", 60)), command(first, start())]);
        let mut race =
            vec![command(first, settle("tokens", 60)), command(second, reserve(&tenant, "tokens", 50))];
        let reserve_first = rng.random_bool(0.5);
        if reserve_first {
            race.reverse();
        }
        // In one entry or in two.
        let answers = match rng.random_bool(0.5) {
            true => apply(&mut book, race),
            false => race.into_iter().flat_map(|command| apply(&mut book, vec![command])).collect(),
        };
        let (settled, refused) =
            if reserve_first { (&answers[1], &answers[0]) } else { (&answers[0], &answers[1]) };
        assert!(
            matches!(settled, Answer::Reservation(r) if r.state == State::Settled),
            "round {round}: {settled:?}"
        );
        assert!(matches!(refused, Answer::Refused(_)), "round {round}: {refused:?}");
    }
    assert!(book.audit().ok, "{:?}", book.audit().violations);
}

/// Case 2 on the cluster, with fewer rounds.
#[test]
fn a_settle_races_a_reserve_on_the_cluster() {
    Sim::with_seed(2).block_on(async {
        let mut scenario = Scenario::begin(2, WorldOptions::default(), &plan(TOKENS_100)).await;
        for round in 0..50u128 {
            let tenant = format!("t{round}");
            let (first, second) = (id(&scenario, 2 * round), id(&scenario, 2 * round + 1));
            assert_eq!(scenario.call(&first, reserve(&tenant, "tokens", 60)).await.outcome, Outcome::Ok);
            assert_eq!(scenario.call(&first, start()).await.outcome, Outcome::Ok);
            let race = vec![(first, settle("tokens", 60)), (second, reserve(&tenant, "tokens", 50))];
            let ended = all_at_once(&scenario, race).await;
            assert_eq!(ended[0].outcome, Outcome::Ok);
            assert_eq!(ended[1].outcome, Outcome::Rejected, "round {round}");
        }
        assert_sound(&mut scenario).await;
    });
}

async fn race(limits: &str, calls: usize, call: jepsen_like_tests::history::Call) -> usize {
    let mut scenario = Scenario::begin(3, WorldOptions::default(), &plan(limits)).await;
    let calls = (0..calls).map(|at| (id(&scenario, at as u128), call.clone())).collect();
    let count = admitted(&all_at_once(&scenario, calls).await);
    assert_sound(&mut scenario).await;
    count
}

/// Case 3: three gateways, 60 parallel requests each, one limit of 100.
#[test]
fn exactly_a_hundred_of_180_parallel_requests_are_admitted() {
    let limits =
        "  all:\n    scope: global\n    unit: requests\n    period: { limit: 100, every: lifetime }\n";
    let count = Sim::with_seed(3).block_on(race(limits, 180, reserve("acme", "requests", 1)));
    assert_eq!(count, 100);
}

/// Case 4: L=1000, 20 parallel reserves with an estimate of 100.
#[test]
fn exactly_ten_of_twenty_parallel_reserves_fit() {
    let limits =
        "  tokens:\n    scope: tenant\n    unit: tokens\n    period: { limit: 1000, every: lifetime }\n";
    let count = Sim::with_seed(4).block_on(race(limits, 20, reserve("acme", "tokens", 100)));
    assert_eq!(count, 10);
}

/// Case 5: slots limit 5, four gateways with 5 parallel requests each.
#[test]
fn five_of_twenty_parallel_requests_run() {
    let limits = "  slots:\n    scope: tenant\n    unit: slots\n    concurrency: { limit: 5 }\n";
    let count = Sim::with_seed(5).block_on(race(limits, 20, reserve("acme", "slots", 1)));
    assert_eq!(count, 5);
}
