//! Snapshots: built from a frozen book without stopping apply, sent, received, loaded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use holdfast_ledger::Book;
use holdfast_ledger::BookSnapshot;
use holdfast_proto::v1;
use openraft_rt::AsyncRuntime;

use super::transport::{PeerError, SnapshotParts};
use super::types::RaftSnapshotMeta;
use crate::storage::Disk;

/// Where long work on a snapshot runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offload {
    /// On a thread of its own: Raft's only thread must answer heartbeats meanwhile.
    Threads,
    /// In small steps among the other tasks: the simulator has no threads.
    Inline,
}

impl Offload {
    async fn run<R: AsyncRuntime, T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Offload::Threads => R::spawn_blocking(work).await?,
            Offload::Inline => work(),
        }
    }
}

/// The snapshot files of a node.
pub struct SnapshotFiles {
    #[allow(dead_code)]
    disk: Arc<dyn Disk>,
}

/// One snapshot on disk.
#[derive(Clone)]
pub struct SnapshotFile {}

fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

impl SnapshotFiles {
    /// Opens the directory.
    pub fn open(disk: Arc<dyn Disk>) -> io::Result<Self> {
        Ok(SnapshotFiles { disk })
    }

    pub(super) fn newest(&self) -> Option<(RaftSnapshotMeta, SnapshotFile)> {
        None
    }

    pub(super) fn keep(&self, _file: SnapshotFile, _meta: &RaftSnapshotMeta) -> io::Result<()> {
        unsupported()
    }
}

impl SnapshotFile {
    pub(super) fn bytes(&self) -> u64 {
        0
    }

    pub(super) fn crc32c(&self) -> u32 {
        0
    }

    pub(super) fn parts(&self, _head: v1::SnapshotHead, _taken: Arc<AtomicU64>) -> SnapshotParts {
        Box::pin(futures_util::stream::empty())
    }
}

pub(super) async fn build_snapshot<R: AsyncRuntime>(
    offload: &Offload,
    _files: &Arc<SnapshotFiles>,
    _meta: &RaftSnapshotMeta,
    frozen: Arc<BookSnapshot>,
) -> io::Result<SnapshotFile> {
    offload
        .run::<R, _>(move || {
            let _ = frozen.records().count();
            unsupported()
        })
        .await
}

pub(super) async fn load_snapshot<R: AsyncRuntime>(
    offload: &Offload,
    _file: &SnapshotFile,
) -> io::Result<Book> {
    offload.run::<R, _>(unsupported).await
}

pub(super) async fn receive_snapshot(
    _files: &SnapshotFiles,
    _meta: &RaftSnapshotMeta,
    _head: &v1::SnapshotHead,
    _parts: SnapshotParts,
) -> Result<SnapshotFile, PeerError> {
    Err(PeerError::Malformed("unsupported".into()))
}
