//! Storage: what it promises, and that it keeps it when disks do their worst.
#![allow(clippy::unwrap_used)]

mod disk;
mod history;
mod identity;
mod log_basic;
mod log_crash;
mod log_damage;
mod log_random;
mod log_thread;
mod log_world;
mod snapshot;
