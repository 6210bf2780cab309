//! Snapshots: built from a frozen book without stopping apply, sent block by block, received, loaded.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use holdfast_ledger::{Book, BookSnapshot, Record};
use holdfast_proto::records::{decode_record, encode_record};
use holdfast_proto::v1;
use openraft_rt::AsyncRuntime;
use prost::Message;

use super::limits::{SNAPSHOT_CHUNK_BYTES, SNAPSHOT_RECORDS_PER_STEP};
use super::transport::{PeerError, SnapshotParts};
use super::types::{GROUP, RaftSnapshotMeta, RaftStoredMembership, log_id};
use super::wire;
use crate::storage::disk::{DiskFile, read_up_to};
use crate::storage::log::LogPosition;
use crate::storage::snapshot as stored;

/// Where long work on a snapshot runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offload {
    /// On a thread of its own: Raft's only thread must answer heartbeats meanwhile.
    Threads,
    /// In small steps among the other tasks: the simulator has no threads.
    Inline,
}

impl Offload {
    pub(super) async fn run<R: AsyncRuntime, T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Offload::Threads => R::spawn_blocking(work).await?,
            Offload::Inline => work(),
        }
    }
}

fn io_error(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

/// The snapshot files of a node.
pub struct SnapshotFiles {
    store: stored::SnapshotStore,
    newest: Mutex<Option<(RaftSnapshotMeta, SnapshotFile)>>,
}

/// One snapshot on disk.
#[derive(Clone)]
pub struct SnapshotFile {
    file: Arc<dyn DiskFile>,
    /// Its name in the store.
    name: String,
    bytes: u64,
    crc32c: u32,
}

impl SnapshotFiles {
    /// Over the store, with its newest snapshot read through.
    pub fn open(store: stored::SnapshotStore) -> io::Result<Self> {
        let files = SnapshotFiles { store, newest: Mutex::new(None) };
        if let Some(found) = files.store.verify_newest().map_err(io_error)? {
            let meta = decode_meta(&found.meta)?;
            let file = files.opened(found)?;
            files.keep(file, &meta);
        }
        Ok(files)
    }

    fn opened(&self, stored: stored::SnapshotFile) -> io::Result<SnapshotFile> {
        let name = stored.name();
        let file = self.store.read(&name).map_err(io_error)?.file().clone();
        Ok(SnapshotFile { file, name, bytes: stored.bytes, crc32c: stored.crc32c })
    }

    pub(super) fn newest(&self) -> Option<(RaftSnapshotMeta, SnapshotFile)> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes `file` one of this node's, if it lies elsewhere, and the newest.
    pub(super) fn adopt(&self, file: SnapshotFile, meta: &RaftSnapshotMeta) -> io::Result<()> {
        let held = self.store.names().map_err(io_error)?.contains(&file.name);
        let file = if held { file } else { self.copy(&file)? };
        self.keep(file, meta);
        Ok(())
    }

    fn copy(&self, file: &SnapshotFile) -> io::Result<SnapshotFile> {
        let mut receiver = self.store.receive(file.bytes, file.crc32c).map_err(io_error)?;
        while receiver.received_bytes() < file.bytes {
            let offset = receiver.received_bytes();
            let block = read_block(file.file.as_ref(), offset, file.bytes)?;
            receiver.write(offset, &block).map_err(io_error)?;
        }
        self.opened(receiver.finish().map_err(io_error)?)
    }

    /// From now on `file` is the newest.
    pub(super) fn keep(&self, file: SnapshotFile, meta: &RaftSnapshotMeta) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some((meta.clone(), file));
    }
}

fn encode_meta(meta: &RaftSnapshotMeta, revision: u64) -> stored::SnapshotMeta {
    // The entry that the membership came from, as peers would be sent it.
    let entry = v1::Entry {
        id: meta.last_membership.log_id().as_ref().map(wire::encode_log_id),
        payload: Some(v1::entry::Payload::Membership(wire::encode_membership(
            meta.last_membership.membership(),
        ))),
    };
    let position = |id: &super::types::RaftLogId| LogPosition {
        term: id.leader_id.term,
        leader_node: 0,
        index: id.index,
    };
    stored::SnapshotMeta {
        group: GROUP,
        last: meta.last_log_id.as_ref().map(position),
        revision,
        membership: entry.encode_to_vec().into(),
    }
}

fn decode_meta(meta: &stored::SnapshotMeta) -> io::Result<RaftSnapshotMeta> {
    let unreadable = |what: &dyn std::fmt::Display| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the membership in the snapshot is unreadable: {what}"),
        )
    };
    let entry = v1::Entry::decode(meta.membership.clone()).map_err(|e| unreadable(&e))?;
    let Some(v1::entry::Payload::Membership(membership)) = entry.payload else {
        return Err(unreadable(&"it is none"));
    };
    let membership = wire::decode_membership(membership).map_err(|e| unreadable(&e))?;
    Ok(RaftSnapshotMeta {
        last_log_id: meta.last.map(|at| log_id(at.term, at.index)),
        last_membership: RaftStoredMembership::new(entry.id.map(wire::decode_log_id), membership),
    })
}

impl SnapshotFile {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn crc32c(&self) -> u32 {
        self.crc32c
    }

