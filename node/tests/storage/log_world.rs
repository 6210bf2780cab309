//! A log on a simulated disk beside a naive model of it, and the rule that judges what a restart brings back.
//!
//! The rule: after any loss the log must be in the state that followed some number of the calls made, and that number
//! must be at least the number of calls whose completion said they were durable.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use holdfast_node::storage::log::{
    Done, EntryKind, Log, LogBounds, LogConfig, LogEntry, LogOpenError, LogPosition, LogVote, SyncWorker,
};
use holdfast_node::storage::sim_disk::{SimDisk, SplitMix};

pub fn position(term: u64, index: u64) -> LogPosition {
    LogPosition { term, leader_node: term % 3, index }
}

pub fn entry(term: u64, index: u64, bytes: usize) -> LogEntry {
    let kind = [EntryKind::Normal, EntryKind::Blank, EntryKind::Membership][(index % 3) as usize];
    let payload: Vec<u8> = (0..bytes).map(|nth| (index * 31 + term * 7 + nth as u64) as u8).collect();
    LogEntry { position: position(term, index), kind, payload: Bytes::from(payload) }
}

/// What a log should be, as simply as can be said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub entries: BTreeMap<u64, LogEntry>,
    pub vote: Option<LogVote>,
    pub purged: Option<LogPosition>,
}

impl Model {
    pub fn last(&self) -> Option<LogPosition> {
        self.entries.values().next_back().map(|entry| entry.position).or(self.purged)
    }

    pub fn next_index(&self) -> u64 {
        self.last().map_or(0, |last| last.index + 1)
    }

    /// What a log says of itself.
    pub fn of(log: &Log) -> Self {
        let LogBounds { purged, last } = log.bounds().unwrap();
        let entries: BTreeMap<u64, LogEntry> =
            log.read(0..u64::MAX).unwrap().into_iter().map(|entry| (entry.index(), entry)).collect();
        let model = Self { entries, vote: log.vote().unwrap(), purged };
        assert_eq!(model.last(), last, "the bounds speak of the entries that can be read");
        model
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    /// So many entries of so many bytes.
    Append(usize, usize),
    Vote,
    /// Void so many from the end.
    Truncate(u64),
    /// Purge so many from the front.
    Purge(u64),
    /// Purge to so far beyond the end.
    PurgeBeyond(u64),
    Commit,
    /// Write and sync what is queued.
    Run,
    /// Write what is queued, without a sync.
    Write,
}

pub struct World {
    pub disk: SimDisk,
    pub config: LogConfig,
    pub log: Log,
    pub worker: SyncWorker,
    /// The state after each number of calls.
    pub states: Vec<Model>,
    /// Calls whose completion came, in order.
    pub acked: Arc<AtomicUsize>,
    failed: Arc<Mutex<Option<String>>>,
    pub term: u64,
    committed: Vec<Option<LogPosition>>,
}

pub fn small_config() -> LogConfig {
    LogConfig { segment_bytes: 2_000, cache_bytes: 500, ..LogConfig::default() }
}

impl World {
    pub fn open(disk: SimDisk, config: LogConfig) -> Result<Self, LogOpenError> {
        let (log, worker) = Log::open(Arc::new(disk.clone()), config.clone())?;
        let states = vec![Model::of(&log)];
        let committed = vec![log.committed().unwrap()];
        let term =
            states[0].last().map_or(1, |last| last.term).max(states[0].vote.map_or(1, |vote| vote.term));
        Ok(Self {
            disk,
            config,
            log,
            worker,
            states,
            acked: Arc::default(),
            failed: Arc::default(),
            term,
            committed,
        })
    }

    pub fn model(&self) -> &Model {
        self.states.last().unwrap()
    }

    fn done(&self) -> Option<Done> {
        let number = self.states.len();
        let (acked, failed) = (Arc::clone(&self.acked), Arc::clone(&self.failed));
        Some(Box::new(move |result| match result {
            Ok(()) => {
                let before = acked.swap(number, Ordering::SeqCst);
                assert_eq!(before + 1, number, "completions come in the order of the calls");
                assert!(failed.lock().unwrap().is_none(), "no completion succeeds after one failed");
            }
            Err(error) => *failed.lock().unwrap() = Some(error.to_string()),
        }))
    }

