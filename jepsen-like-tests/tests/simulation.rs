//! The simulator is tested itself: the same seed gives the same trace, a few seeds pass, and
//! clusters with bugs built in do not.

use jepsen_like_tests::check::Severity;
use jepsen_like_tests::sim::{
    Mutant, SimOptions, SimRun, acknowledged_and_lost, acknowledged_but_replaced, read_at_a_former_leader,
    simulate,
};
use jepsen_like_tests::summary::Verdict;

fn short(seed: u64) -> SimOptions {
    SimOptions { seconds: 6, ..SimOptions::of(seed) }
}

fn assert_passes(run: &SimRun) {
    assert_eq!(run.summary.verdict, Verdict::Pass, "seed {}: {:#?}", run.summary.seed, run.summary.findings);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let options = SimOptions { trace_schedule: true, seconds: 3, ..short(42) };
    let (first, second) = (simulate(&options), simulate(&options));
    assert_eq!(first.evidence.operations, second.evidence.operations);
    assert_eq!(first.trace, second.trace);
    let other = simulate(&SimOptions { seed: 43, ..options });
    assert_ne!(first.trace, other.trace, "the seed does nothing");
}

#[test]
fn clusters_keep_their_word_under_faults() {
    for seed in 1..=3 {
        assert_passes(&simulate(&short(seed)));
    }
}

#[test]
fn a_log_that_acknowledges_before_the_sync_is_caught_and_one_that_does_not_passes() {
    let findings = acknowledged_and_lost(1, Some(Mutant::AckBeforeSync));
    assert!(findings.iter().any(|finding| finding.severity == Severity::Violation), "{findings:#?}");
    assert_eq!(acknowledged_and_lost(1, None), vec![]);
}

#[test]
fn a_leader_that_resumes_its_term_is_caught_and_one_that_does_not_passes() {
    let findings = acknowledged_but_replaced(1, Some(Mutant::LeaderRestore));
    assert!(findings.iter().any(|finding| finding.severity == Severity::Violation), "{findings:#?}");
    assert_eq!(acknowledged_but_replaced(1, None), vec![]);
}

#[test]
fn reads_by_lease_are_caught_and_reads_by_quorum_pass() {
    const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;
    let stale = |seed: &u64| {
        let findings = read_at_a_former_leader(*seed, Some(Mutant::LeaseRead));
        findings.iter().any(|finding| finding.check == "stale_read")
    };
    assert!(SEEDS.clone().any(|seed| stale(&seed)), "the checker sees no stale read, or none happened");
    for seed in SEEDS {
        assert_eq!(read_at_a_former_leader(seed, None), vec![], "seed {seed}");
    }
}
