//! Being asked to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::{Failure, Outcome};
use crate::stdin;

/// Listens for Ctrl-C, SIGTERM and the loss of the terminal. A signal between two waits is not lost.
pub struct StopSignal {
    stdin_closed: Option<oneshot::Receiver<()>>,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl StopSignal {
    /// Begins to listen; to the end of standard input too, if whoever started us asked for that.
    pub fn listen(stop_with_stdin: bool) -> Outcome<StopSignal> {
        let listen =
            |kind| signal(kind).map_err(|e| Failure::failed(format!("cannot listen for signals: {e}")));
        Ok(StopSignal {
            stdin_closed: if stop_with_stdin { Some(stdin::watch()?) } else { None },
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Returns when this process is asked to stop.
    pub async fn asked(&mut self) {
        let closed = async {
            match &mut self.stdin_closed {
                Some(wait) => drop(wait.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closed => {}
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
