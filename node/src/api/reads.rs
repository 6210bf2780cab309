//! The point in the order of all commands that a read is answered at.

use holdfast_proto::Failure;
use tokio::time::Instant;

use super::{Context, deadline, failures};

impl Context {
    /// Waits until this node has applied everything that was acknowledged before now, anywhere in the
    /// cluster; with `stale` it does not wait and takes what is applied here.
    pub(super) async fn point(&self, stale: bool, at: Instant) -> Result<(), Failure> {
        if stale {
            return Ok(());
        }
        self.node.read_barrier(deadline::on_raft(at)).await.map_err(failures::of_read)
    }
}
