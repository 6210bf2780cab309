//! gRPC with a gate that snapshots go out through, so that a transfer can be looked at in its middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use holdfast_node::raft::NodeId;
use holdfast_node::raft::grpc::GrpcTransport;
use holdfast_node::raft::transport::{
    AppendRequests, AppendResponses, Lane, Peer, Reply, SnapshotParts, Transport,
};
use holdfast_proto::v1;
use tokio::sync::watch;

/// How far the snapshots of one node get.
pub struct Gate {
    /// Parts of each transfer that pass; the head is the first.
    passes: watch::Sender<usize>,
    begun: AtomicUsize,
    held: AtomicUsize,
    ended: AtomicUsize,
}

impl Default for Gate {
    fn default() -> Self {
        let (passes, _) = watch::channel(usize::MAX);
        Gate { passes, begun: AtomicUsize::new(0), held: AtomicUsize::new(0), ended: AtomicUsize::new(0) }
    }
}

impl Gate {
    /// From now on so many parts of a transfer pass, and what follows waits.
    pub fn hold_after(&self, parts: usize) {
        self.passes.send_replace(parts);
    }

    /// Everything passes again.
    pub fn open(&self) {
        self.passes.send_replace(usize::MAX);
    }

    /// Transfers that have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Transfers that have come to the closed gate.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// Transfers whose parts nobody wants any more: finished, given up or cancelled.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

/// One transfer, for as long as somebody may want its parts.
struct Transfer {
    gate: Arc<Gate>,
    passes: watch::Receiver<usize>,
    passed: usize,
}

impl Transfer {
    async fn pass(&mut self) {
        if *self.passes.borrow() <= self.passed {
            self.gate.held.fetch_add(1, Ordering::SeqCst);
        }
        let passed = self.passed;
        // The gate, which the transfer holds, owns the sender.
        self.passes.wait_for(|passes| *passes > passed).await.unwrap();
        self.passed += 1;
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.gate.ended.fetch_add(1, Ordering::SeqCst);
    }
}

pub struct GatedTransport {
    gate: Arc<Gate>,
}

impl GatedTransport {
    pub fn new(gate: Arc<Gate>) -> Self {
        GatedTransport { gate }
    }
}

impl Transport for GatedTransport {
    fn peer(&self, node: NodeId, address: &str, lane: Lane) -> Arc<dyn Peer> {
        Arc::new(GatedPeer { inner: GrpcTransport.peer(node, address, lane), gate: self.gate.clone() })
    }
}

struct GatedPeer {
    inner: Arc<dyn Peer>,
    gate: Arc<Gate>,
}

impl Peer for GatedPeer {
    fn install_snapshot(&self, parts: SnapshotParts) -> Reply<v1::InstallSnapshotResponse> {
        self.gate.begun.fetch_add(1, Ordering::SeqCst);
        let passes = self.gate.passes.subscribe();
        let transfer = Transfer { gate: self.gate.clone(), passes, passed: 0 };
        let gated = stream::unfold((parts, transfer), |(mut parts, mut transfer)| async move {
            transfer.pass().await;
            let part = parts.next().await?;
            Some((part, (parts, transfer)))
        });
        self.inner.install_snapshot(gated.boxed())
    }

    fn heartbeat(&self, request: v1::HeartbeatRequest, within: Duration) -> Reply<v1::HeartbeatResponse> {
        self.inner.heartbeat(request, within)
    }

    fn stream_append(&self, requests: AppendRequests) -> Reply<AppendResponses> {
        self.inner.stream_append(requests)
    }

    fn vote(&self, request: v1::VoteRequest, pre: bool, within: Duration) -> Reply<v1::VoteResponse> {
        self.inner.vote(request, pre, within)
    }

    fn transfer_leadership(
        &self,
        request: v1::TransferLeadershipRequest,
        within: Duration,
    ) -> Reply<v1::TransferLeadershipResponse> {
        self.inner.transfer_leadership(request, within)
    }

    fn identify(&self, request: v1::IdentifyRequest, within: Duration) -> Reply<v1::IdentifyResponse> {
        self.inner.identify(request, within)
    }
}
