//! Clusters of three on simulated disks, clocks and network, in virtual time: directed scenarios.
#![allow(clippy::unwrap_used)]

mod basics;
mod clocks;
mod epochs;
mod failures;
mod harness;
mod peers;
mod plans;
mod reads;
mod restarts;
mod snapshot_crashes;
mod snapshots;
mod stops;
