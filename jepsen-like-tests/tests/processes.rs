//! Real processes: killed with SIGKILL, the short version of the `torment` binary, and asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_client::{Amounts, CallError, Client, Request, Unit};
use jepsen_like_tests::summary::Verdict;
use jepsen_like_tests::torment::{Cluster, Options, holdfast_binary, run};
use jepsen_like_tests::workload::{PlanShape, document};

/// For whatever must come true on a loaded machine. Nothing here measures.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Reserves, starts and settles until it is told to stop; gives the errors that its calls ended with.
async fn caller(client: Client, number: u64, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) -> Vec<CallError> {
    let mut errors = Vec::new();
    for round in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let life = async {
            let request = Request::new(format!("spread-{number}"), "chat.generate").tokens(10);
            let mut reservation = client.reserve(request).await?;
            reservation.start(format!("op-{number}-{round}")).await?;
            reservation.settle(Amounts::NONE.with(Unit::Tokens, 7)).await.map(drop)
        };
        match life.await {
            Ok(()) => _ = done.fetch_add(1, Ordering::Relaxed),
            Err(error) => errors.push(error),
        }
    }
    errors
}

async fn until_more(done: &AtomicU64, more: u64) {
    let (from, began) = (done.load(Ordering::Relaxed), Instant::now());
    while done.load(Ordering::Relaxed) < from + more {
        assert!(began.elapsed() < PATIENCE, "callers get nowhere");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// SIGTERM to the leader under load, three times: it hands leadership over and ends with 0, and no caller
/// sees an error of any kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_asked_to_stop_hands_over_and_no_caller_sees_an_error() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = holdfast_binary().expect("the program");
    let mut cluster = Cluster::lay_out(program, directory.path(), 3).expect("a layout");
    for node in cluster.ids() {
        cluster.start(node).expect("a process");
    }
    let client = Client::builder(cluster.endpoints()).deadline(PATIENCE).connect_lazy().expect("a client");
    cluster.wait_for_leader(&client, PATIENCE).await.expect("a leader");
    let shape = PlanShape { hold_ttl_ms: 3_600_000, usage_deadline_ms: 3_600_000, slots_per_tenant: 100 };
    let began = Instant::now();
    while let Err(error) = client.publish_plan(&document(shape), None, false, "test").await {
        assert!(began.elapsed() < PATIENCE, "the plan is not taken: {error}");
    }
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (1..=8)
        .map(|number| tokio::spawn(caller(client.clone(), number, stop.clone(), done.clone())))
        .collect();

    for _ in 0..3 {
        until_more(&done, 50).await;
        let leader = cluster.wait_for_leader(&client, PATIENCE).await.expect("a leader");
        let status = cluster.stop(leader, PATIENCE).await.expect("it ends");
        let said = std::fs::read_to_string(cluster.log_path(leader)).expect("its log");
        assert!(status.success(), "node {leader} ended with {status}:\n{said}");
        assert!(said.contains("handing leadership over"), "node {leader} handed nothing over:\n{said}");
        assert!(!said.contains("was not taken in time"), "nobody took it from node {leader}:\n{said}");
        // The other two go on without it, and it comes back.
        until_more(&done, 50).await;
        cluster.start(leader).expect("a process");
        let began = Instant::now();
        while client.at(cluster.endpoint(leader)).members().await.is_err() {
            assert!(began.elapsed() < PATIENCE, "node {leader} does not come back");
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut errors = Vec::new();
    for caller in callers {
        errors.extend(caller.await.expect("a caller"));
    }
    assert!(errors.is_empty(), "{} calls failed, the first: {}", errors.len(), errors[0]);
    for node in cluster.ids() {
        let audit = client.at(cluster.endpoint(node)).with_stale_reads().audit().await.expect("an audit");
        assert!(audit.ok, "node {node}: {:?}", audit.violations);
    }
    client.close().await;
}
