//! Peers over gRPC: one connection per peer and lane, and the service that answers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use holdfast_proto::v1;
use holdfast_proto::v1::raft_client::RaftClient;
use holdfast_proto::v1::raft_server::{Raft, RaftServer};
use openraft_rt::BoxStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};

use super::limits::{
    CONNECT_TIMEOUT, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, PEER_MESSAGE_BYTES_MAX, STREAM_WINDOW_BYTES,
};
use super::transport::{
    AppendRequests, AppendResponses, Lane, Peer, PeerError, Reply, SnapshotParts, Transport,
};
use super::types::NodeId;

/// Reaches peers over gRPC.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcTransport;

impl Transport for GrpcTransport {
    fn peer(&self, _node: NodeId, address: &str, _lane: Lane) -> Arc<dyn Peer> {
        // One channel per call of this function, so one per peer and lane. It connects by itself, and
        // again after a failure.
        match Endpoint::from_shared(format!("http://{address}")) {
            Ok(endpoint) => {
                let endpoint = endpoint
                    .connect_timeout(CONNECT_TIMEOUT)
                    .tcp_nodelay(true)
                    .initial_stream_window_size(STREAM_WINDOW_BYTES)
                    .initial_connection_window_size(STREAM_WINDOW_BYTES)
                    .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
                    .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
                    .keep_alive_while_idle(true);
                Arc::new(GrpcPeer { client: client(endpoint.connect_lazy()) })
            }
            Err(error) => Arc::new(NoPeer(format!("{address:?} is no address: {error}"))),
        }
    }
}

fn client(channel: Channel) -> RaftClient<Channel> {
    RaftClient::new(channel)
        .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
        .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
}

/// The service for a peer port.
pub fn service(peer: Arc<dyn Peer>) -> RaftServer<Service> {
    RaftServer::new(Service { peer })
        .max_decoding_message_size(PEER_MESSAGE_BYTES_MAX)
        .max_encoding_message_size(PEER_MESSAGE_BYTES_MAX)
}

fn to_status(error: PeerError) -> Status {
    let code = match &error {
        PeerError::WrongIdentity(_) => Code::FailedPrecondition,
        PeerError::Malformed(_) => Code::InvalidArgument,
        PeerError::TimedOut(_) => Code::DeadlineExceeded,
        PeerError::Unreachable(_) | PeerError::Stopped(_) => Code::Unavailable,
    };
    Status::new(code, error.to_string())
}

fn to_error(status: Status) -> PeerError {
    let message = status.message().to_owned();
    match status.code() {
        Code::FailedPrecondition => PeerError::WrongIdentity(message),
        Code::InvalidArgument => PeerError::Malformed(message),
        _ => PeerError::Unreachable(format!("{:?}: {message}", status.code())),
    }
}

/// A peer over one channel.
#[derive(Clone)]
struct GrpcPeer {
    client: RaftClient<Channel>,
}

impl GrpcPeer {
    fn call<T, F>(&self, within: Duration, call: impl FnOnce(RaftClient<Channel>) -> F) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Response<T>, Status>> + Send + 'static,
    {
        let calling = call(self.client.clone());
        Box::pin(async move {
            match tokio::time::timeout(within, calling).await {
                Ok(answer) => answer.map(Response::into_inner).map_err(to_error),
                Err(_) => Err(PeerError::TimedOut(within)),
            }
        })
    }
}

impl Peer for GrpcPeer {
    fn heartbeat(&self, request: v1::HeartbeatRequest, within: Duration) -> Reply<v1::HeartbeatResponse> {
        self.call(within, |mut client| async move { client.heartbeat(request).await })
    }

    fn stream_append(&self, requests: AppendRequests) -> Reply<AppendResponses> {
        let mut client = self.client.clone();
        Box::pin(async move {
            let answers = client.stream_append(OnlySend(requests)).await.map_err(to_error)?.into_inner();
            Ok(answers.map(|answer| answer.map_err(to_error)).boxed())
        })
    }

    fn vote(&self, request: v1::VoteRequest, pre: bool, within: Duration) -> Reply<v1::VoteResponse> {
        self.call(within, move |mut client| async move {
            if pre { client.pre_vote(request).await } else { client.vote(request).await }
        })
    }

    fn transfer_leadership(
        &self,
        request: v1::TransferLeadershipRequest,
        within: Duration,
    ) -> Reply<v1::TransferLeadershipResponse> {
        self.call(within, |mut client| async move { client.transfer_leadership(request).await })
    }

