//! What has ended is found in a node's history index, also after a restart.

use holdfast_proto::v1::read_history_request::Of;
use holdfast_proto::{ErrorReason, v1};

use crate::client::*;
use crate::cluster::{Cluster, eventually};

type History = v1::history_client::HistoryClient<tonic::transport::Channel>;

fn ask(of: Of) -> v1::ReadHistoryRequest {
    v1::ReadHistoryRequest { of: Some(of), ..v1::ReadHistoryRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_reservations_and_events_are_found() {
    let mut cluster = Cluster::found(1, |config| config.history.enabled = true);
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), PLAN).await;
    let mut ledger = Ledger::new(channel.clone());
    let id = id();
    ledger.reserve(reserve(&id, "acme", 600)).await.unwrap();
    ledger.start(start(&id, "op")).await.unwrap();
    let settled = receipt(ledger.settle(settle(&id, "op", 200)).await.unwrap().into_inner());

    for _ in 0..2 {
        let mut history = History::new(cluster.channel(0));
        let found = eventually("the settlement is in the index", async || {
            let page = History::new(cluster.channel(0))
                .read(ask(Of::Reservation(id.clone())))
                .await
                .ok()?
                .into_inner();
            page.entries.first().cloned()
        })
        .await;
        assert_eq!(found.what, Some(v1::history_entry::What::Ended(settled.clone())));
        let page = history.read(ask(Of::Tenant("acme".into()))).await.unwrap().into_inner();
        assert!(page.complete_from_revision >= 1 && page.indexed_revision >= settled.ended_revision());
        assert!(page.entries.iter().any(|entry| entry.revision == settled.ended_revision()), "{page:#?}");
        assert_invalid(history.read(ask(Of::Reservation("x".into()))).await, "reservation");
        assert_invalid(history.read(v1::ReadHistoryRequest::default()).await, "of");
        cluster.stop(0);
        cluster.start(0);
        cluster.leader().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_an_index_says_so() {
    let cluster = Cluster::found(1, |_| {});
    let channel = cluster.channel(cluster.leader().await);
    let said = History::new(channel).read(ask(Of::Tenant("acme".into()))).await.unwrap_err();
    assert_eq!(failure(&said).reason, ErrorReason::Unsupported);
}
