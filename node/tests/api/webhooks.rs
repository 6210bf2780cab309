//! Webhooks from the book to a receiver on this machine: signed, in order, again and again until they are taken, by the
//! leader only, over its death and over restarts.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use crate::client::*;
use crate::cluster::{Cluster, eventually};
use holdfast_proto::{ErrorReason, v1};

const SECRET: [u8; 32] = *b"0123456789abcdef0123456789abcdef";

/// One attempt as it came in.
#[derive(Clone, Debug)]
struct Attempt {
    id: String,
    timestamp: String,
    signature: String,
    body: String,
    answered: StatusCode,
}

impl Attempt {
    fn sequence(&self) -> u64 {
        self.document()["data"]["sequence"].as_u64().unwrap()
    }

    fn document(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// HMAC-SHA256 by its definition (RFC 2104), not by the library that signs.
fn hmac(key: &[u8; 32], content: &str) -> Vec<u8> {
    let pad = |byte: u8| -> Vec<u8> { (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ byte).collect() };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(content).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

/// A receiver that notes every attempt and answers with a status that the test chooses.
struct Receiver {
    address: SocketAddr,
    attempts: Arc<Mutex<Vec<Attempt>>>,
    status: Arc<Mutex<StatusCode>>,
    task: JoinHandle<()>,
}

impl Receiver {
    async fn start() -> Receiver {
        Self::start_at("127.0.0.1:0".parse().unwrap()).await
    }

    async fn start_at(address: SocketAddr) -> Receiver {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (attempts, status) =
            (Arc::<Mutex<Vec<Attempt>>>::default(), Arc::new(Mutex::new(StatusCode::OK)));
        let (noted, answered) = (Arc::clone(&attempts), Arc::clone(&status));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, answered) = (Arc::clone(&noted), Arc::clone(&answered));
                let answer = service_fn(move |request: Request<Incoming>| {
                    let (noted, answered) = (Arc::clone(&noted), Arc::clone(&answered));
                    async move {
                        let header = |name| request.headers()[name].to_str().unwrap().to_owned();
                        let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
                        let signature = header("webhook-signature");
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let body = String::from_utf8(body.to_vec()).unwrap();
                        let answered = *answered.lock().unwrap();
                        noted.lock().unwrap().push(Attempt { id, timestamp, signature, body, answered });
                        let mut answer = Response::new(Full::<Bytes>::default());
                        *answer.status_mut() = answered;
                        Ok::<_, Infallible>(answer)
                    }
                });
                connections.spawn(async move {
                    // Who hangs up has been heard.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                });
            }
        });
        Receiver { address, attempts, status, task }
    }

    fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    fn answer(&self, status: StatusCode) {
        *self.status.lock().unwrap() = status;
    }

    fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().unwrap().clone()
    }

