//! Everything that tries to break Holdfast, and the checkers that judge what happened.
//!
//! # Architecture invariants
//!
//! - A checker is a pure function of the [`evidence::Evidence`]; it runs nothing and mends nothing.
//! - Nothing here is depended on by the product; this crate may use everything.

pub mod applied;
pub mod check;
pub mod codes;
pub mod convert;
pub mod drive;
pub mod evidence;
pub mod exhaustive;
#[cfg(test)]
mod fixture;
pub mod history;
pub mod interleave;
pub mod recovery;
pub mod report;
pub mod seed;
pub mod sim;
pub mod summary;
pub mod torment;
pub mod workload;
