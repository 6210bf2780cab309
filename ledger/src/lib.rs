//! The book of capacity: a pure, total, deterministic function of
//! (state, index, term, stamped time, command).
//!
//! # Architecture invariants
//!
//! - This crate knows no clock, randomness, I/O, async, protobuf, floats or the
//!   iteration order of a hash map. Two replicas that apply the same commands
//!   hold the same book, and [`Book::digest`] proves it.
//! - [`Book::apply`] cannot fail: a refusal is an [`Answer`]. An impossible
//!   state panics, and the node that hosts the book stops.

pub mod answer;
pub mod book;
pub mod command;
pub mod ids;
pub mod limits;
pub mod plan;
pub mod unit;

pub use answer::{Answer, Refusal, Rejection};
pub use book::Book;
pub use command::{Command, EntryHeader};
pub use ids::ReservationId;
pub use plan::Plan;
pub use unit::{Amounts, Unit};
