//! Webhooks between the wire, the log, snapshots and the ledger.

use std::fmt;

use holdfast_ledger::command::SetWebhook;
use holdfast_ledger::limits::{WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_SECRET_BYTES_MIN};
use holdfast_ledger::webhook::{Webhook, WebhookRow, WebhookSecret, WebhookUrl};
use sha2::{Digest, Sha256};
use tonic::codegen::http::Uri;

use crate::field::{FieldError, InField, name, required};
use crate::v1;

/// Without the key, and without what may be one in the address.
impl fmt::Debug for v1::Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.url.split(['?', '#', '@']).next().unwrap_or_default();
        f.debug_struct("Webhook").field("url", &shown).finish_non_exhaustive()
    }
}

impl From<&Webhook> for v1::Webhook {
    fn from(Webhook { url, secret }: &Webhook) -> Self {
        v1::Webhook { url: url.as_str().to_owned(), secret: secret.expose().to_vec().into() }
    }
}

impl TryFrom<&v1::Webhook> for Webhook {
    type Error = FieldError;

    fn try_from(wire: &v1::Webhook) -> Result<Self, FieldError> {
        let secret = WebhookSecret::new(&wire.secret).ok_or_else(|| {
            let problem = format!(
                "has {} bytes; {WEBHOOK_SECRET_BYTES_MIN} to {WEBHOOK_SECRET_BYTES_MAX} are allowed",
                wire.secret.len()
            );
            FieldError::new("secret", problem)
        })?;
        let url = WebhookUrl::new(&wire.url).map_err(|error| FieldError::new("url", error.to_string()))?;
        Ok(Webhook { url, secret })
    }
}

/// Where it comes in, an address is also read as one. What is stored already is not: a node of another version must
/// not find a row that it cannot read.
fn check_address(url: &WebhookUrl) -> Result<(), FieldError> {
    let wrong = |problem: &str| Err(FieldError::new("url", problem.to_owned()));
    let Ok(uri) = url.as_str().parse::<Uri>() else { return wrong("is not a URL") };
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return wrong("has no host");
    };
    if authority.as_str().contains('@') {
        return wrong("has a user name or password; deliveries are signed instead");
    }
    let has_port = authority.as_str().len() > authority.host().len();
    if has_port && authority.port_u16().is_none_or(|port| port == 0) {
        return wrong("has no port from 1 to 65535 after its host");
    }
    if url.as_str().contains('#') {
        return wrong("has a fragment, which is never sent");
    }
    Ok(())
}

impl From<&SetWebhook> for v1::SetWebhookRequest {
    fn from(SetWebhook { tenant, webhook, actor }: &SetWebhook) -> Self {
        v1::SetWebhookRequest {
            tenant: tenant.as_str().to_owned(),
            webhook: webhook.as_ref().map(v1::Webhook::from),
            actor: actor.as_str().to_owned(),
        }
    }
}

impl TryFrom<&v1::SetWebhookRequest> for SetWebhook {
    type Error = FieldError;

    fn try_from(wire: &v1::SetWebhookRequest) -> Result<Self, FieldError> {
        let webhook = wire.webhook.as_ref().map(Webhook::try_from).transpose().in_field("webhook")?;
        if let Some(webhook) = &webhook {
            check_address(&webhook.url).in_field("webhook")?;
        }
        Ok(SetWebhook { tenant: name("tenant", &wire.tenant)?, webhook, actor: name("actor", &wire.actor)? })
    }
}

impl From<&WebhookRow> for v1::StoredWebhook {
    fn from(WebhookRow { tenant, webhook, cursor, set_at_ms, actor }: &WebhookRow) -> Self {
        v1::StoredWebhook {
            tenant: tenant.as_str().to_owned(),
            webhook: Some(webhook.into()),
            cursor: *cursor,
            set_at_ms: *set_at_ms,
            actor: actor.as_str().to_owned(),
        }
    }
}

impl TryFrom<v1::StoredWebhook> for WebhookRow {
    type Error = FieldError;

    fn try_from(wire: v1::StoredWebhook) -> Result<Self, FieldError> {
        let webhook = required("webhook", wire.webhook.as_ref())?;
        Ok(WebhookRow {
            tenant: name("tenant", &wire.tenant)?,
            webhook: webhook.try_into().in_field("webhook")?,
            cursor: wire.cursor,
            set_at_ms: wire.set_at_ms,
            actor: name("actor", &wire.actor)?,
        })
    }
}

/// What may be shown of a webhook. What waits for it is to be filled in.
pub fn encode_webhook(row: &WebhookRow) -> v1::WebhookEntry {
    let WebhookRow { tenant, webhook, cursor, set_at_ms, actor } = row;
    let digest = Sha256::digest(webhook.secret.expose());
    v1::WebhookEntry {
        tenant: tenant.as_str().to_owned(),
        url: webhook.url.as_str().to_owned(),
        secret_fingerprint: digest[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
        cursor: *cursor,
        set_at_ms: *set_at_ms,
        actor: actor.as_str().to_owned(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn set(url: &str, secret: usize) -> Result<SetWebhook, FieldError> {
        let secret = vec![7; secret].into();
        let wire = v1::SetWebhookRequest {
            tenant: "acme".into(),
            webhook: Some(v1::Webhook { url: url.into(), secret }),
            actor: "kim".into(),
        };
        SetWebhook::try_from(&wire)
    }

    #[test]
    fn addresses_that_cannot_be_sent_to_are_refused_by_name() {
        for url in ["https://example.org/hooks?a=b", "http://127.0.0.1:8080", "https://[::1]:1/"] {
            assert!(set(url, 24).is_ok(), "{url}");
        }
        for (url, word) in [
            ("example.org", "http://"),
            ("https://", "URL"),
            ("https:///path", "URL"),
            ("https://kim:pw@example.org", "password"),
            ("https://example.org:99999/", "port"),
            ("https://example.org:0/", "port"),
            ("https://example.org/#x", "fragment"),
        ] {
            let error = set(url, 24).unwrap_err();
            assert_eq!(error.field, "webhook.url", "{url}");
            assert!(error.problem.contains(word), "{url}: {error:?}");
        }
        for length in [0, 23, 65] {
            assert_eq!(set("https://example.org", length).unwrap_err().field, "webhook.secret");
        }
    }

    #[test]
    fn the_wire_shows_no_secret() {
        let url = "https://example.org/?key=hidden".to_owned();
        let shown = format!("{:?}", v1::Webhook { url, secret: b"hidden"[..].into() });
        assert!(shown.contains("example.org") && !shown.contains("hidden"), "{shown}");
    }
}