    /// The head and the file in blocks. `taken` counts the head and the bytes that were asked for, so that
    /// the sender sees whether it moves.
    pub(super) fn parts(&self, head: v1::SnapshotHead, taken: Arc<AtomicU64>) -> SnapshotParts {
        use v1::install_snapshot_request::Part;
        let head = v1::InstallSnapshotRequest { part: Some(Part::Head(head)) };
        let (file, bytes) = (self.file.clone(), self.bytes);
        let blocks = stream::unfold(Some(0u64), move |offset| {
            let next = offset.and_then(|offset| {
                taken.store(offset + 1, Ordering::Relaxed);
                if offset >= bytes {
                    return None;
                }
                match read_block(file.as_ref(), offset, bytes) {
                    Ok(block) => {
                        let after = offset + block.len() as u64;
                        let part = Part::Block(v1::SnapshotBlock { offset, bytes: block });
                        Some((Ok(v1::InstallSnapshotRequest { part: Some(part) }), Some(after)))
                    }
                    Err(error) => Some((
                        Err(PeerError::Unreachable(format!("the snapshot cannot be read: {error}"))),
                        None,
                    )),
                }
            });
            std::future::ready(next)
        });
        stream::iter([Ok(head)]).chain(blocks).boxed()
    }
}

fn read_block(file: &dyn DiskFile, offset: u64, bytes: u64) -> io::Result<Bytes> {
    let length = (bytes - offset).min(SNAPSHOT_CHUNK_BYTES as u64) as usize;
    let block = read_up_to(file, offset, length)?;
    if block.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(block.into())
}

/// Writes a frozen book to a file. Apply goes on meanwhile.
pub(super) async fn build_snapshot<R: AsyncRuntime>(
    offload: &Offload,
    files: &Arc<SnapshotFiles>,
    meta: &RaftSnapshotMeta,
    frozen: Arc<BookSnapshot>,
) -> io::Result<SnapshotFile> {
    let header = encode_meta(meta, frozen.header().revision);
    let stored = match offload {
        Offload::Threads => {
            let store = files.store.clone();
            offload.run::<R, _>(move || store.write(header, encoded(&frozen)).map_err(io_error)).await?
        }
        Offload::Inline => {
            let mut writer = files.store.create(header).map_err(io_error)?;
            for (at, record) in encoded(&frozen).enumerate() {
                writer.push(&record).map_err(io_error)?;
                if at % SNAPSHOT_RECORDS_PER_STEP == SNAPSHOT_RECORDS_PER_STEP - 1 {
                    R::sleep(Duration::from_millis(1)).await;
                }
            }
            R::sleep(Duration::from_millis(1)).await;
            writer.finish().map_err(io_error)?
        }
    };
    files.opened(stored)
}

fn encoded(frozen: &BookSnapshot) -> impl Iterator<Item = Bytes> + '_ {
    frozen.records().map(|record| {
        let mut buffer = Vec::with_capacity(128);
        encode_record(&record, &mut buffer);
        Bytes::from(buffer)
    })
}

/// The book that a snapshot file holds.
pub(super) async fn load_snapshot<R: AsyncRuntime>(
    offload: &Offload,
    file: &SnapshotFile,
) -> io::Result<Book> {
    let file = file.clone();
    offload.run::<R, _>(move || load(&file)).await
}

fn load(file: &SnapshotFile) -> io::Result<Book> {
    let SnapshotFile { file, name, .. } = file;
    let mut reader = stored::SnapshotReader::open(file.clone(), name.clone()).map_err(io_error)?;
    let mut failure = None;
    // What is made of the records counts only if the reader ends without an error.
    let book = Book::restore(Records { reader: &mut reader, failure: &mut failure });
    if let Some(error) = failure {
        return Err(error);
    }
    for rest in reader {
        rest.map_err(io_error)?;
    }
    book.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("snapshot {name}: {error}")))
}

/// The rows of a snapshot until its end or the first that cannot be read.
struct Records<'a> {
    reader: &'a mut stored::SnapshotReader,
    failure: &'a mut Option<io::Error>,
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let record = self.reader.next()?.map_err(io_error);
        match record.and_then(|bytes| decode_record(&bytes).map_err(io_error)) {
            Ok(record) => Some(record),
            Err(error) => {
                *self.failure = Some(error);
                None
            }
        }
    }
}

/// Takes the blocks of another member's snapshot into a file of its own and verifies it as a whole. Gives up,
/// and removes the file, when nothing comes for `idle`: a sender that hangs must not keep it for ever.
pub(super) async fn receive_snapshot<R: AsyncRuntime>(
    offload: &Offload,
    files: &Arc<SnapshotFiles>,
    meta: &RaftSnapshotMeta,
    head: &v1::SnapshotHead,
    mut parts: SnapshotParts,
    idle: Duration,
) -> Result<SnapshotFile, PeerError> {
    use v1::install_snapshot_request::Part;
    let failed = |error: &dyn std::fmt::Display| PeerError::Unreachable(format!("not received: {error}"));
    let mut receiver = files.store.receive(head.bytes, head.crc32c).map_err(|e| failed(&e))?;
    while let Some(part) = R::timeout(idle, parts.next()).await.map_err(|_| PeerError::TimedOut(idle))? {
        let Some(Part::Block(block)) = part?.part else {
            return Err(PeerError::Malformed("a part of a snapshot is no block".into()));
        };
        receiver.write(block.offset, &block.bytes).map_err(|e| failed(&e))?;
    }
    let finished = offload.run::<R, _>(move || receiver.finish().map_err(io_error)).await;
    let stored = finished.map_err(|e| failed(&e))?;
    let found = decode_meta(&stored.meta).map_err(|e| failed(&e))?;
    if found != *meta || stored.meta.group != GROUP {
        return Err(PeerError::Malformed("the file is another snapshot than its head says".into()));
    }
    files.opened(stored).map_err(|e| failed(&e))
}
