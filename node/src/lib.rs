//! One member of a Holdfast cluster: propose, Raft, durable storage, timers, services.

mod api;
mod audit;
pub mod calendar;
pub mod clock;
pub mod config;
pub mod events;
pub mod history;
pub mod http;
pub mod limits;
pub mod metrics;
pub mod propose;
pub mod raft;
pub mod recording;
pub mod replica;
pub mod serve;
pub mod storage;
mod timers;
mod webhooks;
