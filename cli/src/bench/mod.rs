//! Load on a cluster, and what it took.

pub mod cpu;
pub mod report;
pub mod tally;
