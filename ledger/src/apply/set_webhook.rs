//! Set or remove a tenant's webhook. It is no policy: no generation comes of it.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::book::Book;
use crate::command::SetWebhook;
use crate::event::EventKind;
use crate::ids::TenantId;
use crate::limits::WEBHOOKS_MAX;
use crate::webhook::WebhookRow;

impl Book {
    pub(super) fn apply_set_webhook(&mut self, set: &SetWebhook) -> Result<Answer, Refusal> {
        let SetWebhook { tenant, webhook, actor } = set;
        let standing = self.webhooks.get(tenant);
        if standing.map(|row| &row.webhook) == webhook.as_ref() {
            return Ok(Answer::Webhook { changed: false });
        }
        if standing.is_none() && self.webhooks.len() >= WEBHOOKS_MAX {
            return Err(Refusal::Overloaded { ceiling: "WEBHOOKS_MAX" });
        }
        // A new address or key goes on where the old one was; a new webhook begins with the event of its own making.
        let cursor = standing.map_or(self.header.event_sequence, |row| row.cursor);
        match webhook {
            Some(webhook) => self.put_webhook(WebhookRow {
                tenant: tenant.clone(),
                webhook: webhook.clone(),
                cursor,
                set_at_ms: self.header.clock_ms,
                actor: actor.clone(),
            }),
            None => self.take_webhook(tenant),
        }
        let (tenant, removed, actor) = (tenant.clone(), webhook.is_none(), actor.clone());
        self.push_event(EventKind::WebhookSet { tenant, removed, actor });
        Ok(Answer::Webhook { changed: true })
    }

    /// Puts a row in the place of the tenant's last one.
    pub(super) fn put_webhook(&mut self, row: WebhookRow) {
        self.take_webhook(&row.tenant);
        self.small_sum = self.small_sum.wrapping_add(row.hash());
        Arc::make_mut(&mut self.webhooks).insert(row.tenant.clone(), row);
    }

    fn take_webhook(&mut self, tenant: &TenantId) {
        if let Some(row) = Arc::make_mut(&mut self.webhooks).remove(tenant) {
            self.small_sum = self.small_sum.wrapping_sub(row.hash());
        }
    }
}