    fn install_snapshot(&self, parts: SnapshotParts) -> Reply<v1::InstallSnapshotResponse> {
        let mut client = self.client.clone();
        Box::pin(async move {
            // An error while the file is read ends the stream early; the receiver sees that it is too short.
            let (failed_tx, failed) = tokio::sync::oneshot::channel();
            let mut failed_tx = Some(failed_tx);
            let good = parts.scan((), move |(), part| {
                let part = part.map_err(|error| failed_tx.take().map(|tx| tx.send(error))).ok();
                std::future::ready(part)
            });
            let answer = client.install_snapshot(OnlySend(good.boxed())).await;
            match answer {
                Ok(answer) => Ok(answer.into_inner()),
                Err(status) => Err(failed.await.unwrap_or_else(|_| to_error(status))),
            }
        })
    }

    fn identify(&self, request: v1::IdentifyRequest, within: Duration) -> Reply<v1::IdentifyResponse> {
        self.call(within, |mut client| async move { client.identify(request).await })
    }
}

/// A boxed stream as tonic wants one.
struct OnlySend<T>(BoxStream<'static, T>);

impl<T> Stream for OnlySend<T> {
    type Item = T;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        self.0.as_mut().poll_next(cx)
    }
}

/// Stands for an address that is none.
struct NoPeer(String);

impl NoPeer {
    fn refuse<T: Send + 'static>(&self) -> Reply<T> {
        Box::pin(std::future::ready(Err(PeerError::Unreachable(self.0.clone()))))
    }
}

impl Peer for NoPeer {
    fn heartbeat(&self, _: v1::HeartbeatRequest, _: Duration) -> Reply<v1::HeartbeatResponse> {
        self.refuse()
    }
    fn stream_append(&self, _: AppendRequests) -> Reply<AppendResponses> {
        self.refuse()
    }
    fn vote(&self, _: v1::VoteRequest, _: bool, _: Duration) -> Reply<v1::VoteResponse> {
        self.refuse()
    }
    fn transfer_leadership(
        &self,
        _: v1::TransferLeadershipRequest,
        _: Duration,
    ) -> Reply<v1::TransferLeadershipResponse> {
        self.refuse()
    }
    fn install_snapshot(&self, _: SnapshotParts) -> Reply<v1::InstallSnapshotResponse> {
        self.refuse()
    }
    fn identify(&self, _: v1::IdentifyRequest, _: Duration) -> Reply<v1::IdentifyResponse> {
        self.refuse()
    }
}

/// Answers peers.
pub struct Service {
    peer: Arc<dyn Peer>,
}

/// The caller waits as long as it wants and drops the call; handlers need no deadline of their own.
const CALLER_DECIDES: Duration = Duration::MAX;

#[tonic::async_trait]
impl Raft for Service {
    type StreamAppendStream = BoxStream<'static, Result<v1::AppendEntriesResponse, Status>>;

    async fn stream_append(
        &self,
        request: Request<Streaming<v1::AppendEntriesRequest>>,
    ) -> Result<Response<Self::StreamAppendStream>, Status> {
        // A broken connection ends the requests; Raft answers those it has.
        let requests = request.into_inner().scan((), |(), item| std::future::ready(item.ok()));
        let peer = self.peer.clone();
        // The handler waits for the first request before it answers; the response head must not.
        let answers = futures_util::stream::once(async move { peer.stream_append(requests.boxed()).await });
        let answers = answers.flat_map(|opened| match opened {
            Ok(answers) => answers,
            Err(error) => futures_util::stream::iter([Err(error)]).boxed(),
        });
        Ok(Response::new(answers.map(|answer| answer.map_err(to_status)).boxed()))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        self.peer.heartbeat(request.into_inner(), CALLER_DECIDES).await.map(Response::new).map_err(to_status)
    }

    async fn vote(&self, request: Request<v1::VoteRequest>) -> Result<Response<v1::VoteResponse>, Status> {
        self.peer
            .vote(request.into_inner(), false, CALLER_DECIDES)
            .await
            .map(Response::new)
            .map_err(to_status)
    }

    async fn pre_vote(
        &self,
        request: Request<v1::VoteRequest>,
    ) -> Result<Response<v1::VoteResponse>, Status> {
        self.peer.vote(request.into_inner(), true, CALLER_DECIDES).await.map(Response::new).map_err(to_status)
    }

    async fn transfer_leadership(
        &self,
        request: Request<v1::TransferLeadershipRequest>,
    ) -> Result<Response<v1::TransferLeadershipResponse>, Status> {
        let answer = self.peer.transfer_leadership(request.into_inner(), CALLER_DECIDES).await;
        answer.map(Response::new).map_err(to_status)
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<v1::InstallSnapshotRequest>>,
    ) -> Result<Response<v1::InstallSnapshotResponse>, Status> {
        let parts = request.into_inner().map(|part| part.map_err(to_error)).boxed();
        self.peer.install_snapshot(parts).await.map(Response::new).map_err(to_status)
    }

    async fn identify(
        &self,
        request: Request<v1::IdentifyRequest>,
    ) -> Result<Response<v1::IdentifyResponse>, Status> {
        self.peer.identify(request.into_inner(), CALLER_DECIDES).await.map(Response::new).map_err(to_status)
    }
}
