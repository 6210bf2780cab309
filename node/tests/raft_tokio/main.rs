//! Nodes in one process on the machine's runtime, network and disks: what the simulator cannot show.
#![allow(clippy::unwrap_used)]

mod gate;
mod harness;
mod restart;
mod snapshot_receiver;
mod snapshots;
