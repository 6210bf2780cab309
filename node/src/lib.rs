//! One member of a Holdfast cluster: propose, Raft, durable storage, timers, services.

pub mod config;
pub mod limits;
pub mod storage;
