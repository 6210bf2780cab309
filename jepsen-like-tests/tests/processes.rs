//! Real processes, killed with SIGKILL: the short version of torment. The long one is the `torment` binary.

use jepsen_like_tests::summary::Verdict;
use jepsen_like_tests::torment::{Options, run};

#[test]
fn a_cluster_of_processes_keeps_its_word_when_nodes_are_killed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // No rate is asked for here: a loaded machine is slow, and a test must not depend on speed.
    let options = Options {
        seed: 1,
        seconds: 20,
        nodes: 3,
        clients: 16,
        directory: directory.path().to_path_buf(),
        rate_min: 1,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let run = runtime.block_on(run(&options)).expect("a run");
    assert!(run.summary.faults.contains_key("kill_all"), "all nodes were never killed at once");
    assert_eq!(run.summary.verdict, Verdict::Pass, "{:#?}", run.summary.findings);
}
