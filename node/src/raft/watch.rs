//! Tasks that watch: Raft's core (its end is the node's), who leads, and when a snapshot is due.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use openraft_rt::{AsyncRuntime, Watch, WatchReceiver, WatchSender};

use super::limits::SNAPSHOT_POLL;
use super::metrics::Metrics;
use super::settings::RaftSettings;
use super::shared::{RaftNode, Shared};
use super::types::NodeId;
use crate::storage::log::Log;

/// Who leads in which term, as this node sees it. For announcements, never for decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderView {
    /// The term.
    pub term: u64,
    /// The leader; `None`: none is known.
    pub leader: Option<NodeId>,
    /// Whether it is this node.
    pub is_me: bool,
}

/// Publishes leader changes; fails the node when Raft's core has ended without being asked to.
pub(super) async fn watch_core<R: AsyncRuntime>(
    shared: Arc<Shared<R>>,
    raft: RaftNode<R>,
    log: Log,
    leader: <R::Watch as Watch>::Sender<Option<LeaderView>>,
    metrics: Arc<Metrics>,
) {
    let mut changes = raft.metrics();
    loop {
        let view = {
            let seen = changes.borrow_watched();
            let is_me = seen.current_leader == Some(shared.me());
            LeaderView { term: seen.current_term, leader: seen.current_leader, is_me }
        };
        if leader.send_if_different(Some(view)) && view.leader.is_some() {
            metrics.leader_changes.fetch_add(1, Ordering::Relaxed);
        }
        if changes.changed().await.is_err() {
            break;
        }
    }
    if shared.is_stopping() {
        return;
    }
    // openraft keeps saying "leader" after its core has died; the closed channel is the only sign.
    let state = changes.borrow_watched().running_state.clone();
    let why = match (log.health(), state) {
        (Err(error), _) => format!(
            "{error}. Nothing that was acknowledged depends on what could not be written. See to the disk, then \
             start the node again; if the disk has lost something, replace this member under a new id"
        ),
        (Ok(()), Err(fatal)) => format!("Raft has stopped: {fatal}"),
        (Ok(()), Ok(())) => "Raft's core has ended".to_owned(),
    };
    shared.fail(why);
}

/// Takes a snapshot whenever enough bytes or commands were applied since the last one.
pub(super) async fn watch_snapshots<R: AsyncRuntime>(
    raft: RaftNode<R>,
    shared: Arc<Shared<R>>,
    metrics: Arc<Metrics>,
    settings: RaftSettings,
) {
    let counted =
        || (metrics.bytes_applied.load(Ordering::Relaxed), metrics.commands_applied.load(Ordering::Relaxed));
    let mut installed = metrics.snapshots_installed.load(Ordering::Relaxed);
    let (mut bytes, mut commands) = (0, 0);
    loop {
        R::sleep(SNAPSHOT_POLL).await;
        let (bytes_now, commands_now) = counted();
        let installed_now = metrics.snapshots_installed.load(Ordering::Relaxed);
        if installed_now != installed {
            (installed, bytes, commands) = (installed_now, bytes_now, commands_now);
            continue;
        }
        let due = bytes_now - bytes >= settings.snapshot_log_bytes
            || commands_now - commands >= settings.snapshot_commands;
        if due {
            (bytes, commands) = (bytes_now, commands_now);
            if let Err(fatal) = raft.trigger().snapshot().await {
                tracing::warn!(node = shared.me(), "no snapshot was begun: {fatal}");
            }
        }
    }
}
