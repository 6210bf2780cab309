//! The thread that drives the worker on a real machine.

use std::io;
use std::sync::PoisonError;
use std::thread::{self, JoinHandle};

use super::{Log, SyncWorker};

/// The running sync thread. Its owner stops it; dropping it leaves it running until the log is closed.
#[derive(Debug)]
pub struct SyncThread {
    handle: JoinHandle<io::Result<()>>,
}

impl SyncThread {
    /// Closes the log, waits until everything queued is durable, and returns how it ended.
    pub fn stop(self, log: &Log) -> io::Result<()> {
        log.close();
        self.join()
    }

    /// Waits for the end: of a log that was closed, or of one that failed.
    pub fn join(self) -> io::Result<()> {
        self.handle.join().unwrap_or_else(|_| Err(io::Error::other("the log's sync thread panicked")))
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

/// Starts a thread that syncs whatever is queued, as soon as it is.
pub fn spawn_sync_thread(mut worker: SyncWorker) -> io::Result<SyncThread> {
    let handle = thread::Builder::new().name("log-sync".into()).spawn(move || {
        while wait_for_work(&worker) {
            worker.run_once()?;
        }
        worker.close()
    })?;
    Ok(SyncThread { handle })
}

/// Sleeps until something is queued. False once the log is closed and nothing is left.
fn wait_for_work(worker: &SyncWorker) -> bool {
    let shared = worker.shared();
    let mut state = shared.lock();
    loop {
        if state.has_work() || state.poison.is_some() {
            return true;
        }
        if state.closed {
            return false;
        }
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}
