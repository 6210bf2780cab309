//! What the frames of a log amount to. Pure: recovery feeds it frames, oldest first.

use std::collections::VecDeque;
use std::sync::Arc;

use super::record::{Record, decode_all};
use super::segment::{Head, Segment};
use super::spans::{Span, purge_spans, truncate_spans};
use super::types::committed_within;

/// The state built up so far.
#[derive(Default)]
pub(super) struct Replay {
    pub(super) head: Head,
    pub(super) spans: VecDeque<Span>,
    /// The last position before the oldest segment, once its head was seen.
    before: Option<Option<super::LogPosition>>,
}

/// A frame, and where it is.
pub(super) struct Placed<'a> {
    pub(super) segment: &'a Arc<Segment>,
    pub(super) offset: u64,
    pub(super) length: usize,
    pub(super) payload: &'a [u8],
}

impl Replay {
    /// Takes one frame. Returns the highest index of its entries, or what is wrong with it.
    pub(super) fn frame(&mut self, frame: &Placed<'_>) -> Result<Option<u64>, String> {
        let mut entries: Option<(u64, u64)> = None;
        for (nth, record) in decode_all(frame.payload).enumerate() {
            let record = record.ok_or("a record cannot be read")?;
            if matches!(record, Record::SegmentHead { .. }) != (nth == 0 && frame.offset == 0) {
                return Err("a segment must begin with its head, and have one only".into());
            }
            if let Record::Entry { position, .. } = record {
                let first = entries.map_or(position.index, |(first, _)| first);
                entries = Some((first, position.index + 1));
            }
            self.record(record, frame.segment.number)?;
        }
        if frame.offset == 0 && frame.payload.is_empty() {
            return Err("a segment must begin with its head".into());
        }
        if let Some((first, end)) = entries {
            self.spans.push_back(Span {
                first,
                end,
                segment: Arc::clone(frame.segment),
                offset: u32::try_from(frame.offset).map_err(|_| "the segment is too large")?,
                length: u32::try_from(frame.length).map_err(|_| "the frame is too large")?,
            });
        }
        Ok(entries.map(|(_, end)| end - 1))
    }

    fn record(&mut self, record: Record<'_>, segment: u64) -> Result<(), String> {
        match record {
            Record::Entry { position, .. } => {
                if let Some(last) = self.head.last
                    && last.index.checked_add(1) != Some(position.index)
                {
                    return Err(format!("entry {} follows entry {}", position.index, last.index));
                }
                if position.index == u64::MAX {
                    return Err("an index at the end of its range".into());
                }
                self.head.last = Some(position);
            }
            Record::Vote(vote) => self.head.vote = Some(vote),
            Record::Truncate(keep) => {
                truncate_spans(&mut self.spans, keep.map(|keep| keep.index));
                self.head.last = keep;
                self.head.committed = committed_within(self.head.committed, keep);
            }
            Record::Purge(upto) => {
                purge_spans(&mut self.spans, upto.index);
                self.head.purged = Some(upto);
                if self.head.last.is_none_or(|last| last.index <= upto.index) {
                    self.head.last = Some(upto);
                }
            }
            Record::Committed(committed) => self.head.committed = committed,
            Record::SegmentHead { number, last } => self.segment_head(number, last, segment)?,
        }
        Ok(())
    }

    fn segment_head(
        &mut self,
        number: u64,
        last: Option<super::LogPosition>,
        segment: u64,
    ) -> Result<(), String> {
        if number != segment {
            return Err(format!("the head of segment {number} is in the file of segment {segment}"));
        }
        if self.before.is_none() {
            self.before = Some(last);
            self.head.last = last;
        } else if self.head.last != last {
            return Err(format!(
                "the segment's head continues {last:?}, the log ends at {:?}",
                self.head.last
            ));
        }
        Ok(())
    }

    /// Checks that every entry between the purge point and the end is there, and settles the committed position.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        let purged = self.head.purged.map(|purged| purged.index);
        let last = self.head.last.map(|last| last.index);
        let whole = match self.spans.front() {
            Some(front) => match purged {
                Some(purged) => front.first == purged + 1,
                None => self.before == Some(None),
            },
            None => purged == last,
        };
        if !whole {
            let from = purged.map_or(0, |purged| purged + 1);
            let first = self.spans.front().map(|span| span.first);
            return Err(format!(
                "older segments of the log are missing: entries from {from} to {last:?} should be there, the first found is {first:?}"
            ));
        }
        self.head.committed = committed_within(self.head.committed, self.head.last);
        Ok(())
    }
}
