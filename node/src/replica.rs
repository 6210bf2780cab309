//! The replica: the book, what feeds it, and who may look at it.
//!
//! One task applies entries, in log order; queries read between entries. Apply takes the write lock
//! once per entry (about 1 µs a command), so that a reader waits for one entry at most.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use holdfast_ledger::{Answer, Book, BookSnapshot, Command, Effect, EntryHeader};
use holdfast_proto::log::{EntryError, decode_entry};

use crate::raft::limits::{DIGEST_INTERVAL, DIGESTS_KEPT};

/// What applying one entry gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEntry {
    /// Log index of the entry.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// The book's revision after the first command; each further one has the next.
    pub first_revision: u64,
    /// The book's clock after the entry, ms.
    pub clock_ms: u64,
    /// One answer for each command, in order.
    pub answers: Vec<Answer>,
}

/// The book's digest at one log index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestAt {
    /// Log index of the entry it was taken after.
    pub index: u64,
    /// The revision there.
    pub revision: u64,
    /// The digest.
    pub digest: u128,
}

/// One entry as it was applied, for those who check the cluster from outside.
#[derive(Debug)]
pub struct AppliedRecord<'a> {
    /// Log index of the entry.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// The book's revision before it.
    pub revision_before: u64,
    /// The book's digest after it.
    pub digest: u128,
    /// The entry's payload, as it stands in the log.
    pub payload: &'a Bytes,
}

/// A look at a replica's book for whoever cannot hold the replica.
#[derive(Clone)]
pub struct BookView(Arc<RwLock<Book>>);

impl BookView {
    /// A frozen copy of the book between two entries; takes no longer for a large one. As [`Replica::begin_snapshot`].
    pub fn freeze(&self) -> BookSnapshot {
        self.0.write().unwrap_or_else(PoisonError::into_inner).snapshot()
    }
}

/// Takes what the book says has ended, in order. Called by the apply task: it must not wait.
pub trait EffectSink: Send + Sync + 'static {
    /// Called once, before anything else: whose effects they are.
    fn attached(&self, _book: BookView) {}
    /// Effects of the entry at `index`. Also called, with none, for entries that had no effect.
    fn entry_applied(&self, index: u64, effects: Vec<Effect>);
    /// The book was replaced by a snapshot taken at `index`: what lies between is not going to come.
    fn restored(&self, index: u64);
    /// An entry was applied, whatever its effects. Nobody can have seen its answers or the book after it
    /// yet, so whoever keeps these has every entry that anybody was told of. Replayed entries come again.
    fn recorded(&self, _record: &AppliedRecord<'_>) {}
}

/// Drops every effect: for tests and for nodes without a history index.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEffects;

impl EffectSink for NoEffects {
    fn entry_applied(&self, _index: u64, _effects: Vec<Effect>) {}
    fn restored(&self, _index: u64) {}
}

/// The book with its readers' side.
pub struct Replica {
    book: Arc<RwLock<Book>>,
    digests: Mutex<VecDeque<DigestAt>>,
    effects: Box<dyn EffectSink>,
    revision: AtomicU64,
    generation: AtomicU64,
    clock_ms: AtomicU64,
    rules_version: AtomicU32,
}

impl Replica {
    /// A replica of the empty book.
    pub fn new(effects: Box<dyn EffectSink>) -> Self {
        let book = Arc::new(RwLock::new(Book::new()));
        effects.attached(BookView(Arc::clone(&book)));
        let replica = Replica {
            book,
            digests: Mutex::new(VecDeque::with_capacity(DIGESTS_KEPT)),
            effects,
            revision: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            clock_ms: AtomicU64::new(0),
            rules_version: AtomicU32::new(0),
        };
        replica.read(|book| replica.publish(book));
        replica
    }

