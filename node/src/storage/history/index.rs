//! The index itself: one sled tree, changed by one batch for each entry of the log.

use std::path::{Path, PathBuf};

use sled::{Batch, Db, IVec};

use super::guard::{HistoryError, guarded, panic_if_asked};
use super::keys::{self, Place};
use super::record::HistoryRecord;
use super::thread::{HistoryBatch, HistoryConfig, RetainedPart};
use crate::storage::codec::Cursor;
use crate::storage::limits::{HISTORY_CACHE_BYTES, HISTORY_REMOVALS_PER_BATCH};

/// Raised whenever keys, facts or bodies change their form: an index of another version is dropped.
const VERSION: u8 = 3;

/// What the index knows of itself, written with every batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meta {
    /// The disk whose node's history it is.
    pub(super) disk_id: [u8; 16],
    /// The last log index whose effects are in.
    pub(super) applied_index: u64,
    /// Everything but statements from this revision on is in; 0: nothing is known to be.
    pub(super) complete_from_revision: u64,
    /// Every statement from this revision on is in; 0: nothing is known to be.
    pub(super) statements_from_revision: u64,
    /// The last revision that is in.
    pub(super) indexed_revision: u64,
    /// Bytes of keys and values of all records.
    pub(super) bytes: u64,
    /// Book time of the last batch, ms.
    pub(super) clock_ms: u64,
}

impl Meta {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.disk_id);
        let numbers = [
            self.applied_index,
            self.complete_from_revision,
            self.statements_from_revision,
            self.indexed_revision,
            self.bytes,
            self.clock_ms,
        ];
        numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        if cursor.u8()? != VERSION {
            return None;
        }
        let meta = Self {
            disk_id: cursor.array()?,
            applied_index: cursor.u64()?,
            complete_from_revision: cursor.u64()?,
            statements_from_revision: cursor.u64()?,
            indexed_revision: cursor.u64()?,
            bytes: cursor.u64()?,
            clock_ms: cursor.u64()?,
        };
        cursor.is_empty().then_some(meta)
    }
}

pub(super) struct Index {
    db: Db,
    pub(super) meta: Meta,
}

/// Files and markers of an index.
pub(super) struct Paths {
    pub(super) dir: PathBuf,
    pub(super) db: PathBuf,
    /// Stands while the index is opened and checked.
    pub(super) opening: PathBuf,
    /// Left by the panic hook.
    pub(super) suspect: PathBuf,
}

impl Paths {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            db: dir.join("db"),
            opening: dir.join("opening"),
            suspect: dir.join("suspect"),
        }
    }

    /// Removes the index and its markers.
    pub(super) fn drop_index(&self) -> Result<(), HistoryError> {
        if self.db.exists() {
            std::fs::remove_dir_all(&self.db)?;
        }
        for marker in [&self.opening, &self.suspect] {
            if marker.exists() {
                std::fs::remove_file(marker)?;
            }
        }
        Ok(())
    }
}

fn failed(what: &str) -> HistoryError {
    HistoryError::Failed(what.to_owned())
}

impl Index {
    /// Opens and checks the index of a disk, or makes it. Any error means: drop it.
    pub(super) fn open(paths: &Paths, disk_id: [u8; 16]) -> Result<Self, HistoryError> {
        if paths.opening.exists() {
            return Err(failed("the process ended while it was opened"));
        }
        if paths.suspect.exists() {
            return Err(failed("sled panicked"));
        }
        std::fs::create_dir_all(&paths.dir)?;
        std::fs::write(&paths.opening, b"opening\n")?;
        std::fs::File::open(&paths.dir)?.sync_all()?;
        let existed = paths.db.exists();
        let index = guarded(|| {
            let db = sled::Config::new()
                .path(&paths.db)
                .cache_capacity(HISTORY_CACHE_BYTES)
                .flush_every_ms(Some(1_000))
                .open()?;
            let mut index = Self { db, meta: Meta { disk_id, ..Meta::default() } };
            index.check(existed)?;
            Ok(index)
        })?;
        std::fs::remove_file(&paths.opening)?;
        Ok(index)
    }

