//! Whoever started us may hold the other end of our standard input, and is gone when it closes.

use tokio::sync::oneshot;

use crate::failure::{Failure, Outcome};

/// Gives word when standard input closes.
pub fn watch() -> Outcome<oneshot::Receiver<()>> {
    let (closed, wait) = oneshot::channel();
    // A thread of its own, which ends with the process: a read cannot be called off.
    std::thread::Builder::new()
        .name("holdfast-stdin".into())
        .spawn(move || {
            drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
            closed.send(()).ok();
        })
        .map_err(|e| Failure::failed(format!("no thread can be made: {e}")))?;
    Ok(wait)
}
