//! Webhooks: where the events of a tenant are sent.

use std::fmt;
use std::sync::Arc;

use crate::ids::{ActorName, TenantId};
use crate::limits::{WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_URL_BYTES_MAX};

/// An address that events are sent to. Only its form is checked here: visible ASCII, not too long, and `http://` or
/// `https://` before it. Whoever sends reads it as a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Arc<str>);

/// Why a text is no address of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Something else than `http` or `https` before it.
    #[error("must begin with http:// or https://")]
    Scheme,
    /// A space, or something that is not visible ASCII.
    #[error("has the character {0:?}; only visible ASCII is allowed, others are percent-encoded")]
    BadCharacter(char),
    /// Longer than [`WEBHOOK_URL_BYTES_MAX`].
    #[error("has {0} bytes; at most {WEBHOOK_URL_BYTES_MAX} are allowed")]
    TooLong(usize),
}

impl WebhookUrl {
    /// Checks the form and keeps the text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Self, UrlError> {
        if text.len() > WEBHOOK_URL_BYTES_MAX {
            return Err(UrlError::TooLong(text.len()));
        }
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(UrlError::BadCharacter(bad));
        }
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Err(UrlError::Scheme);
        }
        Ok(WebhookUrl(text.into()))
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Its query may carry a credential: only what comes before is shown.
impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.split(['?', '#']).next().unwrap_or_default())
    }
}

/// The key that deliveries are signed with. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Arc<[u8]>);

impl WebhookSecret {
    /// A key of [`WEBHOOK_SECRET_BYTES_MIN`] to [`WEBHOOK_SECRET_BYTES_MAX`] bytes; `None`: it has another length.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let fits = (WEBHOOK_SECRET_BYTES_MIN..=WEBHOOK_SECRET_BYTES_MAX).contains(&bytes.len());
        fits.then(|| WebhookSecret(bytes.into()))
    }

    /// The key itself, for whoever signs, stores or replicates it.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Where a tenant's events go, and how it knows that they are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The address.
    pub url: WebhookUrl,
    /// The key of the signatures.
    pub secret: WebhookSecret,
}

/// A tenant's webhook and how far it has been served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRow {
    /// The tenant.
    pub tenant: TenantId,
    /// Where to.
    pub webhook: Webhook,
    /// Every event of the tenant up to this number has been delivered, or was there before the webhook.
    pub cursor: u64,
    /// Book time of the last change of address or key, ms.
    pub set_at_ms: u64,
    /// Who made it.
    pub actor: ActorName,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_keys_by_their_form() {
        assert!(WebhookUrl::new("https://example.org/hooks?key=1").is_ok());
        assert_eq!(WebhookUrl::new("ftp://example.org"), Err(UrlError::Scheme));
        assert_eq!(WebhookUrl::new(""), Err(UrlError::Scheme));
        assert_eq!(WebhookUrl::new("https://a b"), Err(UrlError::BadCharacter(' ')));
        assert_eq!(WebhookUrl::new("https://ex\u{e4}mple"), Err(UrlError::BadCharacter('\u{e4}')));
        let long = format!("https://{}", "x".repeat(WEBHOOK_URL_BYTES_MAX));
        assert_eq!(WebhookUrl::new(&long), Err(UrlError::TooLong(long.len())));
        assert!(WebhookSecret::new(&[7; WEBHOOK_SECRET_BYTES_MIN]).is_some());
        assert!(WebhookSecret::new(&[7; WEBHOOK_SECRET_BYTES_MIN - 1]).is_none());
        assert!(WebhookSecret::new(&[7; WEBHOOK_SECRET_BYTES_MAX + 1]).is_none());
    }

    #[test]
    fn neither_a_key_nor_a_query_is_shown() -> Result<(), UrlError> {
        let url = WebhookUrl::new("https://example.org/hooks?key=hidden")?;
        let shown =
            format!("{:?}", WebhookSecret::new(b"hidden hidden hidden hidden").map(|secret| (url, secret)));
        assert!(shown.contains("example.org/hooks") && !shown.contains("hidden"), "{shown}");
        Ok(())
    }
}
