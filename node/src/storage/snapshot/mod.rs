//! Snapshot files: a header, records in checked blocks, and an end that vouches for the whole.
//!
//! A snapshot has its final name only once all of it is durable, so a file under such a name is whole or damaged,
//! never unfinished. Layout: docs/format.md.

mod error;
mod format;
mod reader;
mod receiver;
mod store;
mod writer;

pub use error::SnapshotError;
pub use format::SnapshotMeta;
pub use reader::SnapshotReader;
pub use receiver::SnapshotReceiver;
pub use store::{SnapshotFile, SnapshotStore};
pub use writer::SnapshotWriter;
