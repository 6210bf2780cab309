//! The one that writes: groups what is queued, syncs once, reports in order.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::record::{ENTRY_OVERHEAD_BYTES, Record};
use super::segment::{self, Head, Kept};
use super::spans::{Span, SpanChange};
use super::state::{Group, Op};
use super::types::{Done, LogConfig, committed_within};
use super::{Shared, frame};
use crate::storage::disk::Disk;
use crate::storage::limits::LOG_FRAME_PAYLOAD_BYTES;

/// Where writing goes on, as recovery found it.
pub(super) struct Start {
    /// Oldest first, the one to be written last.
    pub(super) segments: VecDeque<Kept>,
    /// Of the last frame, which is durable.
    pub(super) seq: u64,
    pub(super) head: Head,
}

/// Writes the log's queue. Exactly one exists for a log; drive it from one place.
pub struct SyncWorker {
    shared: Arc<Shared>,
    disk: Arc<dyn Disk>,
    config: LogConfig,
    /// Oldest first; `buffer` will be written to the end of the last.
    segments: VecDeque<Kept>,
    /// Of the last frame closed.
    seq: u64,
    synced_seq: u64,
    head: Head,
    /// Frames not yet written.
    buffer: Vec<u8>,
    changes: Vec<SpanChange>,
    /// Written, not yet synced.
    waiting: Vec<Done>,
    waiting_bytes: usize,
    unsynced: bool,
    purge_due: bool,
}

/// The frame being built.
struct Open {
    start: usize,
    entries: Option<(u64, u64)>,
}

impl SyncWorker {
    pub(super) fn new(shared: Arc<Shared>, disk: Arc<dyn Disk>, config: LogConfig, start: Start) -> Self {
        Self {
            shared,
            disk,
            config,
            segments: start.segments,
            seq: start.seq,
            synced_seq: start.seq,
            head: start.head,
            buffer: Vec::new(),
            changes: Vec::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            unsynced: false,
            // Deleting may have been interrupted.
            purge_due: true,
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Writes and syncs everything that is queued now, then calls the completions in order. False if nothing was queued.
    ///
    /// On an error every waiting completion has been called with it, and each later call returns it again.
    pub fn run_once(&mut self) -> io::Result<bool> {
        let wrote = self.write_group()?;
        self.finish_group()?;
        Ok(wrote)
    }

    /// The first half of [`SyncWorker::run_once`]: writes what is queued, without making it durable. False if nothing was.
    pub fn write_group(&mut self) -> io::Result<bool> {
        self.guard(|worker| {
            let Some(group) = worker.shared.lock().take_group(false) else { return Ok(false) };
            worker.write(group).map(|()| true)
        })
    }

    /// The second half: one sync for everything written, then the completions, then the deletion of purged segments.
    pub fn finish_group(&mut self) -> io::Result<()> {
        self.guard(|worker| {
            worker.sync()?;
            if worker.purge_due {
                worker.delete_purged()?;
            }
            Ok(())
        })
    }

    /// Writes what is left, and a last mark that everything before it was synced.
    pub fn close(&mut self) -> io::Result<()> {
        self.run_once()?;
        self.guard(|worker| {
            let group = worker.shared.lock().take_group(true);
            if let Some(group) = group {
                worker.write(group)?;
                worker.sync()?;
            }
            let open = worker.open_frame();
            worker.close_frame(open);
            worker.write_buffer()?;
            worker.sync()
        })
    }

    /// Runs a step unless the log has failed, and ends the log if the step fails.
    fn guard<T>(&mut self, step: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        let poison = self.shared.lock().poison.clone();
        let result = match poison {
            Some(poison) => Err(poison.error()),
            None => step(self),
        };
        result.map_err(|error| self.fail(&error))
    }

    fn fail(&mut self, error: &io::Error) -> io::Error {
        // Those already written come first: completions keep their order even now.
        let poison =
            self.shared.lock().poison.get_or_insert_with(|| super::state::Poison::new(error)).clone();
        for done in self.waiting.drain(..) {
            done(Err(poison.error()));
        }
        self.shared.fail(error)
    }

    fn write(&mut self, group: Group) -> io::Result<()> {
        let mut failure = Ok(());
        for queued in group.ops {
            if failure.is_ok() {
                failure = self.stage(&queued.op);
            }
            self.waiting.extend(queued.done);
            self.waiting_bytes += queued.bytes;
        }
        failure?;
        if let Some(committed) = group.committed {
            self.head.committed = committed;
            self.record_alone(&Record::Committed(committed));
        }
        self.write_buffer()?;
        self.publish(Some(group.ticket));
        Ok(())
    }

    /// Encodes one operation into the buffer.
    fn stage(&mut self, op: &Op) -> io::Result<()> {
        self.rotate_if_full()?;
        match op {
            Op::Entries(entries) => {
                let mut rest = entries.as_slice();
                while !rest.is_empty() {
                    rest = self.stage_entries(rest);
                    self.rotate_if_full()?;
                }
            }
            Op::Vote(vote) => {
                self.head.vote = Some(*vote);
                self.record_alone(&Record::Vote(*vote));
            }
            Op::Truncate(keep) => {
                self.head.last = *keep;
                self.head.committed = committed_within(self.head.committed, *keep);
                self.record_alone(&Record::Truncate(*keep));
                self.changes.push(SpanChange::Truncate(keep.map(|keep| keep.index)));
            }
            Op::Purge(upto) => {
                self.head.purged = Some(*upto);
                if self.head.last.is_none_or(|last| last.index <= upto.index) {
                    self.head.last = Some(*upto);
                }
                self.record_alone(&Record::Purge(*upto));
                self.changes.push(SpanChange::Purge(upto.index));
                self.purge_due = true;
            }
        }
        Ok(())
    }

    /// One frame of entries; returns those that did not fit.
    fn stage_entries<'a>(&mut self, entries: &'a [super::LogEntry]) -> &'a [super::LogEntry] {
        let mut open = self.open_frame();
        let mut taken = 0;
        for entry in entries {
            let payload = self.buffer.len() - open.start - frame::HEADER_BYTES;
            if taken > 0 && payload + ENTRY_OVERHEAD_BYTES + entry.payload.len() > LOG_FRAME_PAYLOAD_BYTES {
                break;
            }
            let record =
                Record::Entry { position: entry.position, kind: entry.kind, payload: &entry.payload };
            record.encode(&mut self.buffer);
            let first = open.entries.map_or(entry.index(), |(first, _)| first);
            open.entries = Some((first, entry.index() + 1));
            self.head.last = Some(entry.position);
            taken += 1;
        }
        self.close_frame(open);
        &entries[taken..]
    }

