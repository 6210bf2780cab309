//! Posting a delivery: HTTP/1.1, TLS where the address says `https`, no redirects, one deadline for all of it.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::delivery::Delivery;
use crate::limits::WEBHOOK_ANSWER_BYTES_MAX;

/// The client that posts; clones share its connections.
#[derive(Clone, Debug)]
pub(super) struct Poster {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    deadline: Duration,
}

impl Poster {
    /// A client whose posts take at most `deadline` each. Certificates are checked against Mozilla's roots, which are
    /// built in.
    pub(super) fn new(deadline: Duration) -> Poster {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(deadline));
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Poster { client, deadline }
    }

    /// Posts once.
    ///
    /// # Errors
    /// Why it does not count as delivered, in a few words and without the address.
    pub(super) async fn post(&self, url: &str, delivery: Delivery) -> Result<(), String> {
        let Delivery { id, timestamp_s, signature, body } = delivery;
        let request = Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp_s)
            .header("webhook-signature", signature)
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| format!("no request can be made: {error}"))?;
        match tokio::time::timeout(self.deadline, self.exchange(request)).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(format!("status {}", status.as_u16())),
            Ok(Err(problem)) => Err(problem),
            Err(_) => Err(format!("no answer within {} ms", self.deadline.as_millis())),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<StatusCode, String> {
        let answer = self.client.request(request).await.map_err(|error| innermost(&error))?;
        let status = answer.status();
        // Read to its end, a connection can be used again; what the answer says does not matter.
        let _ = Limited::new(answer.into_body(), WEBHOOK_ANSWER_BYTES_MAX).collect().await;
        Ok(status)
    }
}

/// The cause at the bottom: "Connection refused" says more than "client error (Connect)".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
