//! Where entries are in the segments, and how that changes with the stream.

use std::collections::VecDeque;
use std::sync::Arc;

use super::segment::Segment;

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

/// A change to the shared spans, in the order of the stream.
pub(super) enum SpanChange {
    Add(Span),
    Truncate(Option<u64>),
    Purge(u64),
}

impl SpanChange {
    pub(super) fn apply(self, spans: &mut VecDeque<Span>) {
        match self {
            SpanChange::Add(span) => spans.push_back(span),
            SpanChange::Truncate(keep) => truncate_spans(spans, keep),
            SpanChange::Purge(upto) => purge_spans(spans, upto),
        }
    }
}

/// Forgets entries after `keep`.
pub(super) fn truncate_spans(spans: &mut VecDeque<Span>, keep: Option<u64>) {
    let end = keep.map_or(0, |keep| keep + 1);
    while spans.back().is_some_and(|span| span.first >= end) {
        spans.pop_back();
    }
    if let Some(span) = spans.back_mut() {
        span.end = span.end.min(end);
    }
}

/// Forgets entries up to `upto`.
pub(super) fn purge_spans(spans: &mut VecDeque<Span>, upto: u64) {
    while spans.front().is_some_and(|span| span.end <= upto + 1) {
        spans.pop_front();
    }
    if let Some(span) = spans.front_mut() {
        span.first = span.first.max(upto + 1);
    }
}
