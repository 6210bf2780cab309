//! The history index: what has ended, beyond the live window, for people with questions.
//!
//! It is kept in sled, which may lose or damage anything (docs/dependencies.md has the figures), so nothing here is the
//! only copy of anything that matters and nothing here is asked for a decision. It is written after the fact by a
//! thread of its own. Whatever goes wrong, an error, a panic, a full queue, costs history and says from which
//! revision on it is complete; it never costs the node.
//!
//! # When something is lost
//!
//! An index that was dropped, that fell behind, or whose book was replaced by a snapshot asks the book for what it
//! still knows: the reservations it remembers and the events it keeps. These reach back to a revision that the book
//! can vouch for. Statements it does not tell, since they do not say which revision archived them, so they are complete from a later revision on, which is told
//! apart. What the log still has comes by itself as it is applied again.
//!
//! # When sled panics
//!
//! The node is built with `panic = "abort"`, so a panic inside sled ends the process. Three things make that end well:
//! a marker stands while the index is opened and checked; a panic hook leaves another marker when the panicking
//! thread is one that was inside the index; and a start that finds either drops the index and begins a new one. Where
//! panics unwind (tests), they are caught and have the same effect at once.

mod guard;
mod index;
mod keys;
mod record;
mod thread;
mod writer;

pub use guard::HistoryError;
pub use record::{HistoryId, HistoryRecord};
pub use thread::{
    HistoryBatch, HistoryConfig, HistoryFeed, HistoryPage, HistoryReader, HistoryThread, MakeBatch,
    RETAINED_NUMBER, RetainedPart, TakeRetained, TellRetained, spawn_history,
};
