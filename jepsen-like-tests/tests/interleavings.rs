//! Tier 1 in its short form: some interleavings of one seed, and the exhaustive scripts that are quick without
//! optimisation. All of it: the programs `interleavings` and `exhaustive`.

use jepsen_like_tests::exhaustive;
use jepsen_like_tests::interleave::{Options, run};

#[test]
fn a_thousand_worlds() {
    let options = Options { seed: 11, count: 1_000, threads: 2, until_found: false };
    let report = run(&options, |_| {});
    let found: Vec<_> = report
        .failing
        .iter()
        .flat_map(|failing| failing.found.iter().map(|found| format!("world {}: {found}", failing.number)))
        .collect();
    assert!(found.is_empty(), "{found:#?}\nreproduce: interleavings --seed 11 --only WORLD");
    assert!(report.unknown_ms.len() > 100, "hardly anything was ever unknown: {:?}", report.counts);
}

#[test]
fn every_order_of_some_scripts() {
    let scripts = exhaustive::all();
    assert!(scripts.len() >= 50, "{} scripts", scripts.len());
    for script in scripts.iter().step_by(16) {
        let explored = exhaustive::explore(script);
        assert!(explored.failures.is_empty(), "{}: {:#?}", script.name, explored.failures);
        assert_eq!(explored.orders, 369_600, "{}", script.name);
    }
}
