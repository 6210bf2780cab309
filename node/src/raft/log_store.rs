//! openraft's log storage over the node's segmented log.
//!
//! The log keeps bytes; here entries become records and back. Appending returns at once, and openraft is
//! told by the completion, from the sync worker, when it is durable. A vote waits for its completion:
//! it queues behind the appends before it and shares their sync.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};

use bytes::Bytes;
use holdfast_proto::v1;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::vote::RaftLeaderId;
use openraft::{EntryPayload, LogState, RaftLogReader};
use openraft_rt::{AsyncRuntime, Oneshot, OneshotSender};
use prost::Message;

use super::limits::APPEND_BYTES_MAX;
use super::types::{Payload, RaftEntry, RaftLogId, RaftVote, TypeConfig, log_id};
use super::wire;
use crate::storage::log::{Done, EntryKind, Log, LogEntry, LogPosition, LogVote};

/// The log as openraft uses it. Clones share it; each reader of openraft is one.
pub struct LogStore<R> {
    log: Log,
    runtime: std::marker::PhantomData<fn() -> R>,
}

impl<R> LogStore<R> {
    /// Over an opened log. Somebody drives its sync worker.
    pub fn new(log: Log) -> Self {
        LogStore { log, runtime: std::marker::PhantomData }
    }
}

impl<R> Clone for LogStore<R> {
    fn clone(&self) -> Self {
        LogStore::new(self.log.clone())
    }
}

fn position(id: &RaftLogId) -> LogPosition {
    // With one leader a term, openraft's log ids do not say which node it was.
    LogPosition { term: id.leader_id.term, leader_node: 0, index: id.index }
}

fn id_at(position: LogPosition) -> RaftLogId {
    log_id(position.term, position.index)
}

fn to_record(entry: RaftEntry) -> LogEntry {
    let (kind, payload) = match entry.payload {
        EntryPayload::Blank => (EntryKind::Blank, Bytes::new()),
        EntryPayload::Normal(Payload(bytes)) => (EntryKind::Normal, bytes),
        EntryPayload::Membership(m) => {
            (EntryKind::Membership, Bytes::from(wire::encode_membership(&m).encode_to_vec()))
        }
    };
    LogEntry { position: position(&entry.log_id), kind, payload }
}

fn from_record(record: LogEntry) -> io::Result<RaftEntry> {
    let payload = match record.kind {
        EntryKind::Blank => EntryPayload::Blank,
        EntryKind::Normal => EntryPayload::Normal(Payload(record.payload)),
        EntryKind::Membership => {
            let unreadable = |e: String| {
                let at = record.position.index;
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("the membership at log index {at} is unreadable: {e}"),
                )
            };
            let wire =
                v1::Membership::decode(record.payload.clone()).map_err(|e| unreadable(e.to_string()))?;
            EntryPayload::Membership(wire::decode_membership(wire).map_err(|e| unreadable(e.to_string()))?)
        }
    };
    Ok(RaftEntry { log_id: id_at(record.position), payload })
}

impl<R: AsyncRuntime> LogStore<R> {
    /// Calls `change` with a completion and waits for it.
    async fn durable(&self, change: impl FnOnce(Option<Done>) -> io::Result<()>) -> io::Result<()> {
        let (tx, rx) = R::Oneshot::channel::<io::Result<()>>();
        change(Some(Box::new(move |result| {
            // Nobody waits any more: the node is stopping.
            let _ = OneshotSender::send(tx, result);
        })))?;
        rx.await.unwrap_or_else(|_| Err(io::Error::other("the log was closed")))
    }
}

impl<R: AsyncRuntime> RaftLogReader<TypeConfig<R>> for LogStore<R> {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<RaftEntry>, io::Error> {
        let start = match range.start_bound() {
            Bound::Included(at) => *at,
            Bound::Excluded(at) => at.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(at) => at.saturating_add(1),
            Bound::Excluded(at) => *at,
            Bound::Unbounded => u64::MAX,
        };
        self.log.read(start..end)?.into_iter().map(from_record).collect()
    }

