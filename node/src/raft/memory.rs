//! Peers in one process on the runtime's time: for the simulator and for tests.
//!
//! Every message asks the [`Links`] what becomes of it. A message that is lost on a stream breaks the
//! stream, as a connection would break; a lost call gets no answer until its deadline. A node that is
//! taken down can neither call nor answer any more, whatever its tasks still do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use holdfast_proto::v1;
use openraft_rt::{AsyncRuntime, BoxStream, Instant};

use super::transport::{
    AppendRequests, AppendResponses, Lane, Peer, PeerError, Reply, SnapshotParts, Transport,
};
use super::types::NodeId;

/// What becomes of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is lost.
    Lost,
    /// It arrives after this long.
    After(Duration),
    /// It arrives twice (calls only; a stream carries each message once).
    Twice(Duration, Duration),
}

/// Decides over every message.
pub trait Links: Send + Sync + 'static {
    /// What becomes of a message from one node to another.
    fn deliver(&self, from: NodeId, to: NodeId, lane: Lane) -> Delivery;
}

/// Links that deliver everything at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfectLinks;

impl Links for PerfectLinks {
    fn deliver(&self, _from: NodeId, _to: NodeId, _lane: Lane) -> Delivery {
        Delivery::After(Duration::ZERO)
    }
}

#[derive(Default)]
struct Node {
    life: u64,
    up: bool,
    server: Option<Arc<dyn Peer>>,
}

/// The network between the nodes of one process.
pub struct MemoryNetwork<R> {
    nodes: Arc<Mutex<BTreeMap<NodeId, Node>>>,
    links: Arc<dyn Links>,
    runtime: std::marker::PhantomData<fn() -> R>,
}

impl<R> Clone for MemoryNetwork<R> {
    fn clone(&self) -> Self {
        MemoryNetwork {
            nodes: self.nodes.clone(),
            links: self.links.clone(),
            runtime: std::marker::PhantomData,
        }
    }
}

impl<R: AsyncRuntime> MemoryNetwork<R> {
    /// A network without nodes.
    pub fn new(links: Arc<dyn Links>) -> Self {
        MemoryNetwork { nodes: Arc::default(), links, runtime: std::marker::PhantomData }
    }

    /// Plugs a node in for a new life and gives the transport that it calls others with.
    pub fn plug_in(&self, node: NodeId) -> Arc<dyn Transport> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = nodes.entry(node).or_default();
        entry.life += 1;
        entry.up = true;
        entry.server = None;
        Arc::new(Plug { network: self.clone(), node, life: entry.life })
    }

    /// The transport of a node that is plugged in already, for calls that its owner makes.
    pub fn way_out_of(&self, node: NodeId) -> Option<Arc<dyn Transport>> {
        let life = self.life(node)?;
        Some(Arc::new(Plug { network: self.clone(), node, life }))
    }

    /// From now on `server` answers for the node.
    pub fn serve(&self, node: NodeId, server: Arc<dyn Peer>) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.entry(node).or_default().server = Some(server);
    }

    /// Ends the node's life: nothing of it is sent or answered any more.
    pub fn unplug(&self, node: NodeId) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = nodes.entry(node).or_default();
        entry.up = false;
        entry.server = None;
    }

    fn life(&self, node: NodeId) -> Option<u64> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.get(&node).filter(|n| n.up).map(|n| n.life)
    }

    fn server(&self, node: NodeId) -> Option<(u64, Arc<dyn Peer>)> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = nodes.get(&node).filter(|n| n.up)?;
        Some((node.life, node.server.clone()?))
    }
}

/// A node's peer address in this network.
pub fn address_of(node: NodeId) -> String {
    format!("peer-{node}:1")
}

