//! One delivery: what is sent, and its signature, after the Standard Webhooks specification.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use holdfast_ledger::event::Event;
use holdfast_ledger::webhook::WebhookSecret;
use holdfast_proto::events::encode_event;
use holdfast_proto::json::{event_document, instant};
use serde_json::{Map, Value, json};
use sha2::Sha256;

/// What is sent of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// `webhook-id`: the same for every attempt and from every leader.
    pub(super) id: String,
    /// `webhook-timestamp`: of this attempt, seconds since 1970.
    pub(super) timestamp_s: u64,
    /// `webhook-signature`.
    pub(super) signature: String,
    /// The body, JSON.
    pub(super) body: String,
}

/// Makes the delivery of an event at a time. `missed`: numbers of the first and last event that were forgotten before they
/// could be sent.
pub(super) fn delivery(
    cluster_id: &str,
    secret: &WebhookSecret,
    event: &Event,
    missed: Option<(u64, u64)>,
    now_ms: u64,
) -> Delivery {
    let id = format!("{cluster_id}-{}", event.sequence);
    let timestamp_s = now_ms / 1_000;
    let wire = encode_event(event);
    let mut body = Map::new();
    body.insert("type".into(), format!("holdfast.{}", wire.kind.to_lowercase()).into());
    body.insert("timestamp".into(), instant(wire.at_ms).into());
    body.insert("data".into(), event_document(&wire));
    if let Some((first, last)) = missed {
        body.insert("missed".into(), json!({"first": first, "last": last}));
    }
    let body = Value::from(body).to_string();
    let signature = sign(secret, &format!("{id}.{timestamp_s}.{body}"));
    Delivery { id, timestamp_s, signature, body }
}

fn sign(secret: &WebhookSecret, content: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose()) else {
        unreachable!("HMAC takes keys of any length")
    };
    mac.update(content.as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use holdfast_ledger::event::EventKind;

    use super::*;

    fn event() -> Event {
        let kind = EventKind::TenantSet {
            generation: 7,
            tenant: "acme".parse().unwrap(),
            actor: "kim".parse().unwrap(),
        };
        Event { sequence: 42, at_ms: 1_796_083_200_500, revision: 9, kind }
    }

    /// The vector of the Standard Webhooks reference implementations.
    #[test]
    fn signatures_are_those_of_the_specification() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let secret = WebhookSecret::new(&secret).unwrap();
        let content = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        assert_eq!(sign(&secret, content), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn an_event_is_sent_with_what_the_stream_of_events_says_of_it() {
        let secret = WebhookSecret::new(&[7; 32]).unwrap();
        let sent = delivery("prod", &secret, &event(), None, 1_796_083_201_999);
        assert_eq!((sent.id.as_str(), sent.timestamp_s), ("prod-42", 1_796_083_201));
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        assert_eq!(body["type"], "holdfast.tenant_set");
        assert_eq!(body["timestamp"], "2026-12-01T00:00:00.500Z");
        assert_eq!(body["data"]["sequence"], 42);
        assert_eq!(body["data"]["tenant"], "acme");
        assert_eq!(body.get("missed"), None);
        let later = delivery("prod", &secret, &event(), Some((3, 40)), 1_796_083_301_999);
        assert_eq!(later.id, sent.id);
        assert_ne!(later.signature, sent.signature, "each attempt is signed with its own time");
        let body: Value = serde_json::from_str(&later.body).unwrap();
        assert_eq!(body["missed"], json!({"first": 3, "last": 40}));
    }
}
