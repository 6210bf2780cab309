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

pub mod adjust;
pub mod answer;
pub mod book;
pub mod command;
pub mod event;
pub mod ids;
pub mod limits;
pub mod loss;
pub mod mutants;
pub mod plan;
pub mod query;
pub mod record;
pub mod shadow;
pub mod unit;
pub mod webhook;

mod apply;

pub use adjust::{Adjust, Adjustment, AdjustmentReceipt};
pub use answer::{Answer, Receipt, Refusal, Rejection};
pub use book::{Book, BookSnapshot, Retained};
pub use command::{Command, EntryHeader};
pub use event::{Effect, Event};
pub use ids::{AdjustmentId, ReservationId};
pub use plan::Plan;
pub use query::{AuditReport, Counts, EpochStatement, PublishedPlan, QuotaLine, UnknownUsage};
pub use record::{Record, RestoreError};
pub use unit::{Amounts, Unit};
