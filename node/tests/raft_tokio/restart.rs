//! All nodes come back from their disks.

use holdfast_node::raft::RaftSettings;
use openraft_rt::Instant as _;
use openraft_rt_tokio::TokioInstant;

use crate::harness::{Cluster, SOON, mark, put};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_over_grpc_and_disks_keep_what_they_acknowledge() {
    let mut cluster = Cluster::found(RaftSettings::default()).await;
    let mut last = 0;
    for n in 1..=50 {
        last = put(&cluster.nodes(), &[mark(n)]).await.first_revision;
    }
    assert!(last >= 50);
    let leader = cluster.node(cluster.leader().await);
    let read = leader.read(TokioInstant::now() + SOON, |book| book.revision()).await.unwrap();
    assert!(read >= last);
    drop(leader);
    cluster.stop_all().await;
    for id in 1..=3 {
        cluster.start(id).await;
    }
    assert!(
        put(&cluster.nodes(), &[mark(1_000)]).await.first_revision > last,
        "acknowledged commands are gone"
    );
    cluster.stop_all().await;
}