    /// Looks at the book as it stands between two entries. Keep it short: apply waits meanwhile.
    pub fn read<T>(&self, look: impl FnOnce(&Book) -> T) -> T {
        look(&self.book.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The revision after the last entry that was applied here.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// The generation in force here.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The book's clock here, ms.
    pub fn clock_ms(&self) -> u64 {
        self.clock_ms.load(Ordering::Acquire)
    }

    /// The rules version in force here.
    pub fn rules_version(&self) -> u32 {
        self.rules_version.load(Ordering::Acquire)
    }

    /// When the leader should propose a tick at the latest, ms. Looked up when it is asked for and not with
    /// every entry: it goes through timers that have become stale, which under load are nearly all.
    pub fn next_timer_ms(&self) -> Option<u64> {
        self.read(Book::next_timer_ms)
    }

    /// The digests kept, oldest first.
    pub fn digests(&self) -> Vec<DigestAt> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Applies a committed entry whose answers somebody waits for.
    ///
    /// # Errors
    /// The payload cannot be read by this version. Nothing is applied, and nothing may be applied
    /// afterwards: the node stops, since its book would differ from the others'.
    pub fn apply(&self, index: u64, term: u64, payload: Bytes) -> Result<AppliedEntry, EntryError> {
        self.apply_with(index, term, payload, apply_to)
    }

    /// Applies a committed entry whose answers nobody waits for: a follower's, or a replayed one. Gives the
    /// number of its commands.
    ///
    /// # Errors
    /// As [`Replica::apply`].
    pub fn apply_quietly(&self, index: u64, term: u64, payload: Bytes) -> Result<usize, EntryError> {
        self.apply_with(index, term, payload, |book, header, commands| {
            book.apply_entry_quietly(header, commands);
            commands.len()
        })
    }

    fn apply_with<T>(
        &self,
        index: u64,
        term: u64,
        payload: Bytes,
        apply: impl FnOnce(&mut Book, &EntryHeader, &[Command]) -> T,
    ) -> Result<T, EntryError> {
        let (header, commands) = decode_entry(payload.clone(), index, term)?;
        let (applied, effects) = {
            let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
            let revision_before = book.revision();
            let applied = apply(&mut book, &header, &commands);
            let digest = book.digest();
            self.effects.recorded(&AppliedRecord { index, term, revision_before, digest, payload: &payload });
            self.publish(&book);
            if index.is_multiple_of(DIGEST_INTERVAL) {
                self.keep_digest(DigestAt { index, revision: book.revision(), digest: book.digest() });
            }
            (applied, book.drain_effects())
        };
        self.effects.entry_applied(index, effects);
        Ok(applied)
    }

    /// A frozen copy of the book as it is now; takes no longer for a large one.
    pub fn begin_snapshot(&self) -> BookSnapshot {
        // For writing, though no row changes: the book's tables begin to share their rows.
        self.book.write().unwrap_or_else(PoisonError::into_inner).snapshot()
    }

    /// Puts `book` in place of the one held, taken at log index `index`.
    pub fn restore(&self, book: Book, index: u64) {
        {
            let mut held = self.book.write().unwrap_or_else(PoisonError::into_inner);
            *held = book;
            self.publish(&held);
        }
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.effects.restored(index);
    }

    fn publish(&self, book: &Book) {
        self.revision.store(book.revision(), Ordering::Release);
        self.generation.store(book.generation(), Ordering::Release);
        self.clock_ms.store(book.clock_ms(), Ordering::Release);
        self.rules_version.store(book.rules_version(), Ordering::Release);
    }

    fn keep_digest(&self, digest: DigestAt) {
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if digests.len() == DIGESTS_KEPT {
            digests.pop_front();
        }
        digests.push_back(digest);
    }
}

fn apply_to(book: &mut Book, header: &EntryHeader, commands: &[Command]) -> AppliedEntry {
    let first_revision = book.revision() + 1;
    let answers = book.apply_entry(header, commands);
    AppliedEntry {
        index: header.index,
        term: header.term,
        first_revision,
        clock_ms: book.clock_ms(),
        answers,
    }
}