    async fn read_vote(&mut self) -> Result<Option<RaftVote>, io::Error> {
        let vote = |v: LogVote| {
            if v.committed { RaftVote::new_committed(v.term, v.node) } else { RaftVote::new(v.term, v.node) }
        };
        Ok(self.log.vote()?.map(vote))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<RaftEntry>, io::Error> {
        let found = self.log.read_limited(start..end, APPEND_BYTES_MAX)?;
        // A stream to a follower that was away may go on where it was while the log is purged beyond. With nothing
        // to send openraft says so, and is told to send a snapshot; the entries behind the hole it would send as if
        // there were none.
        if found.first().is_some_and(|first| first.index() != start) {
            return Ok(Vec::new());
        }
        found.into_iter().map(from_record).collect()
    }
}

impl<R: AsyncRuntime> RaftLogStorage<TypeConfig<R>> for LogStore<R> {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig<R>>, io::Error> {
        let bounds = self.log.bounds()?;
        Ok(LogState { last_purged_log_id: bounds.purged.map(id_at), last_log_id: bounds.last.map(id_at) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &RaftVote) -> Result<(), io::Error> {
        let vote = LogVote {
            term: vote.leader_id.term(),
            node: *vote.leader_id.node_id(),
            committed: vote.committed,
        };
        self.durable(|done| self.log.save_vote(vote, done)).await
    }

    async fn save_committed(&mut self, committed: Option<RaftLogId>) -> Result<(), io::Error> {
        self.log.save_committed(committed.as_ref().map(position))
    }

    async fn read_committed(&mut self) -> Result<Option<RaftLogId>, io::Error> {
        Ok(self.log.committed()?.map(id_at))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig<R>>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = RaftEntry> + Send,
        I::IntoIter: Send,
    {
        let records = entries.into_iter().map(to_record).collect();
        self.log.append(records, Some(Box::new(move |result| callback.io_completed(result))))
    }

    async fn truncate_after(&mut self, last_log_id: Option<RaftLogId>) -> Result<(), io::Error> {
        // A leader that asks for this was elected without an entry that a quorum has: some member lost what it
        // had acknowledged. To obey would give up an acknowledged command here too, silently.
        let keep = last_log_id.as_ref().map(|id| id.index);
        if let Some(committed) = self.log.committed()?.filter(|committed| Some(committed.index) > keep) {
            return Err(io::Error::other(format!(
                "the leader asks this node to give up its log after entry {keep:?}, but entry {} was committed: another \
                 member has lost what it acknowledged. This node stops with its log as it is. Find the member \
                 whose disk lost data, and replace it under a new id",
                committed.index
            )));
        }
        // Rare, and what follows relies on it: wait until it is on disk.
        self.durable(|done| self.log.truncate_after(last_log_id.as_ref().map(position), done)).await
    }

    async fn purge(&mut self, upto: RaftLogId) -> Result<(), io::Error> {
        // Nothing waits for space to come back; the purge point goes to disk with the next group.
        self.log.purge(position(&upto), None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use openraft_rt_sim::SimRuntime;

    use super::*;
    use crate::storage::SimDisk;
    use crate::storage::log::{LogConfig, SyncWorker};

    fn at(index: u64) -> LogPosition {
        LogPosition { term: 1, leader_node: 0, index }
    }

    /// A log with the entries 0 to 9.
    fn ten_entries() -> (Log, SyncWorker) {
        let (log, worker) = Log::open(Arc::new(SimDisk::new()), LogConfig::default()).unwrap();
        let entry = |index| LogEntry { position: at(index), kind: EntryKind::Blank, payload: Bytes::new() };
        log.append((0..10).map(entry).collect(), None).unwrap();
        (log, worker)
    }

    /// openraft sends what it is given right behind what the follower has, without a look (in release builds).
    #[test]
    fn a_read_for_replication_never_begins_behind_a_hole() {
        let (log, mut worker) = ten_entries();
        log.purge(at(4), None).unwrap();
        worker.run_once().unwrap();
        let mut store = LogStore::<SimRuntime>::new(log);
        let mut read = |start, end| {
            let found = SimRuntime::with_seed(0).block_on(store.limited_get_log_entries(start, end));
            found.unwrap().iter().map(|entry| entry.log_id.index).collect::<Vec<_>>()
        };
        assert_eq!(read(5, 8), [5, 6, 7]);
        assert_eq!(read(4, 8), [0; 0]);
        assert_eq!(read(0, 8), [0; 0]);
        worker.close().unwrap();
    }

    /// Another member lost what it had acknowledged, and a leader was elected that lacks what this one has applied.
    #[test]
    fn what_was_committed_is_never_given_up() {
        let (log, mut worker) = ten_entries();
        log.save_committed(Some(at(5))).unwrap();
        worker.run_once().unwrap();
        let mut store = LogStore::<SimRuntime>::new(log.clone());
        let truncated = store.truncate_after(Some(log_id(1, 4)));
        let error = SimRuntime::with_seed(0).block_on(truncated).unwrap_err().to_string();
        assert!(error.contains("entry 5 was committed"), "{error}");
        assert_eq!(log.bounds().unwrap().last, Some(at(9)));
        worker.close().unwrap();
    }
}
