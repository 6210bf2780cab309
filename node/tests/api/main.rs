//! Nodes in this process, met from the outside: every service call, every bad input, start and stop.
#![allow(clippy::unwrap_used)]

mod adjusting;
mod bad_input;
mod bad_operations;
mod client;
mod cluster;
mod events;
mod history;
mod lifecycle;
mod limits;
mod refusals;
mod reservations;
mod services;
mod stopping;
mod stream;
mod webhooks;
