//! One member of a Holdfast cluster.

pub mod storage;
