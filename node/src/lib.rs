//! One member of a Holdfast cluster: propose, Raft, durable storage, timers, services.

pub mod config;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod storage;
