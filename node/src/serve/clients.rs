//! What runs on the clients' runtime: the client port, the HTTP port, and the watch that tells health.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::transport::Server;

use super::Fatal;
use super::face::NodeFace;
use super::incoming::incoming;
use crate::api::{Connections, Context, HealthTeller, routes};
use crate::config::WebhookPolicy;
use crate::http;
use crate::limits::{
    CLIENT_KEEPALIVE_INTERVAL, CLIENT_KEEPALIVE_TIMEOUT, CLIENT_STREAMS_MAX, CONNECTION_WINDOW_BYTES,
    STREAM_WINDOW_BYTES,
};

use crate::webhooks::Sender;

/// The ports that serve clients, the sender of webhooks, and their stop.
pub(super) struct Clients {
    cx: Arc<Context>,
    stop: watch::Sender<bool>,
    stop_http: watch::Sender<bool>,
    wanted: watch::Sender<bool>,
    grpc: JoinHandle<Result<(), tonic::transport::Error>>,
    http: JoinHandle<()>,
    watch: JoinHandle<()>,
    webhooks: Option<JoinHandle<()>>,
}

impl Clients {
    /// Serves both ports on the runtime `on`. `stop` is the sender of the context's stop.
    pub(super) fn start(
        on: &Handle,
        cx: Arc<Context>,
        stop: watch::Sender<bool>,
        client: TcpListener,
        http: TcpListener,
        webhooks: &WebhookPolicy,
    ) -> Result<Self, Fatal> {
        let _on = on.enter();
        let listener = |listener, key| {
            tokio::net::TcpListener::from_std(listener)
                .map_err(|error| Fatal::port(key, "its address", &error))
        };
        let (client, http) = (listener(client, "client.listen")?, listener(http, "http.listen")?);
        let (routes, teller) = routes(&cx).map_err(|error| Fatal::Start(format!("reflection: {error}")))?;
        let (wanted, still_wanted) = watch::channel(true);
        let face = Arc::new(NodeFace { cx: Arc::clone(&cx), wanted: still_wanted.clone() });
        let mut stopped = stop.subscribe();
        let connections = Connections::new(cx.bounds.connections, Arc::clone(&cx.metrics));
        let grpc = server().add_routes(routes).serve_with_incoming_shutdown(
            incoming(client, connections),
            async move {
                // An error means that the sender is gone: as good as a stop.
                let _ = stopped.wait_for(|stop| *stop).await;
            },
        );
        let webhooks = webhooks.enabled.then(|| {
            let sender = Sender::new(Arc::clone(&cx), Duration::from_millis(webhooks.deadline_ms));
            tokio::spawn(sender.run(stop.subscribe()))
        });
        let (stop_http, http_stopped) = watch::channel(false);
        Ok(Clients {
            grpc: tokio::spawn(grpc),
            http: tokio::spawn(http::run(http, face, http_stopped)),
            watch: tokio::spawn(tell_health(Arc::clone(&cx), teller, still_wanted)),
            webhooks,
            cx,
            stop,
            stop_http,
            wanted,
        })
    }

    /// From now on the node says that it is not ready. It still answers.
    pub(super) fn not_ready(&self) {
        self.wanted.send_replace(false);
    }

    /// Takes nothing new, answers what is under way for at most `within`, then closes both ports.
    pub(super) async fn drain(mut self, within: Duration) {
        self.stop.send_replace(true);
        match tokio::time::timeout(within, &mut self.grpc).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!("the client port did not close in order: {error}"),
            Ok(Err(error)) => tracing::warn!("the client port did not close in order: {error}"),
            Err(_) => {
                tracing::warn!(
                    streams = self.cx.metrics.streams.get(),
                    "clients were cut off after {within:?}"
                );
                self.grpc.abort();
            }
        }
        self.stop_http.send_replace(true);
        if let Err(error) = self.http.await {
            tracing::warn!("the HTTP port did not close in order: {error}");
        }
        self.watch.abort();
        if let Some(webhooks) = self.webhooks
            && let Err(error) = webhooks.await
        {
            tracing::warn!("the sender of webhooks did not stop in order: {error}");
        }
    }
}

fn server() -> Server {
    Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CLIENT_STREAMS_MAX)
        .http2_keepalive_interval(Some(CLIENT_KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(CLIENT_KEEPALIVE_TIMEOUT))
}

/// Tells health and logs who leads, as that changes.
async fn tell_health(cx: Arc<Context>, teller: HealthTeller, mut wanted: watch::Receiver<bool>) {
    use openraft_rt::watch::WatchReceiver;
    let mut leaders = cx.node.watch_leader();
    let mut logged = None;
    loop {
        let view = *leaders.borrow_watched();
        if view != logged {
            if let Some(view) = view {
                tracing::info!(term = view.term, leader = view.leader, leads = view.is_me, "leadership");
            }
            logged = view;
        }
        let can_serve = *wanted.borrow_and_update() && view.is_some_and(|view| view.leader.is_some());
        teller.tell(can_serve).await;
        let ended = tokio::select! {
            changed = leaders.changed() => changed.is_err(),
            changed = wanted.changed() => changed.is_err(),
        };
        if ended {
            // Raft or the node's owner has ended; nothing can be served any more.
            teller.tell(false).await;
            return;
        }
    }
}
