//! openraft's state machine over [`Replica`]: applies entries in a loop that never waits.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use holdfast_proto::log::EntryError;
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, RaftSnapshotBuilder};
use openraft_rt::AsyncRuntime;

use super::metrics::Metrics;
use super::snapshot::{Offload, SnapshotFile, SnapshotFiles, build_snapshot, load_snapshot};
use super::types::{
    Applied, CommittedLeader, Member, NodeId, Payload, RaftLogId, RaftSnapshotMeta, RaftStoredMembership,
    TypeConfig,
};
use crate::replica::{AppliedEntry, Replica};

type Snapshot = openraft::Snapshot<CommittedLeader, NodeId, Member, SnapshotFile>;

/// The replica as openraft drives it.
pub struct StateMachine<R> {
    replica: Arc<Replica>,
    files: Arc<SnapshotFiles>,
    offload: Offload,
    metrics: Arc<Metrics>,
    last_applied: Option<RaftLogId>,
    membership: RaftStoredMembership,
    runtime: std::marker::PhantomData<fn() -> R>,
}

impl<R> StateMachine<R> {
    /// Over an empty replica; openraft restores the newest snapshot and replays the log behind it.
    pub fn new(
        replica: Arc<Replica>,
        files: Arc<SnapshotFiles>,
        offload: Offload,
        metrics: Arc<Metrics>,
    ) -> Self {
        StateMachine {
            replica,
            files,
            offload,
            metrics,
            last_applied: None,
            membership: RaftStoredMembership::default(),
            runtime: std::marker::PhantomData,
        }
    }

    /// Applies an entry of commands; gives their answers if somebody is to be told.
    fn apply_commands(&self, at: &RaftLogId, bytes: Bytes, answer: bool) -> io::Result<Option<AppliedEntry>> {
        let (index, term, size) = (at.index, at.leader_id.term, bytes.len());
        let began = self.metrics.begin();
        let unreadable = |e: EntryError| {
            let what = format!(
                "log entry {index} cannot be applied: {e}. To skip it would make books differ: \
                 start a program at least as new as the one that wrote it"
            );
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        let (commands, applied) = match answer {
            true => {
                let applied = self.replica.apply(index, term, bytes).map_err(unreadable)?;
                (applied.answers.len(), Some(applied))
            }
            false => (self.replica.apply_quietly(index, term, bytes).map_err(unreadable)?, None),
        };
        self.metrics.applied(began, commands, size);
        Ok(applied)
    }

    fn meta(&self) -> RaftSnapshotMeta {
        RaftSnapshotMeta { last_log_id: self.last_applied, last_membership: self.membership.clone() }
    }
}

impl<R: AsyncRuntime> RaftStateMachine<TypeConfig<R>> for StateMachine<R> {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder<R>;

    async fn applied_state(&mut self) -> Result<(Option<RaftLogId>, RaftStoredMembership), io::Error> {
        Ok((self.last_applied, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig<R>>, io::Error>> + Unpin + Send,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let applied = match entry.payload {
                EntryPayload::Blank => Applied(None),
                EntryPayload::Membership(membership) => {
                    self.membership = RaftStoredMembership::new(Some(entry.log_id), membership);
                    Applied(None)
                }
                EntryPayload::Normal(Payload(bytes)) => {
                    Applied(self.apply_commands(&entry.log_id, bytes, responder.is_some())?)
                }
            };
            self.last_applied = Some(entry.log_id);
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self::SnapshotBuilder {
        SnapshotBuilder {
            frozen: Arc::new(self.replica.begin_snapshot()),
            meta: self.meta(),
            files: self.files.clone(),
            offload: self.offload.clone(),
            metrics: self.metrics.clone(),
            runtime: std::marker::PhantomData,
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &RaftSnapshotMeta,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        let book = load_snapshot::<R>(&self.offload, &snapshot).await?;
        self.files.adopt(snapshot, meta)?;
        self.replica.restore(book, meta.last_log_id.map_or(0, |id| id.index));
        self.last_applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.metrics.snapshot_installed();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.files.newest().map(|(meta, snapshot)| Snapshot { meta, snapshot }))
    }
}

/// A frozen book on its way to a file.
pub struct SnapshotBuilder<R> {
    frozen: Arc<holdfast_ledger::BookSnapshot>,
    meta: RaftSnapshotMeta,
    files: Arc<SnapshotFiles>,
    offload: Offload,
    metrics: Arc<Metrics>,
    runtime: std::marker::PhantomData<fn() -> R>,
}

impl<R: AsyncRuntime> RaftSnapshotBuilder<TypeConfig<R>> for SnapshotBuilder<R> {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let began = self.metrics.begin();
        let file = build_snapshot::<R>(&self.offload, &self.files, &self.meta, self.frozen.clone()).await?;
        self.files.keep(file.clone(), &self.meta);
        self.metrics.snapshot_built(began, file.bytes());
        Ok(Snapshot { meta: self.meta.clone(), snapshot: file })
    }
}
