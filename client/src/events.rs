//! Following events, over members and leaders.

use std::time::Duration;

use holdfast_proto::{Failure, v1};
use tonic::Streaming;

use crate::client::Client;
use crate::core::Backoff;
use crate::error::CallError;

/// Events in the order of their numbers, each once. When the member that tells them is lost, the next one
/// goes on where it ended.
#[derive(Debug)]
pub struct Events {
    client: Client,
    request: v1::WatchEventsRequest,
    stream: Option<Streaming<v1::WatchEventsResponse>>,
    backoff: Backoff,
}

impl Client {
    /// The events from number `from` on (0: from the first one kept), about one tenant if one is named.
    /// Ends with the last one there is, or goes on as they happen (`follow`).
    pub fn events(&self, from: u64, follow: bool, tenant: Option<&str>) -> Events {
        let tenant = tenant.map(ToOwned::to_owned);
        Events {
            client: self.clone(),
            request: v1::WatchEventsRequest { from, follow, tenant },
            stream: None,
            backoff: Backoff::default(),
        }
    }
}

impl Events {
    /// The number that is asked for next: where another stream would go on.
    pub fn position(&self) -> u64 {
        self.request.from
    }

    /// The next events, at least one; `None`: there are no more.
    ///
    /// # Errors
    /// *Rejected* with EVENTS_GONE if they are not kept any more; *unavailable* if no member could be asked
    /// within the client's deadline. Calling it again goes on.
    pub async fn next(&mut self) -> Result<Option<Vec<v1::Event>>, CallError> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let stream = self.client.watch_events(self.request.clone()).await?;
                    self.stream.insert(stream)
                }
            };
            match stream.message().await {
                Ok(Some(answer)) => {
                    self.backoff = Backoff::default();
                    self.request.from = answer.next;
                    if !answer.events.is_empty() {
                        return Ok(Some(answer.events));
                    }
                }
                Ok(None) if !self.request.follow => return Ok(None),
                Ok(None) => self.pause().await,
                Err(status) => {
                    let refused = Failure::from_status(&status);
                    if let Some(failure) = refused.filter(|failure| !failure.reason.is_retryable()) {
                        self.stream = None;
                        return Err(CallError::Rejected(failure));
                    }
                    self.pause().await;
                }
            }
        }
    }

    /// The stream is lost: another one, in a moment.
    async fn pause(&mut self) {
        self.stream = None;
        tokio::time::sleep(Duration::from_millis(self.backoff.next_ms(rand::random()))).await;
    }
}