    /// Makes one step; an error is the disk's.
    pub fn step(&mut self, step: &Step) -> std::io::Result<()> {
        let mut next = self.model().clone();
        match step {
            Step::Append(count, bytes) => {
                let from = next.next_index();
                let entries: Vec<LogEntry> =
                    (from..from + *count as u64).map(|index| entry(self.term, index, *bytes)).collect();
                next.entries.extend(entries.iter().map(|entry| (entry.index(), entry.clone())));
                self.log.append(entries, self.done())?;
            }
            Step::Vote => {
                self.term += 1;
                let vote =
                    LogVote { term: self.term, node: self.term % 3, committed: self.term.is_multiple_of(2) };
                next.vote = Some(vote);
                self.log.save_vote(vote, self.done())?;
            }
            Step::Truncate(count) => {
                self.term += 1;
                for _ in 0..*count {
                    next.entries.pop_last();
                }
                self.log.truncate_after(next.last(), self.done())?;
            }
            Step::Purge(count) => {
                for _ in 0..*count {
                    if let Some((_, entry)) = next.entries.pop_first() {
                        next.purged = Some(entry.position);
                    }
                }
                let Some(purged) = next.purged else { return Ok(()) };
                self.log.purge(purged, self.done())?;
            }
            Step::PurgeBeyond(count) => {
                let purged = position(self.term, next.next_index() + count);
                next.entries.clear();
                next.purged = Some(purged);
                self.log.purge(purged, self.done())?;
            }
            Step::Commit => {
                self.committed.push(next.last());
                self.log.save_committed(next.last())?;
                return Ok(());
            }
            Step::Run => return self.worker.run_once().map(|_| ()),
            Step::Write => return self.worker.write_group().map(|_| ()),
        }
        self.states.push(next);
        Ok(())
    }

    /// Makes the steps until the disk fails.
    pub fn run(&mut self, steps: &[Step]) -> std::io::Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    /// What can be read now is what the model holds.
    pub fn check_reads(&self, random: &mut SplitMix) {
        let model = self.model();
        assert_eq!(&Model::of(&self.log), model);
        let next = model.next_index();
        for _ in 0..4 {
            let start = random.below(next + 2);
            let end = start + random.below(next + 3 - start.min(next + 2));
            let expected: Vec<LogEntry> =
                model.entries.range(start..end.max(start)).map(|(_, entry)| entry.clone()).collect();
            assert_eq!(self.log.read(start..end).unwrap(), expected, "{start}..{end}");
            let bytes_max = random.below(2_000) as usize;
            let limited = self.log.read_limited(start..end, bytes_max).unwrap();
            assert_eq!(limited[..], expected[..limited.len()], "{start}..{end} within {bytes_max}");
            assert_eq!(limited.is_empty(), expected.is_empty());
            let bytes: usize = limited.iter().map(|entry| entry.payload.len()).sum();
            assert!(limited.len() <= 1 || bytes <= bytes_max);
        }
    }

    /// Ends this life. What the next one finds must follow from it.
    pub fn end(self) -> Life {
        let acked = self.acked.load(Ordering::SeqCst);
        Life { disk: self.disk, config: self.config, states: self.states, acked, committed: self.committed }
    }
}

/// What a life of a node leaves to be judged by.
pub struct Life {
    pub disk: SimDisk,
    pub config: LogConfig,
    pub states: Vec<Model>,
    pub acked: usize,
    committed: Vec<Option<LogPosition>>,
}

impl Life {
    /// Opens the log again and judges it.
    pub fn reopen(&self, context: &str) -> World {
        let world = World::open(self.disk.clone(), self.config.clone())
            .unwrap_or_else(|error| panic!("{context}: does not open: {error}"));
        self.judge(&world, context);
        world
    }

    pub fn judge(&self, world: &World, context: &str) {
        let found = world.model();
        assert!(
            self.states[self.acked..].contains(found),
            "{context}: {} calls made, {} acknowledged, but the log came back as {found:#?}; acknowledged was {:#?}",
            self.states.len() - 1,
            self.acked,
            self.states[self.acked]
        );
        let committed = world.committed[0];
        assert!(
            committed.is_none() || self.committed.contains(&committed),
            "{context}: committed {committed:?} was never saved"
        );
        assert!(committed <= found.last(), "{context}: committed {committed:?} beyond the end");
    }
}
