//! A node on the machine: Raft on a thread and a runtime of its own, apart from client traffic.
//!
//! A runtime starved by clients would make a leader miss its own lease.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use openraft_rt_tokio::TokioRuntime;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::grpc::service;
use super::handle::NodeHandle;
use super::limits::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, STREAM_WINDOW_BYTES};
use super::start::{NodeParts, StartError, start};

/// The handle of a node on this machine.
pub type TokioNode = NodeHandle<TokioRuntime>;

/// Raft's thread with its peer port.
#[derive(Debug)]
pub struct RaftThread {
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<io::Result<()>>,
}

impl RaftThread {
    /// Starts a node and serves its peers on `listener`. Returns when it runs or has refused to.
    ///
    /// # Errors
    /// As [`start`]; the thread has ended then.
    pub async fn start(
        parts: NodeParts,
        listener: std::net::TcpListener,
    ) -> Result<(TokioNode, Self), StartError> {
        let (started_tx, started) = oneshot::channel();
        let (stop_tx, stop) = oneshot::channel();
        let thread = std::thread::Builder::new().name("raft".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                let node = match start::<TokioRuntime>(parts).await {
                    Ok(node) => node,
                    Err(error) => {
                        // The starter is told; if it is gone nobody wants to know.
                        let _ = started_tx.send(Err(error));
                        return Ok(());
                    }
                };
                let _ = started_tx.send(Ok(node.clone()));
                serve(node, listener, stop).await
            })
        })?;
        let node = match started.await {
            Ok(node) => node?,
            Err(_) => return Err(StartError::State("Raft's thread ended while it started".into())),
        };
        Ok((node, RaftThread { stop: Some(stop_tx), thread }))
    }

    /// Stops the node (leadership is handed over first), then its peer port, then the thread. Blocks: call it
    /// from a thread that may.
    pub fn stop(mut self) -> io::Result<()> {
        // An error here means that it has ended by itself; joining tells how.
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("Raft's thread panicked")))
    }
}

async fn serve(
    node: TokioNode,
    listener: std::net::TcpListener,
    stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let incoming = TcpIncoming::from(TcpListener::from_std(listener)?).with_nodelay(Some(true));
    let (served_tx, served) = oneshot::channel::<()>();
    let server = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(STREAM_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .add_service(service(node.peer_server()));
    let serving = server.serve_with_incoming_shutdown(incoming, async {
        // A dropped sender stops the server too.
        let _ = served.await;
    });
    let stopping = async {
        // A dropped `RaftThread` stops the node too.
        let _ = stop.await;
        node.shutdown().await;
        drop(served_tx);
    };
    let serving = tokio::spawn(serving);
    let abort = serving.abort_handle();
    stopping.await;
    // Peers keep their connections for ever: do not wait for them to leave.
    abort.abort();
    match serving.await {
        Ok(result) => result.map_err(io::Error::other),
        Err(_) => Ok(()),
    }
}

/// Binds a peer port.
///
/// # Errors
/// Names the address, for example when it is in use.
pub fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind(address)
        .map_err(|e| io::Error::new(e.kind(), format!("the peer port {address}: {e}")))
}
