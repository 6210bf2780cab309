//! Reservations that were dropped before they ended: released in the background, as well as it goes.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use holdfast_proto::ledger::command::Release;
use holdfast_proto::ledger::{Command, ReservationId};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::{Client, Core};
use crate::error::CallError;
use crate::limits::{ABANDONED_AT_ONCE_MAX, ABANDONED_MAX};
use crate::options::CallOptions;

/// The background task of a client. It ends when the last handle is gone and its queue is empty.
#[derive(Debug)]
pub(crate) struct Abandoned {
    queue: mpsc::Sender<ReservationId>,
    task: JoinHandle<()>,
}

impl Abandoned {
    pub(crate) fn spawn(core: Arc<Core>, options: CallOptions) -> Self {
        let (queue, ids) = mpsc::channel(ABANDONED_MAX);
        Abandoned { queue, task: tokio::spawn(release_all(core, options, ids)) }
    }

    /// False if there is no room: then the hold TTL ends it.
    pub(crate) fn release(&self, id: ReservationId) -> bool {
        self.queue.try_send(id).is_ok()
    }

    /// Waits until everything queued is released.
    pub(crate) async fn close(self) {
        drop(self.queue);
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the task that releases dropped reservations failed");
        }
    }
}

async fn release_all(core: Arc<Core>, options: CallOptions, mut ids: mpsc::Receiver<ReservationId>) {
    let mut running = FuturesUnordered::new();
    let mut open = true;
    while open || !running.is_empty() {
        tokio::select! {
            id = ids.recv(), if open && running.len() < ABANDONED_AT_ONCE_MAX => match id {
                Some(id) => running.push(release(&core, &options, id)),
                None => open = false,
            },
            Some(()) = running.next() => {}
        }
    }
}

async fn release(core: &Core, options: &CallOptions, id: ReservationId) {
    match core.run_pinned(options, None, Command::Release(Release { id }), 0).await {
        // An id that has ended by itself needs no release.
        Ok(_) | Err(CallError::Rejected(_)) => {}
        Err(error) => {
            tracing::warn!(%id, %error, "a dropped reservation could not be released; its hold TTL ends it")
        }
    }
}

/// Releases an id unless the call that used it came to its end: for futures that are dropped on the way.
pub(crate) struct Undo<'a> {
    client: &'a Client,
    id: ReservationId,
    armed: bool,
}

impl<'a> Undo<'a> {
    pub(crate) fn new(client: &'a Client, id: ReservationId) -> Self {
        Undo { client, id, armed: true }
    }

    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.armed && !self.client.abandon(self.id) {
            tracing::warn!(id = %self.id, "a reserve was dropped on its way and could not be queued for release");
        }
    }
}