    /// Reads everything once, if there was anything: each record must be whole, in its place, and found by its keys, and the sums must agree.
    fn check(&mut self, existed: bool) -> Result<(), HistoryError> {
        let Some(meta) = self.db.get(keys::META)? else {
            // sled answers some damage by an empty database and no error.
            return if existed { Err(failed("everything in it is gone")) } else { Ok(()) };
        };
        let meta = Meta::decode(&meta).ok_or_else(|| failed("its facts cannot be read"))?;
        if meta.disk_id != self.meta.disk_id {
            return Err(failed("it is of another disk"));
        }
        self.meta = meta;
        let mut bytes = 0;
        let mut keys_expected = 1;
        for item in self.db.scan_prefix(keys::RECORDS) {
            let (key, value) = item?;
            let record = HistoryRecord::decode(&value).map_err(failed)?;
            let found = Entry::of(&record, &key, &value).ok_or_else(|| failed("a key has a wrong length"))?;
            if key.get(1..9) != Some(record.revision.to_be_bytes().as_slice()) {
                return Err(failed("a record is out of its place"));
            }
            if self.db.get(&found.identity)?.as_deref() != key.get(1..) {
                return Err(failed("a record is not found by its identity"));
            }
            if let Some(tenant) = &found.tenant
                && self.db.get(tenant)?.is_none()
            {
                return Err(failed("a record is not found by its tenant"));
            }
            bytes += found.bytes;
            keys_expected += 2 + u64::from(found.tenant.is_some());
        }
        if bytes != self.meta.bytes || keys_expected != self.db.len() as u64 {
            return Err(failed("records are missing"));
        }
        Ok(())
    }

    /// Takes one batch, and lets old records go. One that was taken before changes nothing.
    /// False: between what was in and this batch something is missing.
    pub(super) fn take(
        &mut self,
        batch: &HistoryBatch,
        config: &HistoryConfig,
    ) -> Result<bool, HistoryError> {
        let mut meta = self.meta;
        if meta.applied_index != 0 && batch.index <= meta.applied_index {
            return Ok(true);
        }
        let first_revision = batch.first_revision.max(1);
        let began = meta.complete_from_revision != 0;
        let continues = batch.since_index <= meta.applied_index
            || began && first_revision <= meta.indexed_revision.saturating_add(1);
        if !began || !continues {
            meta.complete_from_revision = first_revision;
            meta.statements_from_revision = first_revision;
        }
        advance(&mut meta, batch);
        self.write(&batch.records, Place { revision: 0, index: batch.index, number: 0 }, meta, config)?;
        Ok(continues)
    }

    /// Takes a part of what the book still knows. Only with the last one does the index say what it is complete from:
    /// if that never comes, the records stay, and come again.
    pub(super) fn take_retained(
        &mut self,
        part: &RetainedPart,
        config: &HistoryConfig,
    ) -> Result<(), HistoryError> {
        let mut meta = self.meta;
        if part.is_last {
            let first_revision = part.batch.first_revision.max(1);
            let joins =
                meta.complete_from_revision != 0 && first_revision <= meta.indexed_revision.saturating_add(1);
            meta.complete_from_revision =
                if joins { meta.complete_from_revision.min(first_revision) } else { first_revision };
            // The book tells no statements.
            meta.statements_from_revision = part.batch.last_revision.saturating_add(1);
            advance(&mut meta, &part.batch);
        }
        let first = Place { revision: 0, index: part.batch.index, number: part.first_number };
        self.write(&part.batch.records, first, meta, config)
    }

    /// Adds records, the first one's place having the log index and the number of `first`, lets old ones go, and
    /// keeps `meta`: all or nothing.
    fn write(
        &mut self,
        records: &[HistoryRecord],
        first: Place,
        mut meta: Meta,
        config: &HistoryConfig,
    ) -> Result<(), HistoryError> {
        let mut changes = Batch::default();
        let added = self.add(records, first, &mut meta, &mut changes)?;
        self.remove_old(config, added + HISTORY_REMOVALS_PER_BATCH, &mut meta, &mut changes)?;
        changes.insert(keys::META, meta.encode());
        guarded(|| {
            self.db.apply_batch(changes)?;
            panic_if_asked(records);
            Ok(())
        })?;
        self.meta = meta;
        Ok(())
    }

    fn add(
        &self,
        records: &[HistoryRecord],
        first: Place,
        meta: &mut Meta,
        changes: &mut Batch,
    ) -> Result<usize, HistoryError> {
        let mut added = 0;
        let mut seen = std::collections::BTreeSet::new();
        for (number, record) in (first.number..).zip(records) {
            let Some(value) = record.encode() else {
                tracing::warn!(revision = record.revision, "a record is too large for the history index");
                continue;
            };
            let place = Place { revision: record.revision, number, ..first };
            let key = keys::record(&place.bytes());
            let Some(entry) = Entry::of(record, &key, &value) else { continue };
            let known = guarded(|| Ok(self.db.contains_key(&entry.identity)?))?;
            if known || !seen.insert(entry.identity.clone()) {
                continue;
            }
            changes.insert(entry.identity, &place.bytes());
            if let Some(tenant) = entry.tenant {
                changes.insert(tenant, &record.at_ms.to_be_bytes());
            }
            changes.insert(key, value);
            meta.bytes += entry.bytes;
            added += 1;
        }
        Ok(added)
    }

