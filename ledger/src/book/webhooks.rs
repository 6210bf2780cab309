//! Webhooks as they are asked for, and their part of the digest.

use xxhash_rust::xxh3::xxh3_128;

use crate::book::Book;
use crate::book::bytes::RowBytes;
use crate::ids::TenantId;
use crate::webhook::WebhookRow;

impl Book {
    /// A tenant's webhook.
    pub fn webhook(&self, tenant: &TenantId) -> Option<&WebhookRow> {
        self.webhooks.get(tenant)
    }

    /// All webhooks, by tenant.
    pub fn webhooks(&self) -> impl Iterator<Item = &WebhookRow> {
        self.webhooks.values()
    }
}

impl WebhookRow {
    pub(crate) fn hash(&self) -> u128 {
        let WebhookRow { tenant, webhook, cursor, set_at_ms, actor } = self;
        let mut out = RowBytes::default();
        out.put_u8(25);
        out.put_text(tenant.as_str());
        out.put_text(webhook.url.as_str());
        out.put_bytes(webhook.secret.expose());
        out.put_u64(*cursor);
        out.put_u64(*set_at_ms);
        out.put_text(actor.as_str());
        xxh3_128(out.as_slice())
    }
}
