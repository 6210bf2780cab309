//! How a client connects and how patient it is.

use std::time::Duration;

use holdfast_proto::FieldError;
use holdfast_proto::limits::BATCH_COMMANDS_MAX;
use tonic::metadata::MetadataValue;

use crate::client::Client;
use crate::dial::Connecting;
use crate::error::CallError;
use crate::limits::{ATTEMPT_TIMEOUT, CALL_DEADLINE, CONNECT_TIMEOUT};

/// What calls made through one handle have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallOptions {
    pub(crate) deadline: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) stale: bool,
    pub(crate) want_digest: bool,
}

/// Settings of a [`Client`]. Made by [`Client::builder`].
#[derive(Clone, Debug)]
pub struct ClientBuilder {
    endpoints: Vec<String>,
    options: CallOptions,
    connect_timeout: Duration,
    token: Option<String>,
    batch_max: usize,
}

impl ClientBuilder {
    pub(crate) fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        ClientBuilder {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            options: CallOptions {
                deadline: CALL_DEADLINE,
                attempt_timeout: ATTEMPT_TIMEOUT,
                stale: false,
                want_digest: false,
            },
            connect_timeout: CONNECT_TIMEOUT,
            token: None,
            batch_max: BATCH_COMMANDS_MAX,
        }
    }

    /// Most commands in one message of the batched stream: for measurements. At least 1, at most what
    /// a member takes.
    #[must_use]
    pub fn batch_max(mut self, batch_max: usize) -> Self {
        self.batch_max = batch_max.clamp(1, BATCH_COMMANDS_MAX);
        self
    }

    /// How long a call may take in all, its retries included. See also [`Client::with_deadline`].
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = deadline;
        self
    }

    /// How long a member may decide nothing while a command waits for it, before the same id is tried elsewhere;
    /// for reads and operators' calls, how long one attempt may take.
    #[must_use]
    pub fn attempt_timeout(mut self, attempt_timeout: Duration) -> Self {
        self.options.attempt_timeout = attempt_timeout;
        self
    }

    /// How long a member may take to accept a connection.
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// The credential, sent as `authorization: Bearer …` with every call.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The client, without waiting for a member: for programs that may start before the cluster does.
    /// Must be called inside a tokio runtime. Refuses endpoints that are no addresses.
    pub fn connect_lazy(self) -> Result<Client, CallError> {
        let endpoints = self.endpoints.iter().enumerate();
        let endpoints: Vec<String> =
            endpoints.map(|(at, text)| address(at, text)).collect::<Result<_, FieldError>>()?;
        if endpoints.is_empty() {
            return Err(FieldError::missing("endpoints").into());
        }
        let token = match &self.token {
            None => None,
            Some(token) => {
                let value = MetadataValue::try_from(format!("Bearer {token}"));
                let mut value =
                    value.map_err(|_| FieldError::new("token", "has characters that no header may have"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Client::new(
            endpoints,
            Connecting { timeout: self.connect_timeout, token, batch_max: self.batch_max },
            self.options,
        ))
    }

    /// The client, once one of the endpoints has answered. Unavailable if none does within the deadline.
    pub async fn connect(self) -> Result<Client, CallError> {
        let client = self.connect_lazy()?;
        client.members().await?;
        Ok(client)
    }
}

/// `host:port`, with or without `http://` in front.
fn address(at: usize, text: &str) -> Result<String, FieldError> {
    let field = || format!("endpoints[{at}]");
    let bare = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    if bare.contains("://") {
        return Err(FieldError::new(field(), format!("is {text:?}; only host:port and http:// are known")));
    }
    match bare.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(bare.to_owned()),
        _ => Err(FieldError::new(field(), format!("is {text:?}, not host:port"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_addresses() {
        assert_eq!(address(0, "http://127.0.0.1:7001/"), Ok("127.0.0.1:7001".to_owned()));
        assert_eq!(address(0, "[::1]:7001"), Ok("[::1]:7001".to_owned()));
        for bad in ["", "host", ":7001", "host:port", "https://host:1", "host:70000"] {
            assert!(address(3, bad).is_err_and(|error| error.field == "endpoints[3]"), "{bad}");
        }
    }
}
