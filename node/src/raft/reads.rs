//! Linearizable reads: ReadIndex, one round of the quorum for everybody who waits.
//!
//! Never by lease: a voter that restarts quickly forgets what it promised, and a stale answer follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use openraft::ReadPolicy;
use openraft::errors::{LinearizableReadError, RaftError};
use openraft_rt::{AsyncRuntime, Mpsc, MpscReceiver, MpscSender, Oneshot, OneshotSender};

use super::leadership::Leadership;
use super::limits::READS_WAITING_MAX;
use super::metrics::Metrics;
use super::settings::RaftSettings;
use crate::propose::LeaderAt;

/// Why a read cannot be answered. Reads have no effect, so each may be repeated elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Another node leads, or none is known to.
    #[error("this node does not lead")]
    NotLeader(Option<LeaderAt>),
    /// No quorum confirmed this node's leadership in time.
    #[error("no quorum answered")]
    NoQuorum,
    /// Too many reads wait.
    #[error("too many reads wait")]
    Overloaded,
    /// The deadline passed.
    #[error("no answer in time")]
    TimedOut,
    /// The node is stopping or has failed.
    #[error("the node is stopping")]
    Stopping,
}

type Once<R> = <<R as AsyncRuntime>::Oneshot as Oneshot>::Sender<Result<(), ReadError>>;
type Sender<R> = <<R as AsyncRuntime>::Mpsc as Mpsc>::Sender<Once<R>>;
type Receiver<R> = <<R as AsyncRuntime>::Mpsc as Mpsc>::Receiver<Once<R>>;

/// Hands readers to the barrier task. Cheap to clone.
pub(super) struct Reads<R: AsyncRuntime> {
    queue: Sender<R>,
    waiting: Arc<AtomicUsize>,
}

impl<R: AsyncRuntime> Clone for Reads<R> {
    fn clone(&self) -> Self {
        Reads { queue: self.queue.clone(), waiting: self.waiting.clone() }
    }
}

impl<R: AsyncRuntime> Reads<R> {
    /// Starts the barrier task; it ends with the last handle.
    pub(super) fn start(leadership: Leadership<R>, settings: &RaftSettings, metrics: Arc<Metrics>) -> Self {
        let (queue, receiver) = R::Mpsc::channel(READS_WAITING_MAX);
        let rounds = Rounds { policy: settings.read_policy(), time_max: settings.election_max * 2 };
        drop(R::spawn(run(leadership, receiver, rounds, metrics)));
        Reads { queue, waiting: Arc::default() }
    }

    /// Returns once this node has shown that it leads, after the call, and has applied everything that
    /// was committed before.
    pub(super) async fn barrier(&self, deadline: R::Instant) -> Result<(), ReadError> {
        let waiting = self.waiting.fetch_add(1, Ordering::AcqRel);
        // A caller that goes away drops the call in the middle: the count must not stay behind.
        let _counted = Counted(&self.waiting);
        self.wait(waiting, deadline).await
    }

    async fn wait(&self, waiting: usize, deadline: R::Instant) -> Result<(), ReadError> {
        if waiting >= READS_WAITING_MAX {
            return Err(ReadError::Overloaded);
        }
        let (tx, rx) = R::Oneshot::channel();
        self.queue.send(tx).await.map_err(|_| ReadError::Stopping)?;
        match R::timeout_at(deadline, rx).await {
            Ok(result) => result.unwrap_or(Err(ReadError::Stopping)),
            Err(_) => Err(ReadError::TimedOut),
        }
    }
}

/// One reader among those who wait, for as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How leadership is shown to whoever waits.
struct Rounds {
    policy: ReadPolicy,
    time_max: Duration,
}

async fn run<R: AsyncRuntime>(
    leadership: Leadership<R>,
    mut queue: Receiver<R>,
    rounds: Rounds,
    metrics: Arc<Metrics>,
) {
    while let Some(first) = queue.recv().await {
        // Whoever came before the round begins is served by it; who comes later waits for the next.
        let mut readers = vec![first];
        while let Ok(next) = queue.try_recv() {
            readers.push(next);
        }
        let began = metrics.begin();
        let result = round(&leadership, &rounds).await;
        metrics.read_us.record(metrics.since(began));
        for reader in readers {
            // A reader that is gone has timed out.
            let _ = reader.send(result.clone());
        }
    }
}

async fn round<R: AsyncRuntime>(leadership: &Leadership<R>, rounds: &Rounds) -> Result<(), ReadError> {
    if !leadership.may_lead() {
        return Err(ReadError::NotLeader(leadership.leader()));
    }
    let confirmed = leadership.raft().ensure_linearizable(rounds.policy.clone());
    match R::timeout(rounds.time_max, confirmed).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_)))) => {
            Err(ReadError::NotLeader(leadership.leader()))
        }
        Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)))) | Err(_) => {
            Err(ReadError::NoQuorum)
        }
        Ok(Err(RaftError::Fatal(_))) => Err(ReadError::Stopping),
    }
}