    /// Removes the oldest records while they are too old or too many.
    fn remove_old(
        &self,
        config: &HistoryConfig,
        removals_max: usize,
        meta: &mut Meta,
        changes: &mut Batch,
    ) -> Result<(), HistoryError> {
        let oldest_ms = meta.clock_ms.saturating_sub(config.retention_ms);
        let oldest = guarded(|| {
            let mut oldest = Vec::new();
            let mut bytes = meta.bytes;
            for item in self.db.scan_prefix(keys::RECORDS).take(removals_max) {
                let (key, value) = item?;
                let record = HistoryRecord::decode(&value).map_err(failed)?;
                if bytes <= config.bytes_max && record.at_ms >= oldest_ms {
                    break;
                }
                let entry =
                    Entry::of(&record, &key, &value).ok_or_else(|| failed("a key has a wrong length"))?;
                bytes = bytes.saturating_sub(entry.bytes);
                oldest.push((key, record.revision, entry));
            }
            Ok(oldest)
        })?;
        for (key, revision, entry) in oldest {
            changes.remove(entry.identity);
            if let Some(tenant) = entry.tenant {
                changes.remove(tenant);
            }
            changes.remove(key);
            meta.bytes = meta.bytes.saturating_sub(entry.bytes);
            for from_revision in [&mut meta.complete_from_revision, &mut meta.statements_from_revision] {
                // What is not known to be complete from anywhere does not become so by losing more.
                if *from_revision != 0 {
                    *from_revision = (*from_revision).max(revision + 1);
                }
            }
        }
        Ok(())
    }

    pub(super) fn by_identity(&self, identity: &[u8]) -> Result<Option<HistoryRecord>, HistoryError> {
        guarded(|| self.db.get(identity)?.map(|place| self.load(&place)).transpose())
    }

    /// Records of a tenant in order, from a revision and an instant on; one more than asked tells of more.
    pub(super) fn by_tenant(
        &self,
        tenant: &str,
        from_revision: u64,
        since_ms: u64,
        records_max: usize,
    ) -> Result<Vec<HistoryRecord>, HistoryError> {
        let prefix = keys::tenant(tenant);
        let mut from = prefix.clone();
        from.extend_from_slice(&from_revision.to_be_bytes());
        guarded(|| {
            let mut records = Vec::new();
            for item in self.db.range(from..) {
                let (key, at_ms) = item?;
                let Some(place) = key.strip_prefix(prefix.as_slice()) else { break };
                if place.len() != keys::PLACE_BYTES || at_ms.as_ref() < since_ms.to_be_bytes().as_slice() {
                    continue;
                }
                records.push(self.load(place)?);
                if records.len() > records_max {
                    break;
                }
            }
            Ok(records)
        })
    }

    fn load(&self, place: &[u8]) -> Result<HistoryRecord, HistoryError> {
        let value: IVec =
            self.db.get(keys::record(place))?.ok_or_else(|| failed("a key leads to no record"))?;
        HistoryRecord::decode(&value).map_err(failed)
    }

    /// Lets the operating system have what is in memory. Not durable, and it need not be.
    pub(super) fn flush(&self) -> Result<(), HistoryError> {
        guarded(|| Ok(self.db.flush().map(|_| ())?))
    }
}

/// What a batch's end brings `meta` to.
fn advance(meta: &mut Meta, batch: &HistoryBatch) {
    meta.applied_index = meta.applied_index.max(batch.index);
    meta.indexed_revision = meta.indexed_revision.max(batch.last_revision);
    meta.clock_ms = meta.clock_ms.max(batch.clock_ms);
}

/// The keys that lead to a record, and what it takes in all.
struct Entry {
    identity: Vec<u8>,
    tenant: Option<Vec<u8>>,
    bytes: u64,
}

impl Entry {
    fn of(record: &HistoryRecord, key: &[u8], value: &[u8]) -> Option<Self> {
        let place = key.get(1..).filter(|place| place.len() == keys::PLACE_BYTES)?;
        let identity = keys::identity(&record.id);
        let tenant = keys::tenant_place(record, place);
        let tenant_bytes = tenant.as_ref().map_or(0, |key| key.len() + 8);
        let bytes = key.len() + value.len() + identity.len() + place.len() + tenant_bytes;
        Some(Self { identity, tenant, bytes: bytes as u64 })
    }
}