fn node_at(address: &str) -> NodeId {
    let digits = address.strip_prefix("peer-").and_then(|rest| rest.strip_suffix(":1"));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

struct Plug<R> {
    network: MemoryNetwork<R>,
    node: NodeId,
    life: u64,
}

impl<R: AsyncRuntime> Transport for Plug<R> {
    fn peer(&self, node: NodeId, address: &str, lane: Lane) -> Arc<dyn Peer> {
        // Who is there is not known yet when a node asks around: the address says it, see [`address_of`].
        let to = if node == 0 { node_at(address) } else { node };
        Arc::new(Way { network: self.network.clone(), from: self.node, life: self.life, to, lane })
    }
}

/// The way from one node's life to another node.
struct Way<R> {
    network: MemoryNetwork<R>,
    from: NodeId,
    life: u64,
    to: NodeId,
    lane: Lane,
}

impl<R> Clone for Way<R> {
    fn clone(&self) -> Self {
        let Way { network, from, life, to, lane } = self;
        Way { network: network.clone(), from: *from, life: *life, to: *to, lane: *lane }
    }
}

fn gone(what: &str) -> PeerError {
    PeerError::Unreachable(what.into())
}

impl<R: AsyncRuntime> Way<R> {
    fn is_alive(&self) -> bool {
        self.network.life(self.from) == Some(self.life)
    }

    fn there(&self) -> Delivery {
        self.network.links.deliver(self.from, self.to, self.lane)
    }

    fn back(&self) -> Delivery {
        self.network.links.deliver(self.to, self.from, self.lane)
    }

    fn server(&self) -> Result<(u64, Arc<dyn Peer>), PeerError> {
        if !self.is_alive() {
            return Err(gone("the caller is down"));
        }
        self.network.server(self.to).ok_or_else(|| gone("the node is down"))
    }

    /// One call. The handler runs in a task of its own: it goes on when the caller has given up.
    fn call<T: Send + 'static>(
        &self,
        within: Duration,
        handle: impl Fn(&dyn Peer) -> Reply<T> + Send + Sync + 'static,
    ) -> Reply<T> {
        let way = self.clone();
        Box::pin(async move {
            let began = R::Instant::now();
            let unanswered = |way: Way<R>| async move {
                drop(way);
                R::sleep_until(began + within).await;
                Err(PeerError::TimedOut(within))
            };
            let delay = match way.there() {
                Delivery::Lost => return unanswered(way).await,
                Delivery::After(delay) => delay,
                Delivery::Twice(delay, again) => {
                    if let Ok((_, server)) = way.server() {
                        let repeated = handle(server.as_ref());
                        drop(R::spawn(async move {
                            R::sleep(again).await;
                            drop(repeated.await);
                        }));
                    }
                    delay
                }
            };
            R::sleep(delay).await;
            let (life, server) = way.server()?;
            let handled = R::spawn(handle(server.as_ref()));
            let Ok(Ok(answer)) = R::timeout_at(began + within, handled).await else {
                return unanswered(way).await;
            };
            match way.back() {
                Delivery::Lost => return unanswered(way).await,
                Delivery::After(delay) | Delivery::Twice(delay, _) => R::sleep(delay).await,
            }
            if !way.is_alive() || way.network.life(way.to) != Some(life) {
                return unanswered(way).await;
            }
            answer
        })
    }

    /// A stream's messages under way in one direction, in order. Ends at a lost one, raising `broken`.
    fn carry<T: Send + 'static>(
        &self,
        items: BoxStream<'static, T>,
        to_peer: bool,
        life: u64,
        broken: Arc<AtomicBool>,
    ) -> BoxStream<'static, T> {
        let carried = stream::unfold((self.clone(), items), move |(way, mut items)| {
            let broken = broken.clone();
            async move {
                let item = items.next().await?;
                let delivery = if to_peer { way.there() } else { way.back() };
                let alive = way.is_alive() && way.network.life(way.to) == Some(life);
                match delivery {
                    Delivery::After(delay) | Delivery::Twice(delay, _)
                        if alive && !broken.load(Ordering::Relaxed) =>
                    {
                        R::sleep(delay).await;
                        Some((item, (way, items)))
                    }
                    _ => {
                        broken.store(true, Ordering::Relaxed);
                        None
                    }
                }
            }
        });
        carried.boxed()
    }
}

impl<R: AsyncRuntime> Peer for Way<R> {
    fn heartbeat(&self, request: v1::HeartbeatRequest, within: Duration) -> Reply<v1::HeartbeatResponse> {
        self.call(within, move |peer| peer.heartbeat(request.clone(), within))
    }

    fn stream_append(&self, requests: AppendRequests) -> Reply<AppendResponses> {
        let way = self.clone();
        Box::pin(async move {
            let (life, server) = way.server()?;
            let broken = Arc::new(AtomicBool::new(false));
            let requests = way.carry(requests, true, life, broken.clone());
            let responses = server.stream_append(requests).await?;
            let responses = way.carry(responses, false, life, broken.clone());
            // The error that a broken connection ends with.
            let end = stream::once(async move { broken.load(Ordering::Relaxed) });
            let end =
                end.filter_map(|broken| async move { broken.then(|| Err(gone("the connection broke"))) });
            Ok(responses.chain(end).boxed())
        })
    }

    fn vote(&self, request: v1::VoteRequest, pre: bool, within: Duration) -> Reply<v1::VoteResponse> {
        self.call(within, move |peer| peer.vote(request.clone(), pre, within))
    }

    fn transfer_leadership(
        &self,
        request: v1::TransferLeadershipRequest,
        within: Duration,
    ) -> Reply<v1::TransferLeadershipResponse> {
        self.call(within, move |peer| peer.transfer_leadership(request.clone(), within))
    }

    fn install_snapshot(&self, parts: SnapshotParts) -> Reply<v1::InstallSnapshotResponse> {
        let way = self.clone();
        Box::pin(async move {
            let (life, server) = way.server()?;
            let broken = Arc::new(AtomicBool::new(false));
            let parts = way.carry(parts, true, life, broken.clone());
            let end = {
                let broken = broken.clone();
                stream::once(async move { broken.load(Ordering::Relaxed) })
                    .filter_map(|broken| async move { broken.then(|| Err(gone("the connection broke"))) })
            };
            let answer = server.install_snapshot(parts.chain(end).boxed()).await;
            let alive = way.is_alive() && way.network.life(way.to) == Some(life);
            match way.back() {
                Delivery::After(delay) | Delivery::Twice(delay, _) if alive => R::sleep(delay).await,
                _ => return Err(gone("the connection broke")),
            }
            answer
        })
    }

    fn identify(&self, request: v1::IdentifyRequest, within: Duration) -> Reply<v1::IdentifyResponse> {
        self.call(within, move |peer| peer.identify(request.clone(), within))
    }
}
