//! The wire: protobuf definitions, conversions to ledger values, the table of error codes.

/// The generated messages, clients and servers of package `holdfast.v1`.
/// What each means stands in `proto/holdfast/v1/*.proto`.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("holdfast.v1");
}

/// The descriptors of package `holdfast.v1`, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
