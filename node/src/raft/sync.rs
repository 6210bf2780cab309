//! Who drives the log's sync worker: a thread on a machine, a task in the simulator.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openraft_rt::{AsyncRuntime, Select2, Watch, WatchReceiver, WatchSender};

use crate::storage::log::{Log, SyncThread, SyncWorker, spawn_sync_thread};

/// Who syncs the log.
#[derive(Clone)]
pub enum SyncDrive {
    /// A thread of its own.
    Thread,
    /// A task of the runtime, after a delay that stands for the disk's. For the simulator.
    Task(Arc<dyn Fn() -> Duration + Send + Sync>),
}

type Sender<R, T> = <<R as AsyncRuntime>::Watch as Watch>::Sender<T>;

/// The running driver. Its owner stops it, after Raft has ended.
pub(super) enum Syncing<R: AsyncRuntime> {
    Thread(SyncThread),
    Task { stop: Sender<R, bool>, task: R::JoinHandle<io::Result<()>> },
}

impl<R: AsyncRuntime> Syncing<R> {
    pub(super) fn start(log: &Log, worker: SyncWorker, drive: &SyncDrive) -> io::Result<Self> {
        match drive {
            SyncDrive::Thread => spawn_sync_thread(worker).map(Syncing::Thread),
            SyncDrive::Task(latency) => Ok(Self::start_task(log, worker, latency.clone())),
        }
    }

    fn start_task(
        log: &Log,
        mut worker: SyncWorker,
        latency: Arc<dyn Fn() -> Duration + Send + Sync>,
    ) -> Self {
        let (wake, mut work) = R::Watch::channel(0u64);
        let wake = Mutex::new(wake);
        log.set_wake(Arc::new(move || {
            wake.lock().unwrap_or_else(PoisonError::into_inner).send_if_modified(|count| {
                *count = count.wrapping_add(1);
                true
            });
        }));
        let (stop, mut stopped) = R::Watch::channel(false);
        let task = R::spawn(async move {
            loop {
                match R::select2(stopped.wait_until(|stop| *stop), work.changed()).await {
                    Select2::Second(Ok(())) => {}
                    Select2::First(_) | Select2::Second(Err(_)) => return worker.run_once().map(drop),
                }
                if let Select2::First(_) =
                    R::select2(stopped.wait_until(|stop| *stop), R::sleep(latency())).await
                {
                    return worker.run_once().map(drop);
                }
                worker.run_once()?;
            }
        });
        Syncing::Task { stop, task }
    }

    /// Makes what is queued durable and ends.
    pub(super) async fn stop(self, log: &Log) -> io::Result<()> {
        log.close();
        match self {
            // It ends within one sync: Raft queues nothing any more.
            Syncing::Thread(thread) => R::spawn_blocking(move || thread.join()).await?,
            Syncing::Task { stop, task } => {
                stop.send_if_different(true);
                task.await.unwrap_or_else(|error| Err(io::Error::other(error.to_string())))
            }
        }
    }
}
