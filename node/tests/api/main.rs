//! Nodes in this process, met from the outside: every service call, every bad input, start and stop.
#![allow(clippy::unwrap_used)]

mod cluster;
mod lifecycle;
