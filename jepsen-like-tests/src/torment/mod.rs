//! Torment: real processes, real sockets, real disks, and SIGKILL.
//!
//! A run starts a cluster, loads it, kills members, heals it, reads everything and judges.

mod binary;
mod cluster;
mod collect;
mod door;
mod nemesis;
mod options;
mod ports;
mod run;

pub use binary::{BinaryError, holdfast_binary};
pub use cluster::{Cluster, ClusterError};
pub use nemesis::{Fault, FaultKind};
pub use options::Options;
pub use run::{Run, RunError, run};
