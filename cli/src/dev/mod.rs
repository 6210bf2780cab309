//! `holdfast dev`: a whole cluster on this machine.

mod fleet;
mod layout;
mod ports;
mod running;

pub use layout::Wanted;
pub use running::Running;

/// Returns when this process is asked to stop: Ctrl-C, SIGTERM, or its terminal is gone.
pub async fn asked_to_stop() {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn next(signal: std::io::Result<Signal>) {
        match signal {
            Ok(mut signal) => drop(signal.recv().await),
            // Without a handler the signal ends the process at once, which the children notice.
            Err(_) => std::future::pending().await,
        }
    }
    tokio::select! {
        () = next(signal(SignalKind::interrupt())) => {}
        () = next(signal(SignalKind::terminate())) => {}
        () = next(signal(SignalKind::hangup())) => {}
    }
}
