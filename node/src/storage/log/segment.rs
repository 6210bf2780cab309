//! One file of the log.

use std::io;
use std::sync::Arc;

use super::frame;
use super::record::Record;
use super::types::{LogPosition, LogVote};
use crate::storage::disk::{Disk, DiskFile};

/// The log's directory.
pub(super) const DIR: &str = "log";

/// Stands beside the log's directory, which may be lost whole, once its first segment is durable: from then on an
/// empty log is a lost log.
pub(super) const CREATED: &str = "log.created";

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

/// A segment and what is in it.
pub(super) struct Kept {
    pub(super) segment: Arc<Segment>,
    /// The highest index of any entry in it.
    pub(super) highest: Option<u64>,
    /// Bytes written to it.
    pub(super) bytes: u64,
}

/// What each segment repeats at its head: the state that older segments, once deleted, would have told.
#[derive(Clone, Copy, Default)]
pub(super) struct Head {
    pub(super) vote: Option<LogVote>,
    pub(super) purged: Option<LogPosition>,
    pub(super) committed: Option<LogPosition>,
    pub(super) last: Option<LogPosition>,
}

/// Makes a segment with its head, durably. Returns it and its length.
pub(super) fn create(
    disk: &dyn Disk,
    number: u64,
    seq: u64,
    group: u64,
    head: &Head,
) -> io::Result<(Arc<Segment>, u64)> {
    let mut buffer = Vec::new();
    let start = frame::open(&mut buffer);
    Record::SegmentHead { number, last: head.last }.encode(&mut buffer);
    if let Some(vote) = head.vote {
        Record::Vote(vote).encode(&mut buffer);
    }
    if let Some(purged) = head.purged {
        Record::Purge(purged).encode(&mut buffer);
    }
    if head.committed.is_some() {
        Record::Committed(head.committed).encode(&mut buffer);
    }
    frame::close(&mut buffer, start, seq, group, seq - 1);
    let file = disk.create(&path(number))?;
    file.write_at(0, &buffer)?;
    file.sync()?;
    disk.sync_dir(DIR)?;
    Ok((Arc::new(Segment { number, file }), buffer.len() as u64))
}
