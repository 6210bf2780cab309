//! The wire: protobuf definitions, conversions to ledger values, the table of error codes.
//!
//! # Architecture invariants
//!
//! - A conversion names every field. It refuses what it does not know (numbers of an enum, units,
//!   reasons of an error) and never drops or replaces it.
//! - What a request *may* be is decided by the ledger. Here only what cannot be a ledger value is
//!   refused, and what can only be a mistake: a missing field, a malformed name, an explicit 0.
//! - Stored messages (`storage.proto`) and public ones are apart, but for the words they share.

pub mod adjust;
pub mod amounts;
pub mod answers;
pub mod commands;
pub mod events;
pub mod failure;
pub mod field;
pub mod json;
pub mod limits;
pub mod log;
pub mod operators;
pub mod plans;
pub mod queries;
pub mod reasons;
pub mod receipt;
pub mod records;
pub mod request;
pub mod shadow;
pub mod tenants;
pub mod webhooks;
pub mod words;

pub use failure::{Facts, Failure, LeaderHint};
pub use field::FieldError;
pub use holdfast_ledger as ledger;
pub use reasons::{ERROR_DOMAIN, ErrorReason};

/// The generated messages, clients and servers of package `holdfast.v1`.
/// What each means stands in `proto/holdfast/v1/*.proto`.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("holdfast.v1");
}

/// The descriptors of package `holdfast.v1`, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
