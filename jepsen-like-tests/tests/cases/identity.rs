//! Case 16: the same settle again, and another one.

use jepsen_like_tests::history::{Answered, Outcome};
use jepsen_like_tests::sim::{Scenario, Sim, WorldOptions};
use openraft_rt::AsyncRuntime;

use crate::{assert_sound, id, plan, reserve, settle, start};

#[test]
fn a_repeated_settle_gives_the_receipt_and_another_one_conflicts() {
    Sim::with_seed(16).block_on(async {
        let limits =
            "  tokens:\n    scope: tenant\n    unit: tokens\n    period: { limit: 100, every: lifetime }\n";
        let mut scenario = Scenario::begin(16, WorldOptions::default(), &plan(limits)).await;
        let id = id(&scenario, 1);
        scenario.call(&id, reserve("acme", "tokens", 50)).await;
        scenario.call(&id, start()).await;
        let first = scenario.call(&id, settle("tokens", 30)).await;
        assert_eq!(first.outcome, Outcome::Ok);
        let second = scenario.call(&id, settle("tokens", 30)).await;
        assert_eq!(second.answered, first.answered);
        assert!(second.revision > first.revision);
        let other = scenario.call(&id, settle("tokens", 31)).await;
        assert_eq!((other.outcome, other.code.as_deref()), (Outcome::Rejected, Some("CONFLICT")));
        let read = scenario.call(&id, jepsen_like_tests::history::Call::Get).await;
        assert!(matches!(&read.answered, Some(Answered::Receipt(receipt))
            if receipt.actual.as_ref().and_then(|actual| actual.get("tokens")) == Some(&30)));
        assert_sound(&mut scenario).await;
    });
}
