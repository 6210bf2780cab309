//! The part of etcd's v3 API that the pairs need, written out by hand: the field numbers are those of
//! etcd's published `rpc.proto` and `kv.proto`; fields that are not used here are left out.

use std::time::Duration;

use prost::Message;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// No etcd call of the benchmark waits longer than this.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Message)]
pub struct ResponseHeader {
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    #[prost(bool, tag = "7")]
    pub serializable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PutResponse {}

#[derive(Clone, PartialEq, Message)]
pub struct RequestOp {
    #[prost(oneof = "request_op::Request", tags = "1, 2")]
    pub request: Option<request_op::Request>,
}

pub mod request_op {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Request {
        #[prost(message, tag = "1")]
        Range(super::RangeRequest),
        #[prost(message, tag = "2")]
        Put(super::PutRequest),
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct ResponseOp {
    #[prost(oneof = "response_op::Response", tags = "1, 2")]
    pub response: Option<response_op::Response>,
}

pub mod response_op {
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Response {
        #[prost(message, tag = "1")]
        Range(super::RangeResponse),
        #[prost(message, tag = "2")]
        Put(super::PutResponse),
    }
}

/// `result` 0 = equal; `target` 2 = the key's modification revision.
#[derive(Clone, PartialEq, Message)]
pub struct Compare {
    #[prost(int32, tag = "1")]
    pub result: i32,
    #[prost(int32, tag = "2")]
    pub target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub key: Vec<u8>,
    #[prost(int64, optional, tag = "6")]
    pub mod_revision: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
pub struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(uint64, tag = "4")]
    pub leader: u64,
}

impl Compare {
    /// The key was last written at `mod_revision` (0: it does not exist).
    pub fn unchanged_since(key: &[u8], mod_revision: i64) -> Self {
        Compare { result: 0, target: 2, key: key.to_vec(), mod_revision: Some(mod_revision) }
    }
}

impl RequestOp {
    /// Writes one key.
    pub fn put(key: &[u8], value: Vec<u8>) -> Self {
        RequestOp { request: Some(request_op::Request::Put(PutRequest { key: key.to_vec(), value })) }
    }

    /// Reads one key.
    pub fn get(key: &[u8]) -> Self {
        let range = RangeRequest { key: key.to_vec(), ..RangeRequest::default() };
        RequestOp { request: Some(request_op::Request::Range(range)) }
    }
}

/// One connection to one etcd member; clones share it.
#[derive(Clone)]
pub struct Kv {
    grpc: tonic::client::Grpc<Channel>,
}

impl Kv {
    /// Connects to `http://host:port`.
    pub async fn connect(endpoint: &str) -> Result<Kv, String> {
        let target = Endpoint::from_shared(endpoint.to_owned()).map_err(|e| format!("{endpoint}: {e}"))?;
        let channel = target.tcp_nodelay(true).connect().await.map_err(|e| format!("{endpoint}: {e}"))?;
        Ok(Kv { grpc: tonic::client::Grpc::new(channel) })
    }

    /// Reads a key or a range.
    pub async fn range(&self, request: RangeRequest) -> Result<RangeResponse, tonic::Status> {
        self.call("/etcdserverpb.KV/Range", request).await
    }

    /// Runs a transaction.
    pub async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, tonic::Status> {
        self.call("/etcdserverpb.KV/Txn", request).await
    }

    /// Asks the member who it is and who leads.
    pub async fn status(&self) -> Result<StatusResponse, tonic::Status> {
        self.call("/etcdserverpb.Maintenance/Status", StatusRequest {}).await
    }

    async fn call<Q, A>(&self, path: &'static str, message: Q) -> Result<A, tonic::Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc.clone();
        grpc.ready().await.map_err(|e| tonic::Status::unavailable(e.to_string()))?;
        let mut request = tonic::Request::new(message);
        request.set_timeout(CALL_DEADLINE);
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        Ok(grpc.unary(request, PathAndQuery::from_static(path), codec).await?.into_inner())
    }
}
