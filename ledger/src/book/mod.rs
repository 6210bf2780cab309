//! The book.

use std::sync::Arc;

use crate::answer::{Answer, Receipt, Refusal};
use crate::command::{Command, EntryHeader, Reserve};
use crate::event::Effect;
use crate::ids::{ReservationId, TenantId, UserId};
use crate::plan::Calendar;
use crate::query::{AuditReport, Counts, PublishedPlan, QuotaLine, TenantVersion};
use crate::record::{Columns, Header, Record, RestoreError};

/// The whole state: a pure function of the commands applied so far.
#[derive(Debug, Default)]
pub struct Book {
    header: Header,
}

impl Book {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a log entry: moves the clock, takes the bounds in, does a bounded amount of due timer work.
    pub fn begin_entry(&mut self, header: &EntryHeader) {
        self.header.index = header.index;
        self.header.term = header.term;
        self.header.clock_ms = self.header.clock_ms.max(header.stamp_ms);
    }

    /// Applies one command of the entry that was begun.
    pub fn apply(&mut self, command: &Command) -> Answer {
        self.header.revision += 1;
        self.apply_command(command)
    }

    /// Ends the entry: hashes the rows it touched.
    pub fn end_entry(&mut self) {}

    /// Begins an entry, applies its commands and ends it.
    pub fn apply_entry(&mut self, header: &EntryHeader, commands: &[Command]) -> Vec<Answer> {
        self.begin_entry(header);
        let answers = commands.iter().map(|command| self.apply(command)).collect();
        self.end_entry();
        answers
    }

    /// Commands applied so far.
    pub fn revision(&self) -> u64 {
        self.header.revision
    }

    /// Book time, ms since the Unix epoch.
    pub fn clock_ms(&self) -> u64 {
        self.header.clock_ms
    }

    /// The digest of all rows, as of the last [`Book::end_entry`].
    pub fn digest(&self) -> u128 {
        0
    }

    /// Log index and term of the last entry.
    pub fn applied(&self) -> (u64, u64) {
        (self.header.index, self.header.term)
    }

    /// The generation in force; 0 before the first publish.
    pub fn generation(&self) -> u64 {
        self.header.generation
    }

    /// The rules version in force.
    pub fn rules_version(&self) -> u32 {
        self.header.rules_version
    }

    /// The plan in force.
    pub fn plan(&self) -> Option<&PublishedPlan> {
        None
    }

    /// The plan that was in force at a generation, if it is still kept.
    pub fn plan_at(&self, generation: u64) -> Option<&PublishedPlan> {
        let _ = generation;
        None
    }

    /// The plans that are still kept, oldest first.
    pub fn plans(&self) -> impl Iterator<Item = &PublishedPlan> {
        std::iter::empty()
    }

    /// The record that was set by command for a tenant, if one stands.
    pub fn tenant(&self, tenant: &TenantId) -> Option<&TenantVersion> {
        let _ = tenant;
        None
    }

    /// The records that were set by command and stand, by tenant.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantVersion> {
        std::iter::empty()
    }

    /// A reservation as it stands at max(book time, `at_ms`).
    pub fn reservation(&self, id: ReservationId, at_ms: u64) -> Option<Receipt> {
        let _ = (id, at_ms);
        None
    }

    /// Every tenant-level quota of a tenant, and the user-level ones of a user, by limit id, at max(book time, `at_ms`).
    pub fn quota(&self, tenant: &TenantId, user: Option<&UserId>, at_ms: u64) -> Vec<QuotaLine> {
        let _ = (tenant, user, at_ms);
        Vec::new()
    }

    /// The quotas of the global level, for operators, at max(book time, `at_ms`).
    pub fn quota_global(&self, at_ms: u64) -> Vec<QuotaLine> {
        let _ = at_ms;
        Vec::new()
    }

    /// What a reserve would be refused with at max(book time, `at_ms`). Changes nothing.
    pub fn preview(&self, reserve: &Reserve, at_ms: u64) -> Option<Refusal> {
        let _ = (reserve, at_ms);
        None
    }

    /// Checks every rule of the account equation over the whole book.
    pub fn audit(&self) -> AuditReport {
        AuditReport {
            ok: true,
            revision: self.revision(),
            digest: self.digest(),
            accounts: 0,
            open_reservations: 0,
            sums: [Columns::default(); 4],
            violations: Vec::new(),
        }
    }

    /// How many of everything the book holds.
    pub fn counts(&self) -> Counts {
        Counts::default()
    }

    /// When timer work is due next, ms; the leader proposes a tick at the latest then.
    pub fn next_timer_ms(&self) -> Option<u64> {
        None
    }

    /// The calendars of the plan in force whose bounds the leader computes, and until when they are known, ms.
    pub fn calendars(&self) -> impl Iterator<Item = (Arc<Calendar>, Option<u64>)> {
        std::iter::empty()
    }

    /// Takes what a history index should be told since the last call, in a deterministic order.
    pub fn drain_effects(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    /// The book as it stands, sharing its rows. Costs the number of segments, not of rows.
    pub fn snapshot(&self) -> BookSnapshot {
        BookSnapshot { header: self.header.clone() }
    }

    /// The book that the records of a snapshot hold. Its digest is that of the book the snapshot was made of.
    pub fn restore(records: impl Iterator<Item = Record>) -> Result<Book, RestoreError> {
        let mut records = records;
        match records.next() {
            Some(Record::Header(header)) => Ok(Book { header }),
            _ => Err(RestoreError::Header),
        }
    }
}

/// A book frozen at a revision.
#[derive(Clone, Debug)]
pub struct BookSnapshot {
    header: Header,
}

impl BookSnapshot {
    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All its records, the header first.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        std::iter::once(Record::Header(self.header.clone()))
    }
}
