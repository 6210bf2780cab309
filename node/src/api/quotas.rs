//! The `Quotas` service: what is used and what is left.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use holdfast_ledger::ids::{LimitId, TenantId, UserId};
use holdfast_proto::{Failure, v1};
use tonic::{Request, Response, Status};

use super::events::watch_events;
use super::{Context, deadline, fields};

/// The service on one node.
pub(super) struct QuotasService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::quotas_server::Quotas for QuotasService {
    async fn get_quota(
        &self,
        request: Request<v1::GetQuotaRequest>,
    ) -> Result<Response<v1::GetQuotaResponse>, Status> {
        self.cx.answer(self.read_quota(request).await)
    }

    async fn list_statements(
        &self,
        request: Request<v1::ListStatementsRequest>,
    ) -> Result<Response<v1::ListStatementsResponse>, Status> {
        self.cx.answer(self.read_statements(request).await)
    }

    type WatchEventsStream = BoxStream<'static, Result<v1::WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        self.cx.answer(self.follow_events(request.get_ref()))
    }
}

impl QuotasService {
    async fn read_statements(
        &self,
        request: Request<v1::ListStatementsRequest>,
    ) -> Result<v1::ListStatementsResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let wire = request.into_inner();
        let tenant: TenantId = fields::name("tenant", &wire.tenant)?;
        let user: Option<UserId> = fields::optional_name("user", wire.user.as_deref())?;
        let limit: Option<LimitId> = fields::optional_name("limit", wire.limit.as_deref())?;
        self.cx.point(wire.stale, at).await?;
        let now_ms = self.cx.now_ms();
        let (revision, mut found) =
            self.cx.replica().read(|book| (book.revision(), book.statements(&tenant, user.as_ref(), now_ms)));
        found.retain(|statement| {
            limit.as_ref().is_none_or(|limit| statement.lineage.limit == *limit)
                && wire.epoch_start_ms.is_none_or(|start_ms| statement.epoch_start_ms == start_ms)
        });
        let statements = found.iter().map(v1::EpochStatement::from).collect();
        Ok(v1::ListStatementsResponse { revision, statements })
    }

    fn follow_events(
        &self,
        request: &v1::WatchEventsRequest,
    ) -> Result<BoxStream<'static, Result<v1::WatchEventsResponse, Status>>, Failure> {
        let tenant: Option<TenantId> = fields::optional_name("tenant", request.tenant.as_deref())?;
        Ok(watch_events(&self.cx, request.from, request.follow, tenant)?.boxed())
    }

    async fn read_quota(
        &self,
        request: Request<v1::GetQuotaRequest>,
    ) -> Result<v1::GetQuotaResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let wire = request.into_inner();
        let tenant: TenantId = fields::name("tenant", &wire.tenant)?;
        let user: Option<UserId> = fields::optional_name("user", wire.user.as_deref())?;
        self.cx.point(wire.stale, at).await?;
        let now_ms = self.cx.now_ms();
        Ok(self.cx.replica().read(|book| {
            let lines = match wire.shadow {
                false => book.quota(&tenant, user.as_ref(), now_ms),
                true => book.quota_in_shadow(&tenant, user.as_ref(), now_ms),
            };
            v1::GetQuotaResponse {
                revision: book.revision(),
                at_ms: now_ms.max(book.clock_ms()),
                generation: book.generation(),
                lines: lines.iter().map(v1::QuotaLine::from).collect(),
            }
        }))
    }
}
