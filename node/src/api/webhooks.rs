//! The webhooks' part of the `Plans` service.

use std::collections::BTreeMap;

use holdfast_ledger::command::SetWebhook;
use holdfast_ledger::ids::TenantId;
use holdfast_ledger::webhook::WebhookRow;
use holdfast_ledger::{Book, Command};
use holdfast_proto::answers::encode_webhook_set;
use holdfast_proto::events::tenant_of;
use holdfast_proto::webhooks::encode_webhook;
use holdfast_proto::{Failure, v1};
use tonic::Request;

use super::plans::PlansService;
use super::{deadline, fields};

impl PlansService {
    pub(super) async fn propose_webhook(
        &self,
        request: Request<v1::SetWebhookRequest>,
    ) -> Result<v1::SetWebhookResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let set = SetWebhook::try_from(request.get_ref())?;
        let (answer, revision) = self.cx.propose_one(Command::SetWebhook(set), at).await?;
        encode_webhook_set(&answer, revision)
    }

    pub(super) async fn read_webhooks(
        &self,
        request: Request<v1::ListWebhooksRequest>,
    ) -> Result<v1::ListWebhooksResponse, Failure> {
        let at = deadline::of_call(request.metadata(), self.cx.bounds.deadline)?;
        let v1::ListWebhooksRequest { tenant, stale } = request.into_inner();
        let tenant = tenant.map(|tenant| fields::name::<TenantId>("tenant", &tenant)).transpose()?;
        self.cx.point(stale, at).await?;
        let wanted = |row: &WebhookRow| tenant.as_ref().is_none_or(|tenant| *tenant == row.tenant);
        let (revision, mut webhooks) = self.cx.replica().read(|book| {
            let rows = book.webhooks().filter(|row| wanted(row));
            let mut webhooks = rows.map(|row| (row.tenant.clone(), encode_webhook(row))).collect();
            count_waiting(book, &mut webhooks);
            (book.revision(), webhooks)
        });
        for (tenant, entry) in &mut webhooks {
            if let Some((failures, problem)) = self.cx.deliveries.problem(tenant) {
                (entry.failures, entry.problem) = (failures, Some(problem));
            }
        }
        Ok(v1::ListWebhooksResponse { revision, webhooks: webhooks.into_values().collect() })
    }
}

/// Counts what waits for each webhook: one pass over the events, however many webhooks there are.
fn count_waiting(book: &Book, webhooks: &mut BTreeMap<TenantId, v1::WebhookEntry>) {
    let from = webhooks.values().map(|entry| entry.cursor.saturating_add(1)).min().unwrap_or(u64::MAX);
    for event in book.events_from(from) {
        let entry = tenant_of(&event.kind).and_then(|tenant| webhooks.get_mut(tenant));
        if let Some(entry) = entry.filter(|entry| event.sequence > entry.cursor) {
            entry.waiting += 1;
            entry.waiting_since_ms.get_or_insert(event.at_ms);
        }
    }
}
