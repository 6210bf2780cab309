//! The `Operations` service: what operators do.

use std::sync::Arc;

use holdfast_ledger::command::{Freeze, ResolveUnknown, Unfreeze};
use holdfast_ledger::ids::TenantId;
use holdfast_ledger::record::Header;
use holdfast_ledger::{Adjust, Command};
use holdfast_proto::adjust::encode_adjusted;
use holdfast_proto::answers::{encode_answer, encode_frozen, encode_unfrozen};
use holdfast_proto::operators::decode_place;
use holdfast_proto::queries::encode_audit;
use holdfast_proto::{Failure, v1};
use tonic::{Request, Response, Status};

use super::{Context, deadline, failures, fields};
use crate::audit::Audit;
use crate::limits::UNKNOWN_PAGE_ENTRIES_MAX;

/// The service on one node.
pub(super) struct OperationsService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::operations_server::Operations for OperationsService {
    async fn audit(&self, request: Request<v1::AuditRequest>) -> Result<Response<v1::AuditResponse>, Status> {
        self.cx.answer(self.read_audit(request).await)
    }

    async fn freeze(
        &self,
        request: Request<v1::FreezeRequest>,
    ) -> Result<Response<v1::FreezeResponse>, Status> {
        self.cx.answer(self.propose_freeze(request).await)
    }

    async fn list_unknown(
        &self,
        request: Request<v1::ListUnknownRequest>,
    ) -> Result<Response<v1::ListUnknownResponse>, Status> {
        self.cx.answer(self.read_unknown(request).await)
    }

    async fn resolve_unknown(
        &self,
        request: Request<v1::ResolveUnknownRequest>,
    ) -> Result<Response<v1::CommandAnswer>, Status> {
        self.cx.answer(self.propose_resolve(request).await)
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

    async fn propose_freeze(
        &self,
        request: Request<v1::FreezeRequest>,
    ) -> Result<v1::FreezeResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let freeze = Freeze::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::Freeze(freeze), at).await?;
        encode_frozen(&answer, revision)
    }

    async fn read_unknown(
        &self,
        request: Request<v1::ListUnknownRequest>,
    ) -> Result<v1::ListUnknownResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let v1::ListUnknownRequest { tenant, after, entries_max, stale } = request.into_inner();
        let tenant = tenant.map(|tenant| fields::name::<TenantId>("tenant", &tenant)).transpose()?;
        let after = after.as_ref().map(decode_place).transpose()?;
        let most = match usize::try_from(entries_max) {
            Ok(0) | Err(_) => UNKNOWN_PAGE_ENTRIES_MAX,
            Ok(most) => most.min(UNKNOWN_PAGE_ENTRIES_MAX),
        };
        self.cx.point(stale, at).await?;
        let now_ms = self.cx.now_ms();
        // One more than is given out tells whether there are more.
        let (revision, clock_ms, found) = self.cx.replica().read(|book| {
            (book.revision(), book.clock_ms(), book.unknowns(tenant.as_ref(), after, now_ms, most + 1))
        });
        Ok(v1::ListUnknownResponse {
            revision,
            at_ms: now_ms.max(clock_ms),
            entries: found.iter().take(most).map(v1::UnknownUsage::from).collect(),
            more: found.len() > most,
        })
    }

    async fn propose_resolve(
        &self,
        request: Request<v1::ResolveUnknownRequest>,
    ) -> Result<v1::CommandAnswer, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let resolve = ResolveUnknown::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::ResolveUnknown(resolve), at).await?;
        encode_answer(&answer, revision, None)
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
