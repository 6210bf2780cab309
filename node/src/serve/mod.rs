//! A node as a process: what is started in which order, and what ends it.
//!
//! # Order of starting
//!
//! 1. The ports are bound: a node that cannot be reached touches neither its data nor the cluster.
//! 2. The data directory is made if it is absent, locked, and checked to be this node's.
//! 3. Raft's thread opens the log, restores the book, and starts Raft; then the peer port is served there.
//! 4. The history index is opened on its thread, since a node that does not start changes nothing.
//! 5. The clients' runtime serves the client port and the HTTP port.
//!
//! # Order of stopping
//!
//! 1. The node is no longer ready, and leadership is handed over, while clients are still answered.
//! 2. The client port takes nothing new; what is under way is answered, for a bounded time.
//! 3. The HTTP port closes.
//! 4. Raft stops, the log is made durable, the peer port closes.
//! 5. The history index is written out.
//! 6. The data directory is unlocked.
//!
//! A node that has failed (its log, its book, Raft's core) goes through the same steps but the first, and
//! ends with the reason.

mod clients;
mod data;
mod face;
mod fatal;
mod history;
mod incoming;
mod ports;
mod raft;
mod signals;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use openraft_rt::watch::WatchReceiver;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use self::clients::Clients;
use self::data::DataDirectory;
use self::history::History;
use crate::api::Context;
use crate::config::NodeConfig;
use crate::events::EventBell;
use crate::limits::{CLIENT_THREADS_MAX, DRAIN_TIMEOUT, EVENT_STREAMS_MAX, RUNTIME_STOP_TIMEOUT};
use crate::metrics::Metrics;
use crate::raft::host::{RaftThread, TokioNode};
use crate::replica::EffectSink;

pub use fatal::Fatal;
pub use ports::{Addresses, Ports};
pub use signals::asked_to_stop;

/// How a node comes to its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMode {
    /// It has been part of it: the data directory must know it.
    #[default]
    Normal,
    /// It founds the cluster with the configured members. Does nothing more once that has happened.
    Bootstrap,
    /// It is new and waits to be added; the configured members are asked whether its id is free.
    Join,
}

/// How a node is started, beyond its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartOptions {
    /// How it comes to its cluster.
    pub mode: StartMode,
    /// A file that every applied entry is recorded in, for those who check a cluster from outside.
    pub applied_log: Option<PathBuf>,
}

impl From<StartMode> for StartOptions {
    fn from(mode: StartMode) -> Self {
        StartOptions { mode, applied_log: None }
    }
}

/// Runs a node until `shutdown` is ready or the node fails. Blocks the calling thread.
///
/// # Errors
/// Why it did not start, or what ended it. After `shutdown` an orderly stop gives `Ok`.
pub fn serve(
    config: &NodeConfig,
    options: impl Into<StartOptions>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Fatal> {
    let ports = Ports::bind(config)?;
    Running::start(config, ports, options)?.run_until(shutdown)
}

/// As [`serve`], until SIGTERM or Ctrl-C.
///
/// # Errors
/// As [`serve`].
pub fn serve_until_signal(config: &NodeConfig, options: impl Into<StartOptions>) -> Result<(), Fatal> {
    serve(config, options, async {
        match asked_to_stop().await {
            Ok(signal) => tracing::info!(signal, "asked to stop"),
            Err(error) => {
                tracing::error!("no signals can be received, so the node runs until it is killed: {error}");
                std::future::pending().await
            }
        }
    })
}

/// A node that runs. Dropping it stops it without handing over; [`Running::stop`] is the orderly way.
pub struct Running {
    addresses: Addresses,
    node: TokioNode,
    clients: Clients,
    raft: RaftThread,
    runtime: Runtime,
    history: History,
    data: DataDirectory,
}

impl Running {
    /// Starts a node on ports that are bound already. Blocks until it runs.
    ///
    /// # Errors
    /// Why it did not start. Nothing runs then.
    pub fn start(
        config: &NodeConfig,
        ports: Ports,
        options: impl Into<StartOptions>,
    ) -> Result<Running, Fatal> {
        let options = options.into();
        let addresses = ports.addresses().clone();
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(version, mode = ?options.mode, "starting: {}", config.one_line());
        let Ports { client, peer, http, .. } = ports;
        let data = DataDirectory::open(config)?;
        let disk_id = raft::claim(config, options.mode, &data)?;
        let runtime = client_runtime()?;
        let on = runtime.handle();
        let (history, effects) = History::start(config, &data, disk_id)?;
        let (bell, events) = EventBell::before(effects);
        let effects: Box<dyn EffectSink> = Box::new(bell);
        let started = raft::start(config, &options, &addresses, peer, &data, effects, on);
        let (node, raft) = match started {
            Ok(started) => started,
            Err(error) => {
                history.stop();
                return Err(error);
            }
        };
        history.begin();
        let (stop, stopped) = watch::channel(false);
        let cx = Arc::new(Context {
            node: node.clone(),
            node_id: config.node_id,
            cluster_id: config.cluster_id.clone(),
            metrics: Arc::new(Metrics::new()),
            bounds: (&config.queue).into(),
            history: history.reader.clone(),
            events,
            event_streams: Arc::new(Semaphore::new(EVENT_STREAMS_MAX)),
            deliveries: Arc::default(),
            stop: stopped,
        });
        let clients = match Clients::start(on, cx, stop, client, http, &config.webhooks) {
            Ok(clients) => clients,
            Err(error) => {
                stop_raft(raft);
                history.stop();
                return Err(error);
            }
        };
        let Addresses { client, peer, http } = &addresses;
        tracing::info!(node = config.node_id, cluster = config.cluster_id, client, peer, http, "serving");
        Ok(Running { addresses, node, clients, raft, runtime, history, data })
    }

    /// Where the node is reached.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Waits until `shutdown` is ready or the node fails, then stops it.
    ///
    /// # Errors
    /// What ended the node, if it was not `shutdown`.
    pub fn run_until(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), Fatal> {
        let mut fatal = self.node.watch_fatal();
        self.runtime.block_on(async move {
            let failed = async { while fatal.borrow_watched().is_none() && fatal.changed().await.is_ok() {} };
            tokio::select! {
                () = shutdown => {}
                () = failed => {}
            }
        });
        self.stop()
    }

    /// Stops the node in order. Blocks until it has stopped.
    ///
    /// # Errors
    /// Why the node had failed, if it had.
    pub fn stop(self) -> Result<(), Fatal> {
        let Running { node, clients, raft, runtime, history, data, .. } = self;
        let failure = node.watch_fatal().borrow_watched().clone();
        match &failure {
            None => tracing::info!("stopping"),
            Some(why) => tracing::error!("stopping, since the node has failed: {why}"),
        }
        clients.not_ready();
        runtime.block_on(async {
            if failure.is_none() {
                node.hand_over().await;
            }
            clients.drain(DRAIN_TIMEOUT).await;
        });
        stop_raft(raft);
        history.stop();
        drop(data);
        runtime.shutdown_timeout(RUNTIME_STOP_TIMEOUT);
        match failure {
            None => {
                tracing::info!("stopped");
                Ok(())
            }
            Some(why) => Err(Fatal::Stopped(why)),
        }
    }
}

fn stop_raft(raft: RaftThread) {
    if let Err(error) = raft.stop() {
        tracing::warn!("Raft did not stop in order: {error}");
    }
}

fn client_runtime() -> Result<Runtime, Fatal> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(1, CLIENT_THREADS_MAX))
        .thread_name("holdfast-clients")
        .enable_all()
        .build()
        .map_err(|error| Fatal::thread(&error))
}
