//! Opening a log: what is whole is taken over, what was never synced is cut off, anything else is refused.

use std::io;
use std::sync::Arc;

use super::error::LogOpenError;
use super::frame::{self, NoFrame};
use super::replay::{Placed, Replay};
use super::segment::{self, CREATED, CREATED_TEXT, DIR, Head, Kept, Segment, create, number_of};
use super::state::State;
use super::types::{LogBounds, LogConfig, LogStats};
use super::worker::Start;
use crate::storage::disk::{Disk, DiskFile};
use crate::storage::limits::{
    LOG_ENTRY_PAYLOAD_BYTES_MAX, LOG_FRAME_PAYLOAD_BYTES, LOG_SEGMENT_FILE_BYTES_MAX,
};

pub(super) fn recover(disk: &dyn Disk, config: &LogConfig) -> Result<(State, Start), LogOpenError> {
    check_config(config)?;
    disk.create_dir(DIR)?;
    disk.sync_dir("")?;
    let created = disk.list("")?.iter().any(|name| name == CREATED);
    let names = disk.list(DIR)?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    if let Some(pair) = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]) {
        return Err(LogOpenError::Missing {
            what: format!("{} of the log is missing", segment::path(pair[0] + 1)),
        });
    }
    let mut scan = Scan::new(disk, config, created);
    scan.run(&numbers)?;
    scan.replay.finish().map_err(|what| LogOpenError::Missing { what })?;
    if scan.kept.is_empty() {
        if created {
            return Err(LogOpenError::Missing { what: format!("every segment of the log in {DIR} is gone") });
        }
        scan.begin()?;
    } else {
        scan.make_durable()?;
    }
    if !created {
        mark_created(disk)?;
    }
    Ok(scan.into_parts())
}