    /// Numbers of the events that were taken, each once, in the order in which they first were.
    fn taken(&self) -> Vec<u64> {
        let mut taken = Vec::new();
        for attempt in self.attempts().iter().filter(|attempt| attempt.answered.is_success()) {
            if !taken.contains(&attempt.sequence()) {
                taken.push(attempt.sequence());
            }
        }
        taken
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn webhook(tenant: &str, url: &str) -> v1::SetWebhookRequest {
    let webhook = v1::Webhook { url: url.into(), secret: SECRET.to_vec().into() };
    v1::SetWebhookRequest { tenant: tenant.into(), webhook: Some(webhook), actor: "test".into() }
}

async fn set(channel: &Channel, request: v1::SetWebhookRequest) -> bool {
    Plans::new(channel.clone()).set_webhook(request).await.unwrap().into_inner().changed
}

async fn entry(channel: &Channel, tenant: &str) -> v1::WebhookEntry {
    let ask = v1::ListWebhooksRequest { tenant: Some(tenant.into()), stale: false };
    let list = Plans::new(channel.clone()).list_webhooks(ask).await.unwrap().into_inner();
    list.webhooks.into_iter().next().unwrap()
}

/// An event about the tenant: its record changes. Gives the number of the last event then.
async fn happen(channel: &Channel, tenant: &str, amount: u64) {
    let rule = v1::limit_override::Rule::Amount(v1::AmountOverride { amount, burst: None });
    let overrides = vec![v1::LimitOverride { limit: "tenant-tokens-month".into(), rule: Some(rule) }];
    let record = Some(v1::TenantRecord { overrides, ..v1::TenantRecord::default() });
    let request = v1::SetTenantRequest {
        tenant: tenant.into(),
        record,
        expected_generation: None,
        actor: "test".into(),
    };
    eventually("the record is set", async || {
        Plans::new(channel.clone()).set_tenant(request.clone()).await.ok().filter(|set| set.get_ref().changed)
    })
    .await;
}

/// Numbers of the events about a tenant, by the stream of events.
async fn numbers(channel: &Channel, tenant: &str) -> Vec<u64> {
    let ask = v1::WatchEventsRequest { tenant: Some(tenant.into()), ..Default::default() };
    let mut stream = Quotas::new(channel.clone()).watch_events(ask).await.unwrap().into_inner();
    let mut numbers = Vec::new();
    while let Some(piece) = stream.message().await.unwrap() {
        numbers.extend(piece.events.iter().map(|event| event.sequence));
    }
    numbers
}

async fn founded(count: u64) -> (Cluster, Channel) {
    let cluster = Cluster::found(count, |config| config.webhooks.deadline_ms = 1_000);
    let channel = cluster.channel(cluster.leader().await);
    publish(channel.clone(), PLAN).await;
    (cluster, channel)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_events_come_signed_in_order_and_nobody_elses() {
    let (_cluster, channel) = founded(1).await;
    let receiver = Receiver::start().await;
    happen(&channel, "acme", 1).await;
    assert!(set(&channel, webhook("acme", &receiver.url())).await);
    assert!(!set(&channel, webhook("acme", &receiver.url())).await);
    for amount in 2..6 {
        happen(&channel, "acme", amount).await;
        happen(&channel, "beta", amount).await;
    }
    // From the event of its own making on.
    let wanted: Vec<u64> = numbers(&channel, "acme").await.into_iter().skip(1).collect();
    assert_eq!(wanted.len(), 5);
    eventually("all are taken", async || (receiver.taken().len() >= wanted.len()).then_some(())).await;
    assert_eq!(receiver.taken(), wanted);
    for attempt in receiver.attempts() {
        let content = format!("{}.{}.{}", attempt.id, attempt.timestamp, attempt.body);
        assert_eq!(attempt.signature, format!("v1,{}", STANDARD.encode(hmac(&SECRET, &content))));
        assert_eq!(attempt.id, format!("test-{}", attempt.sequence()));
        assert_eq!(attempt.document()["data"]["tenant"], "acme");
    }
    assert_eq!(receiver.attempts()[0].document()["type"], "holdfast.webhook_set");
    eventually("the book knows", async || {
        let entry = entry(&channel, "acme").await;
        (entry.cursor >= *wanted.last().unwrap() && entry.waiting == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_comes_again_and_holds_up_nobody_else() {
    let (_cluster, channel) = founded(1).await;
    let (broken, well) = (Receiver::start().await, Receiver::start().await);
    broken.answer(StatusCode::INTERNAL_SERVER_ERROR);
    set(&channel, webhook("acme", &broken.url())).await;
    set(&channel, webhook("beta", &well.url())).await;
    for amount in 1..4 {
        happen(&channel, "acme", amount).await;
        happen(&channel, "beta", amount).await;
    }
    eventually("beta has all", async || (well.taken().len() == 4).then_some(())).await;
    eventually("two attempts", async || (broken.attempts().len() >= 2).then_some(())).await;
    let waiting = entry(&channel, "acme").await;
    assert_eq!((waiting.waiting, waiting.problem.as_deref()), (4, Some("status 500")));
    assert!(waiting.failures >= 1 && waiting.waiting_since_ms.is_some(), "{waiting:?}");
    // A redirect is no delivery either, and is not followed.
    broken.answer(StatusCode::TEMPORARY_REDIRECT);
    let before = broken.attempts().len();
    eventually("another attempt", async || (broken.attempts().len() > before).then_some(())).await;
    broken.answer(StatusCode::NO_CONTENT);
    eventually("acme has all", async || (broken.taken().len() == 4).then_some(())).await;
    let wanted = numbers(&channel, "acme").await;
    assert_eq!(broken.taken(), wanted);
    let attempts = broken.attempts();
    let first: Vec<_> = attempts.iter().filter(|attempt| attempt.sequence() == wanted[0]).collect();
    assert!(first.len() >= 3 && first.iter().all(|attempt| attempt.id == first[0].id), "{first:#?}");
    eventually("no problem is left", async || entry(&channel, "acme").await.problem.is_none().then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_or_is_not_there_is_tried_again() {
    let (_cluster, channel) = founded(1).await;
    // Takes connections and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mute.local_addr().unwrap();
    set(&channel, webhook("acme", &format!("http://{address}/"))).await;
    let problem = async |word: &str| {
        eventually(&format!("the problem {word:?} is told"), async || {
            entry(&channel, "acme").await.problem.filter(|problem| problem.contains(word))
        })
        .await
    };
    problem("no answer within 1000 ms").await;
    drop(mute);
    problem("refused").await;
    let receiver = Receiver::start_at(address).await;
    eventually("it is taken", async || (receiver.taken().len() == 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_leaders_die_and_followers_send_nothing() {
    let (mut cluster, channel) = founded(3).await;
    let receiver = Receiver::start().await;
    set(&channel, webhook("acme", &receiver.url())).await;
    for round in 0..3 {
        let leader = cluster.leader().await;
        let channel = cluster.channel(leader);
        for amount in 0..8 {
            happen(&channel, "acme", 1 + round * 100 + amount).await;
        }
        // In the middle of its deliveries.
        eventually("some are taken", async || {
            (receiver.taken().len() > 8 * usize::try_from(round).unwrap()).then_some(())
        })
        .await;
        cluster.stop(leader);
        cluster.leader().await;
        cluster.start(leader);
    }
    let channel = cluster.channel(cluster.leader().await);
    let wanted = numbers(&channel, "acme").await;
    assert_eq!(wanted.len(), 25);
    eventually("all are taken", async || (receiver.taken().len() == wanted.len()).then_some(())).await;
    assert_eq!(receiver.taken(), wanted, "in order");
    // A new leader repeats at most what its predecessor had not written down.
    let mut times = BTreeMap::new();
    for attempt in receiver.attempts() {
        *times.entry(attempt.sequence()).or_insert(0) += 1;
    }
    assert!(times.values().all(|times| *times <= 4), "each of four leaders at most once: {times:?}");
    eventually("the book knows", async || {
        (entry(&channel, "acme").await.cursor >= *wanted.last().unwrap()).then_some(())
    })
    .await;
    // After a restart of all, nothing that was written down comes again.
    let before = receiver.attempts().len();
    cluster.stop_all(&[0, 1, 2]);
    for node in 0..3 {
        cluster.start(node);
    }
    let channel = cluster.channel(cluster.leader().await);
    happen(&channel, "acme", 9_999).await;
    eventually("the next one is taken", async || (receiver.taken().len() == 26).then_some(())).await;
    assert_eq!(receiver.attempts().len(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_removed_gets_nothing_more_and_a_wrong_one_is_refused() {
    let (_cluster, channel) = founded(1).await;
    let receiver = Receiver::start().await;
    set(&channel, webhook("acme", &receiver.url())).await;
    eventually("the first is taken", async || (receiver.taken().len() == 1).then_some(())).await;
    assert!(set(&channel, v1::SetWebhookRequest { webhook: None, ..webhook("acme", "") }).await);
    happen(&channel, "acme", 1).await;
    let other = Receiver::start().await;
    set(&channel, webhook("beta", &other.url())).await;
    eventually("beta's is taken", async || (other.taken().len() == 1).then_some(())).await;
    assert_eq!(receiver.attempts().len(), 1);

    let mut plans = Plans::new(channel.clone());
    let before = numbers(&channel, "acme").await;
    for (url, length, field) in [
        ("ftp://example.org", 32, "webhook.url"),
        ("https://kim:pw@example.org", 32, "webhook.url"),
        ("https://", 32, "webhook.url"),
        ("https://example.org", 23, "webhook.secret"),
        ("https://example.org", 65, "webhook.secret"),
    ] {
        let wrong = v1::Webhook { url: url.into(), secret: vec![1; length].into() };
        let request = v1::SetWebhookRequest { webhook: Some(wrong), ..webhook("acme", "") };
        assert_invalid(plans.set_webhook(request).await, field);
    }
    let nobody = v1::SetWebhookRequest { actor: String::new(), ..webhook("acme", &receiver.url()) };
    assert_invalid(plans.set_webhook(nobody).await, "actor");
    let strange = v1::ListWebhooksRequest { tenant: Some("a b".into()), stale: false };
    let status = plans.list_webhooks(strange).await.unwrap_err();
    assert_eq!(failure(&status).reason, ErrorReason::Invalid);
    assert_eq!(numbers(&channel, "acme").await, before);
}