    fn record_alone(&mut self, record: &Record<'_>) {
        let open = self.open_frame();
        record.encode(&mut self.buffer);
        self.close_frame(open);
    }

    fn open_frame(&mut self) -> Open {
        Open { start: frame::open(&mut self.buffer), entries: None }
    }

    fn close_frame(&mut self, open: Open) {
        self.seq += 1;
        frame::close(&mut self.buffer, open.start, self.seq, self.config.group, self.synced_seq);
        let (Some((first, end)), Some(kept)) = (open.entries, self.segments.back_mut()) else { return };
        kept.highest = kept.highest.max(Some(end - 1));
        self.changes.push(SpanChange::Add(Span {
            first,
            end,
            segment: Arc::clone(&kept.segment),
            // A segment stays below 4 GiB: see the assertion in limits.rs and LogConfig's check at open.
            offset: (kept.bytes + open.start as u64) as u32,
            length: (self.buffer.len() - open.start) as u32,
        }));
    }

    fn current(&mut self) -> io::Result<&mut Kept> {
        self.segments.back_mut().ok_or_else(|| io::Error::other("the log has no segment"))
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let current = self.current()?;
        current.segment.file.write_at(current.bytes, &buffer)?;
        current.bytes += buffer.len() as u64;
        self.buffer = buffer;
        self.buffer.clear();
        self.buffer.shrink_to(8 * LOG_FRAME_PAYLOAD_BYTES);
        self.unsynced = true;
        Ok(())
    }

    /// Lets readers find what was written.
    fn publish(&mut self, ticket: Option<u64>) {
        let mut state = self.shared.lock();
        for change in self.changes.drain(..) {
            change.apply(&mut state.spans);
        }
        state.stats.segments = self.segments.len() as u64;
        state.stats.bytes = self.segments.iter().map(|kept| kept.bytes).sum();
        if let Some(ticket) = ticket {
            state.written(ticket);
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.current()?.segment.file.sync()?;
            self.unsynced = false;
        }
        self.synced_seq = self.seq;
        let bytes = std::mem::take(&mut self.waiting_bytes);
        self.shared.lock().synced(bytes);
        for done in self.waiting.drain(..) {
            done(Ok(()));
        }
        Ok(())
    }

    fn rotate_if_full(&mut self) -> io::Result<()> {
        let buffered = self.buffer.len() as u64;
        if self.current()?.bytes + buffered < self.config.segment_bytes {
            return Ok(());
        }
        self.write_buffer()?;
        self.current()?.segment.file.sync()?;
        self.unsynced = false;
        self.synced_seq = self.seq;
        let number = self.current()?.segment.number + 1;
        let (segment, bytes) =
            segment::create(self.disk.as_ref(), number, self.seq + 1, self.config.group, &self.head)?;
        self.segments.push_back(Kept { segment, highest: None, bytes });
        self.seq += 1;
        self.synced_seq = self.seq;
        Ok(())
    }

    /// Deletes segments all of whose entries are purged. The purge point is durable by now.
    fn delete_purged(&mut self) -> io::Result<()> {
        self.purge_due = false;
        let purged = self.head.purged.map(|purged| purged.index);
        let mut deleted = false;
        while self.segments.len() > 1 && self.segments.front().is_some_and(|kept| kept.highest <= purged) {
            if let Some(kept) = self.segments.pop_front() {
                self.disk.remove(&kept.segment.path())?;
                deleted = true;
            }
        }
        if deleted {
            self.disk.sync_dir(segment::DIR)?;
            self.publish(None);
        }
        Ok(())
    }
}

impl Drop for SyncWorker {
    /// Nobody will write any more: those who wait must not wait for ever.
    fn drop(&mut self) {
        let gone = io::Error::other("the log's sync worker is gone");
        let mut state = self.shared.lock();
        if state.closed && !state.has_work() && self.waiting.is_empty() {
            return;
        }
        state.poison.get_or_insert_with(|| super::state::Poison::new(&gone));
        drop(state);
        self.fail(&gone);
    }
}
