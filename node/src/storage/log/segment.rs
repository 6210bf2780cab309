//! One file of the log.

use std::sync::Arc;

use crate::storage::disk::DiskFile;

/// The log's directory.
pub(super) const DIR: &str = "log";

/// Stands in the log's directory once its first segment is durable: from then on an empty log is a lost log.
pub(super) const CREATED: &str = "created";

/// What the marker holds.
pub(super) const CREATED_TEXT: &[u8] = b"holdfast log 1\n";

/// A segment that is open. Readers keep it alive after it was purged.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: Arc<dyn DiskFile>,
}

impl Segment {
    pub(super) fn path(&self) -> String {
        path(self.number)
    }
}

/// The path of a segment.
pub(super) fn path(number: u64) -> String {
    format!("{DIR}/{number:020}.seg")
}

/// The number in a segment's file name, if it is one.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".seg")?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Where the entries of one frame are.
#[derive(Clone)]
pub(super) struct Span {
    /// Index of the first entry that counts.
    pub(super) first: u64,
    /// Index after the last one that counts.
    pub(super) end: u64,
    pub(super) segment: Arc<Segment>,
    pub(super) offset: u32,
    /// Bytes of the whole frame.
    pub(super) length: u32,
}
