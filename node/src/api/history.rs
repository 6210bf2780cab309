//! The `History` service: what has ended, from this node's own index.

use std::sync::Arc;

use holdfast_ledger::ids::{ReservationId, TenantId};
use holdfast_proto::{ErrorReason, Failure, FieldError, v1};
use tonic::{Request, Response, Status};

use super::{Context, fields};
use crate::history;
use crate::storage::history::{HistoryError, HistoryPage};

/// The service on one node.
pub(super) struct HistoryService {
    pub(super) cx: Arc<Context>,
}

#[tonic::async_trait]
impl v1::history_server::History for HistoryService {
    async fn read(
        &self,
        request: Request<v1::ReadHistoryRequest>,
    ) -> Result<Response<v1::ReadHistoryResponse>, Status> {
        self.cx.answer(self.read_history(request.into_inner()).await)
    }
}

impl HistoryService {
    async fn read_history(&self, wire: v1::ReadHistoryRequest) -> Result<v1::ReadHistoryResponse, Failure> {
        let Some(reader) = self.cx.history.clone() else {
            let message = "this member keeps no history (history.enabled)";
            return Err(Failure::new(ErrorReason::Unsupported, message));
        };
        let v1::ReadHistoryRequest { of, from_revision, since_ms, entries_max } = wire;
        let records_max = match entries_max {
            0 => usize::MAX,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        };
        let wanted = match of {
            Some(v1::read_history_request::Of::Reservation(id)) => {
                Wanted::Reservation(fields::name("reservation", &id)?)
            }
            Some(v1::read_history_request::Of::Tenant(tenant)) => {
                Wanted::Tenant(fields::name("tenant", &tenant)?)
            }
            None => return Err(FieldError::new("of", "names neither a reservation nor a tenant").into()),
        };
        // The index reads files.
        let page = tokio::task::spawn_blocking(move || match wanted {
            Wanted::Reservation(id) => reader.reservation(id.0.to_be_bytes()),
            Wanted::Tenant(tenant) => reader.tenant(tenant.as_str(), from_revision, since_ms, records_max),
        });
        let page = page.await.map_err(|error| unavailable(&error.to_string()))?;
        self.response(page.map_err(|error| unavailable(&error.to_string()))?)
    }

    fn response(&self, page: HistoryPage) -> Result<v1::ReadHistoryResponse, Failure> {
        let entries: Result<Vec<v1::HistoryEntry>, HistoryError> =
            page.records.iter().map(history::entry).collect();
        Ok(v1::ReadHistoryResponse {
            node_id: self.cx.node_id,
            complete_from_revision: page.complete_from_revision,
            statements_from_revision: page.statements_from_revision,
            indexed_revision: page.indexed_revision,
            entries: entries.map_err(|error| unavailable(&error.to_string()))?,
            more: page.more,
        })
    }
}

enum Wanted {
    Reservation(ReservationId),
    Tenant(TenantId),
}

/// Another member may have what this one cannot give now.
fn unavailable(why: &str) -> Failure {
    Failure::new(ErrorReason::Unsupported, why)
}
