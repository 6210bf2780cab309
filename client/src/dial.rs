//! Connections to one member.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_proto::limits::MESSAGE_BYTES_MAX;
use holdfast_proto::v1::ledger_client::LedgerClient;
use holdfast_proto::v1::members_client::MembersClient;
use holdfast_proto::{Failure, v1};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

use crate::limits::{HEADER_BYTES_MAX, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT};
use crate::link::{OpenError, status_text};

/// How a client connects, the same for every member.
#[derive(Clone, Debug)]
pub(crate) struct Connecting {
    pub(crate) timeout: Duration,
    pub(crate) token: Option<MetadataValue<Ascii>>,
    /// Most commands in one message of the batched stream.
    pub(crate) batch_max: usize,
}

impl Connecting {
    /// A request with the client's credential.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }
}

/// Told whenever a member lists the cluster.
pub(crate) type OnMembers = Box<dyn Fn(v1::ListMembersResponse) + Send + Sync>;

/// How one member is reached. Locks are held for a few instructions and never across an await.
pub(crate) struct Dial {
    address: String,
    connecting: Connecting,
    on_members: OnMembers,
    channel: Mutex<Option<Channel>>,
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What the locks guard is whole after every statement, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dial {
    pub(crate) fn new(address: String, connecting: Connecting, on_members: OnMembers) -> Arc<Self> {
        Arc::new(Dial { address, connecting, on_members, channel: Mutex::new(None) })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn batch_max(&self) -> usize {
        self.connecting.batch_max
    }

    /// A connection, the one there is or a new one.
    pub(crate) async fn channel(&self) -> Result<Channel, String> {
        if let Some(channel) = lock(&self.channel).as_ref() {
            return Ok(channel.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|error| format!("{} is no address: {error}", self.address))?
            .connect_timeout(self.connecting.timeout)
            .tcp_nodelay(true)
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true);
        let channel = endpoint.connect().await.map_err(|error| self.unreachable(&error))?;
        // Two callers may have connected at the same time; the first one's connection is kept.
        Ok(lock(&self.channel).get_or_insert(channel).clone())
    }

    fn unreachable(&self, error: &dyn std::error::Error) -> String {
        let mut text = format!("cannot connect to {}: {error}", self.address);
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        text
    }

    /// Makes the next call connect anew.
    pub(crate) fn forget_channel(&self) {
        lock(&self.channel).take();
    }

    /// Opens the batched stream. The first thing on a new connection is to ask for the members, so
    /// that a client that was given one of them knows them all before that one is gone.
    pub(crate) async fn open_stream(
        &self,
        messages: usize,
    ) -> Result<(mpsc::Sender<v1::BatchRequest>, Streaming<v1::BatchResponse>), OpenError> {
        let opening = async {
            let channel = self.channel().await.map_err(OpenError::Unreachable)?;
            self.ask_members(channel.clone()).await;
            let mut ledger = LedgerClient::new(channel)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX);
            let (out, commands) = mpsc::channel(messages);
            match ledger.batch(self.connecting.request(ReceiverStream::new(commands))).await {
                Ok(answers) => Ok((out, answers.into_inner())),
                Err(status) => Err(match Failure::from_status(&status) {
                    Some(failure) => OpenError::Refused(failure),
                    None => OpenError::Unreachable(status_text(&status)),
                }),
            }
        };
        let late = || OpenError::Unreachable(format!("{} does not answer", self.address));
        tokio::time::timeout(self.connecting.timeout, opening).await.unwrap_or_else(|_| Err(late()))
    }

    async fn ask_members(&self, channel: Channel) {
        let mut members = MembersClient::new(channel);
        match members.list(self.connecting.request(v1::ListMembersRequest {})).await {
            Ok(list) => (self.on_members)(list.into_inner()),
            Err(status) => {
                tracing::debug!(member = %self.address, status = %status_text(&status), "no list of members");
            }
        }
    }
}
