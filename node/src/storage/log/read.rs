//! Reading entries: the tail from memory, older ones from their segments.

use std::io;
use std::ops::Range;

use bytes::Bytes;

use super::record::{Record, decode_all};
use super::spans::Span;
use super::types::LogEntry;
use super::{Shared, frame};
use crate::storage::disk::read_up_to;

pub(super) fn read(shared: &Shared, range: Range<u64>, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
    let (start, end, spans, cached) = {
        let state = shared.lock();
        state.check()?;
        let first = state.bounds.purged.map_or(0, |purged| purged.index + 1);
        let after_last = state.bounds.last.map_or(0, |last| last.index + 1);
        let (mut start, end) = (range.start.max(first), range.end.min(after_last));
        let cache_start = state.cache_start();
        if let (None, Some(front)) = (state.bounds.purged, state.spans.front()) {
            // A log that was never purged begins at whatever index was appended first.
            start = start.max(front.first.min(cache_start));
        } else if state.spans.is_empty() {
            start = start.max(cache_start);
        }
        if start >= end {
            return Ok(Vec::new());
        }
        if start >= cache_start {
            return Ok(state.cached(start, end, bytes_max));
        }
        let disk_end = end.min(cache_start);
        let skip = state.spans.partition_point(|span| span.end <= start);
        let mut bytes = 0usize;
        let spans: Vec<Span> = state
            .spans
            .range(skip..)
            .take_while(|span| {
                let more = span.first < disk_end && (bytes == 0 || bytes < bytes_max);
                bytes = bytes.saturating_add(span.length as usize);
                more
            })
            .cloned()
            .collect();
        // Taken under the same lock, so that the whole answer is one moment's log.
        let reaches_cache = spans.last().is_some_and(|span| span.end >= disk_end);
        let cached = if reaches_cache { state.cached(disk_end, end, bytes_max) } else { Vec::new() };
        (start, disk_end, spans, cached)
    };
    let mut entries = Vec::new();
    for span in &spans {
        read_span(span, start..end, &mut entries).map_err(|error| shared.fail_and_wake(&error))?;
    }
    check_dense(&entries, start).map_err(|error| shared.fail_and_wake(&error))?;
    entries.extend(cached);
    limit(&mut entries, bytes_max);
    Ok(entries)
}

/// Leaves the first entry and what fits with it.
fn limit(entries: &mut Vec<LogEntry>, bytes_max: usize) {
    let mut bytes = 0usize;
    let fits = entries.iter().take_while(|entry| {
        bytes = bytes.saturating_add(entry.payload.len());
        bytes <= bytes_max
    });
    let fits = fits.count().max(1);
    entries.truncate(fits);
}

fn check_dense(entries: &[LogEntry], start: u64) -> io::Result<()> {
    let dense =
        !entries.is_empty() && entries.iter().zip(start..).all(|(entry, index)| entry.index() == index);
    if dense {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the log has a hole at or after entry {start}"),
        ))
    }
}

/// Adds a frame's entries that count and lie in `range`.
fn read_span(span: &Span, range: Range<u64>, entries: &mut Vec<LogEntry>) -> io::Result<()> {
    let bytes = read_up_to(span.segment.file.as_ref(), u64::from(span.offset), span.length as usize)?;
    let damaged = |what: &str| {
        let place = format!("{} is damaged at byte {}: {what}", span.segment.path(), span.offset);
        io::Error::new(io::ErrorKind::InvalidData, place)
    };
    let bytes = Bytes::from(bytes);
    let (_, payload) = frame::read(&bytes).map_err(|no| damaged(no.describe()))?;
    let counts = range.start.max(span.first)..range.end.min(span.end);
    for record in decode_all(payload) {
        match record.ok_or_else(|| damaged("a record cannot be read"))? {
            Record::Entry { position, kind, payload } if counts.contains(&position.index) => {
                entries.push(LogEntry { position, kind, payload: bytes.slice_ref(payload) });
            }
            _ => {}
        }
    }
    Ok(())
}
