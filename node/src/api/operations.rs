//! The `Operations` service: what operators do.

use std::sync::Arc;

use holdfast_ledger::command::Unfreeze;
use holdfast_ledger::record::Header;
use holdfast_ledger::{Adjust, Command};
use holdfast_proto::adjust::encode_adjusted;
use holdfast_proto::answers::encode_unfrozen;
use holdfast_proto::queries::encode_audit;
use holdfast_proto::{Failure, v1};
use tonic::{Request, Response, Status};

use super::{Context, deadline, failures};
use crate::audit::Audit;

/// The service on one node.
pub(super) struct OperationsService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::operations_server::Operations for OperationsService {
    async fn audit(&self, request: Request<v1::AuditRequest>) -> Result<Response<v1::AuditResponse>, Status> {
        self.cx.answer(self.read_audit(request).await)
    }

    async fn unfreeze(
        &self,
        request: Request<v1::UnfreezeRequest>,
    ) -> Result<Response<v1::UnfreezeResponse>, Status> {
        self.cx.answer(self.propose_unfreeze(request).await)
    }

    async fn adjust(
        &self,
        request: Request<v1::AdjustRequest>,
    ) -> Result<Response<v1::AdjustResponse>, Status> {
        self.cx.answer(self.propose_adjust(request).await)
    }
}

impl OperationsService {
    async fn read_audit(&self, request: Request<v1::AuditRequest>) -> Result<v1::AuditResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        self.cx.point(request.get_ref().stale, at).await?;
        // The book as it is at that point; apply goes on meanwhile.
        let audit = Audit::begin(self.cx.replica());
        let Header { clock_ms, generation, .. } = *audit.header();
        // It goes over the whole book: not on a thread that carries other calls.
        let node = self.cx.node.clone();
        let report = tokio::task::spawn_blocking(move || audit.run(node.replica())).await;
        let report = report.map_err(|error| failures::node_failed(error.to_string()))?;
        Ok(encode_audit(self.cx.node_id, clock_ms, generation, &report))
    }

    async fn propose_unfreeze(
        &self,
        request: Request<v1::UnfreezeRequest>,
    ) -> Result<v1::UnfreezeResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let unfreeze = Unfreeze::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::Unfreeze(unfreeze), at).await?;
        encode_unfrozen(&answer, revision)
    }

    async fn propose_adjust(
        &self,
        request: Request<v1::AdjustRequest>,
    ) -> Result<v1::AdjustResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let adjust = Adjust::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::Adjust(Box::new(adjust)), at).await?;
        encode_adjusted(&answer, revision)
    }
}
