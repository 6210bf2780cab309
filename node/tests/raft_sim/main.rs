//! Clusters of three on simulated disks, clocks and network, in virtual time: directed scenarios.
#![allow(clippy::unwrap_used)]

mod basics;
mod clocks;
mod harness;
mod restarts;
mod snapshots;
