//! The `History` service: what has ended, from this node's own index.

use std::sync::Arc;

use holdfast_proto::{ErrorReason, Failure, v1};
use tonic::{Request, Response, Status};

use super::Context;

/// The service on one node.
pub(super) struct HistoryService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::history_server::History for HistoryService {
    async fn read(
        &self,
        _request: Request<v1::ReadHistoryRequest>,
    ) -> Result<Response<v1::ReadHistoryResponse>, Status> {
        let failure =
            Failure::new(ErrorReason::Unsupported, "this member keeps no history (history.enabled)");
        self.cx.answer(Err(failure))
    }
}