fn check_config(config: &LogConfig) -> io::Result<()> {
    let largest_frame = (LOG_FRAME_PAYLOAD_BYTES + LOG_ENTRY_PAYLOAD_BYTES_MAX) as u64;
    if config.segment_bytes.saturating_add(largest_frame) > LOG_SEGMENT_FILE_BYTES_MAX {
        let text = format!("log segments of {} bytes are too large", config.segment_bytes);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

fn mark_created(disk: &dyn Disk) -> io::Result<()> {
    let file = disk.create(CREATED)?;
    file.write_at(0, CREATED_TEXT)?;
    file.sync()?;
    disk.sync_dir("")
}

/// Where the frames stop being whole.
struct Stop {
    offset: u64,
    what: String,
}

struct Scan<'a> {
    disk: &'a dyn Disk,
    config: &'a LogConfig,
    created: bool,
    replay: Replay,
    kept: Vec<Kept>,
    /// Of the last whole frame; 0 before the first.
    seq: u64,
    /// The highest mark seen in whole frames: up to here everything was durable for certain.
    synced_seq: u64,
    buffer: Vec<u8>,
}

impl<'a> Scan<'a> {
    fn new(disk: &'a dyn Disk, config: &'a LogConfig, created: bool) -> Self {
        Self {
            disk,
            config,
            created,
            replay: Replay::default(),
            kept: Vec::new(),
            seq: 0,
            synced_seq: 0,
            buffer: Vec::new(),
        }
    }

    fn run(&mut self, numbers: &[u64]) -> Result<(), LogOpenError> {
        for (nth, number) in numbers.iter().enumerate() {
            let segment = self.load(*number)?;
            self.kept.push(Kept { segment: Arc::clone(&segment), highest: None, bytes: 0 });
            if let Some(stop) = self.frames(&segment)? {
                return self.cut(&segment, &stop, &numbers[nth + 1..]);
            }
        }
        Ok(())
    }

    /// Reads a segment into the buffer.
    fn load(&mut self, number: u64) -> io::Result<Arc<Segment>> {
        let file = self.disk.open(&segment::path(number))?;
        read_into(file.as_ref(), &mut self.buffer)?;
        Ok(Arc::new(Segment { number, file }))
    }

    /// Takes the frames of the segment in the buffer, until they stop being whole.
    fn frames(&mut self, segment: &Arc<Segment>) -> Result<Option<Stop>, LogOpenError> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut offset = 0;
        let stop = loop {
            match frame::read(&buffer[offset..]) {
                Ok((header, payload)) => {
                    let place = (offset as u64, payload);
                    if let Some(what) = self.frame(segment, header, place)? {
                        break Some(what);
                    }
                    offset += frame::HEADER_BYTES + header.length;
                }
                Err(NoFrame::End) if offset > 0 => break None,
                Err(NoFrame::Version(found)) => {
                    return Err(LogOpenError::NewerFormat {
                        file: segment.path(),
                        offset: offset as u64,
                        found,
                        supported: frame::VERSION,
                    });
                }
                Err(no) => break Some(no.describe().to_owned()),
            }
        };
        self.buffer = buffer;
        Ok(stop.map(|what| Stop { offset: offset as u64, what }))
    }

    /// Takes one whole frame, or says why it does not belong here.
    fn frame(
        &mut self,
        segment: &Arc<Segment>,
        header: frame::Header,
        (offset, payload): (u64, &[u8]),
    ) -> Result<Option<String>, LogOpenError> {
        let contradiction = |what| LogOpenError::Contradiction { file: segment.path(), offset, what };
        let first_of_all = self.seq == 0;
        if !first_of_all && header.seq != self.seq + 1 {
            return Ok(Some(format!("frame {} is here instead", header.seq)));
        }
        if header.group != self.config.group {
            let what = format!("a frame of group {} in the log of group {}", header.group, self.config.group);
            return Err(contradiction(what));
        }
        if header.synced_seq >= header.seq {
            return Err(contradiction(format!(
                "frame {} claims to be synced up to {}",
                header.seq, header.synced_seq
            )));
        }
        let length = frame::HEADER_BYTES + header.length;
        let highest =
            self.replay.frame(&Placed { segment, offset, length, payload }).map_err(contradiction)?;
        self.seq = header.seq;
        self.synced_seq = self.synced_seq.max(header.synced_seq);
        if let Some(kept) = self.kept.last_mut() {
            kept.highest = kept.highest.max(highest);
            kept.bytes = offset + length as u64;
        }
        Ok(None)
    }

    /// Decides between a torn tail and damage, and cuts the tail off.
    fn cut(&mut self, segment: &Arc<Segment>, stop: &Stop, later: &[u64]) -> Result<(), LogOpenError> {
        let expected = self.seq + 1;
        let damaged = self.damaged(segment, stop, expected);
        let mut synced = frame::highest_synced_seq(&self.buffer[stop.offset as usize..]);
        for number in later {
            self.load(*number)?;
            synced = synced.max(frame::highest_synced_seq(&self.buffer));
        }
        // The oldest head was durable before anything was deleted or accepted after it.
        let lost_head = self.seq == 0 && (segment.number > 1 || self.created);
        if lost_head || synced.is_some_and(|synced| synced >= expected) {
            return Err(damaged);
        }
        tracing::warn!(
            file = segment.path(),
            offset = stop.offset,
            later = later.len(),
            what = stop.what,
            "cutting off a tail of the log that was never synced"
        );
        for number in later.iter().rev() {
            self.disk.remove(&segment::path(*number))?;
            self.disk.sync_dir(DIR)?;
        }
        if stop.offset == 0 {
            self.kept.pop();
            self.disk.remove(&segment.path())?;
            self.disk.sync_dir(DIR)?;
        } else {
            segment.file.truncate(stop.offset)?;
            segment.file.sync()?;
        }
        Ok(())
    }

    /// The refusal, should it come to that. The buffer holds the segment.
    fn damaged(&self, segment: &Segment, stop: &Stop, seq: u64) -> LogOpenError {
        // At the beginning of a segment, whole but of a later number: what is missing is the end of the one before.
        let (file, offset) = match self.kept.len().checked_sub(2).and_then(|before| self.kept.get(before)) {
            Some(before) if stop.offset == 0 && frame::read(&self.buffer).is_ok() => {
                (before.segment.path(), before.bytes)
            }
            _ => (segment.path(), stop.offset),
        };
        LogOpenError::Damaged { file, offset, seq, what: stop.what.clone() }
    }

    /// The first segment of a new log.
    fn begin(&mut self) -> io::Result<()> {
        let head = Head::default();
        let (segment, bytes) = create(self.disk, 1, 1, self.config.group, &head)?;
        self.kept.push(Kept { segment, highest: None, bytes });
        self.seq = 1;
        Ok(())
    }

    /// Everything taken over counts as durable from now on, so it is made so. A sync that failed before the restart may
    /// have left pages that the system believes clean: what no mark vouches for is written again before it is synced.
    fn make_durable(&mut self) -> io::Result<()> {
        let Some(last) = self.kept.last() else { return Ok(()) };
        read_into(last.segment.file.as_ref(), &mut self.buffer)?;
        let mut offset = 0;
        while let Ok((header, _)) = frame::peek(&self.buffer[offset..]) {
            if header.seq > self.synced_seq {
                break;
            }
            offset += frame::HEADER_BYTES + header.length;
        }
        if offset < self.buffer.len() {
            last.segment.file.write_at(offset as u64, &self.buffer[offset..])?;
        }
        last.segment.file.sync()?;
        self.disk.sync_dir(DIR)
    }

    fn into_parts(self) -> (State, Start) {
        let head = self.replay.head;
        let stats = LogStats {
            segments: self.kept.len() as u64,
            bytes: self.kept.iter().map(|kept| kept.bytes).sum(),
            ..LogStats::default()
        };
        let bounds = LogBounds { purged: head.purged, last: head.last };
        let state =
            State::new(self.config.clone(), head.vote, head.committed, bounds, self.replay.spans, stats);
        (state, Start { segments: self.kept.into(), seq: self.seq, head })
    }
}

/// The whole of a segment, in a buffer that is used again.
fn read_into(file: &dyn DiskFile, buffer: &mut Vec<u8>) -> io::Result<()> {
    let size = file.size()?;
    if size > LOG_SEGMENT_FILE_BYTES_MAX {
        let text = format!("a log segment of {size} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    buffer.resize(usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?, 0);
    let read = file.read_at(0, buffer)?;
    buffer.truncate(read);
    Ok(())
}
