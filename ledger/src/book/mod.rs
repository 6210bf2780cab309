//! The book.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::adjust::AdjustmentRow;
use crate::answer::Answer;
use crate::command::{Command, EntryHeader};
use crate::event::{Effect, Event, Statement};
use crate::ids::{AdjustmentId, TenantId};
use crate::limits::ID_WINDOW_MS;
use crate::mutants;
use crate::plan::Calendar;
use crate::query::{PublishedPlan, TenantVersion};
use crate::record::{ClosedAccount, Freeze, FreezeScope, Header, Lineage, Tombstone};
use crate::webhook::WebhookRow;

mod adjustments;
mod audit;
mod bytes;
mod calendars;
mod carried;
mod check;
mod derived;
mod drain;
mod events;
mod forget;
mod generations;
mod hash;
mod judge;
mod keys;
pub(crate) mod lineage;
mod losses;
mod paths;
mod query;
mod quota;
mod replay;
mod reservation;
mod restore;
mod retained;
mod shadow;
mod slots;
mod small;
mod snapshot;
mod statements;
mod table;
mod timer_work;
mod timers;
mod touch;
mod unknowns;
mod wakes;
mod webhooks;

#[cfg(test)]
mod tests;

pub use retained::Retained;
pub use snapshot::BookSnapshot;

pub(crate) use calendars::Uncovered;
pub(crate) use derived::Found;
pub(crate) use generations::{find_limit, fits};
pub(crate) use judge::{Ask, judge};
pub(crate) use paths::Path;
pub(crate) use replay::open_lineage;
pub(crate) use reservation::Kept;
pub(crate) use shadow::Counted;
pub(crate) use small::{hash_freeze, hash_plan, hash_tenant};

/// The whole state: a pure function of the commands applied so far.
#[derive(Debug)]
pub struct Book {
    pub(crate) header: Header,
    pub(crate) generations: generations::Generations,
    pub(crate) calendars: calendars::Calendars,
    pub(crate) lineages: table::Table<Lineage>,
    pub(crate) closed: table::Table<ClosedAccount>,
    pub(crate) reservations: table::Table<Kept>,
    pub(crate) tombstones: table::Table<Tombstone>,
    pub(crate) freezes: Arc<BTreeMap<FreezeScope, Freeze>>,
    pub(crate) shadows: Arc<shadow::Shadows>,
    /// Adjustments that are remembered.
    pub(crate) adjustments: Arc<BTreeMap<AdjustmentId, AdjustmentRow>>,
    /// Webhooks by tenant.
    pub(crate) webhooks: Arc<BTreeMap<TenantId, WebhookRow>>,
    pub(crate) events: VecDeque<Arc<Event>>,
    /// Statements of archived accounts, in the order of their archiving.
    pub(crate) statements: VecDeque<Arc<Statement>>,
    /// The digest's part of plans, tenants, calendars, freezes, shadow counts, adjustments, webhooks, statements and
    /// events.
    pub(crate) small_sum: u128,
    pub(crate) derived: derived::Derived,
}

impl Default for Book {
    fn default() -> Self {
        Book {
            header: Header { rules_version: 1, ..Header::default() },
            generations: generations::Generations::default(),
            calendars: calendars::Calendars::default(),
            lineages: table::Table::default(),
            closed: table::Table::default(),
            reservations: table::Table::default(),
            tombstones: table::Table::default(),
            freezes: Arc::default(),
            shadows: Arc::default(),
            adjustments: Arc::default(),
            webhooks: Arc::default(),
            events: VecDeque::new(),
            statements: VecDeque::new(),
            small_sum: 0,
            derived: derived::Derived::default(),
        }
    }
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
        self.header.clock_ms = match mutants::on("clock-goes-back") {
            false => self.header.clock_ms.max(header.stamp_ms),
            true => header.stamp_ms,
        };
        for bounds in &header.epoch_bounds {
            self.extend_calendar(bounds);
        }
        self.raise_floor();
        self.do_timer_work();
    }

    /// Applies one command of the entry that was begun.
    ///
    /// # Panics
    /// If the account equation no longer holds on an account that the command touched: the book is wrong, and
    /// whoever hosts it must stop.
    pub fn apply(&mut self, command: &Command) -> Answer {
        self.header.revision += 1;
        let answer = self.apply_command(command);
        self.assert_touched();
        answer
    }

    /// Ends the entry: hashes the rows it touched.
    pub fn end_entry(&mut self) {
        let bytes = &mut self.derived.bytes;
        self.lineages.hash_dirty(bytes);
        self.closed.hash_dirty(bytes);
        self.reservations.hash_dirty(bytes);
        self.tombstones.hash_dirty(bytes);
        self.clean_timers();
    }

    /// Begins an entry, applies its commands and ends it.
    pub fn apply_entry(&mut self, header: &EntryHeader, commands: &[Command]) -> Vec<Answer> {
        self.begin_entry(header);
        let answers = commands.iter().map(|command| self.apply(command)).collect();
        self.end_entry();
        answers
    }

    /// As [`Book::apply_entry`] where nobody waits for the answers, as on followers: receipts that only an
    /// answer would carry are not built.
    pub fn apply_entry_quietly(&mut self, header: &EntryHeader, commands: &[Command]) {
        self.derived.unread = true;
        self.begin_entry(header);
        for command in commands {
            self.apply(command);
        }
        self.end_entry();
        self.derived.unread = false;
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
        [self.lineages.sum(), self.closed.sum(), self.reservations.sum(), self.tombstones.sum()]
            .into_iter()
            .fold(self.small_sum.wrapping_add(small::hash_header(&self.header)), u128::wrapping_add)
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
        self.generations.plan().map(|plan| &plan.published)
    }

    /// The plan that was in force at a generation, if it is still kept.
    pub fn plan_at(&self, generation: u64) -> Option<&PublishedPlan> {
        self.generations.plan_at(generation).map(|plan| &plan.published)
    }

    /// The plans that are still kept, oldest first.
    pub fn plans(&self) -> impl Iterator<Item = &PublishedPlan> {
        self.generations.plans.iter().map(|plan| &plan.published)
    }

    /// The record that was set by command for a tenant, if one stands.
    pub fn tenant(&self, tenant: &TenantId) -> Option<&TenantVersion> {
        self.generations.tenants.get(tenant)?.last().filter(|version| version.record.is_some())
    }

    /// The records that were set by command and stand, by tenant.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantVersion> {
        let last = self.generations.tenants.values().filter_map(|versions| versions.last());
        last.filter(|version| version.record.is_some())
    }

    /// The freezes that stand, by what they are on.
    pub fn freezes(&self) -> impl Iterator<Item = &Freeze> {
        self.freezes.values()
    }

    /// The events that are still kept, oldest first.
    pub fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter()
    }

    /// The calendars of the plan in force whose bounds the leader computes, and until when they are known, ms.
    pub fn calendars(&self) -> impl Iterator<Item = (Arc<Calendar>, Option<u64>)> {
        let calendars = self.plan().map(|plan| plan.plan.calendars()).unwrap_or_default();
        calendars.into_iter().filter(|calendar| calendar.period.wants_bounds()).map(|calendar| {
            let until_ms = self.calendars.known_until_ms(&calendar);
            (calendar, until_ms)
        })
    }

    /// Takes what a history index should be told since the last call, in a deterministic order.
    pub fn drain_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.derived.effects)
    }

    fn extend_calendar(&mut self, bounds: &crate::command::EpochBounds) {
        let hash = |book: &Book| {
            let known = book.calendars.rows.get(&bounds.calendar);
            known.map_or(0, |known| small::hash_calendar(&bounds.calendar, known))
        };
        let before = hash(self);
        if self.calendars.extend(bounds) {
            self.small_sum = self.small_sum.wrapping_sub(before).wrapping_add(hash(self));
        }
    }

    /// How far back an unknown id may lie now, ms.
    pub(crate) fn id_window_ms(&self) -> u64 {
        self.plan().map_or(ID_WINDOW_MS, |plan| plan.plan.id_window_ms)
    }

    pub(crate) fn raise_floor(&mut self) {
        let floor_ms = self.header.clock_ms.saturating_sub(self.id_window_ms());
        self.header.id_floor_ms = self.header.id_floor_ms.max(floor_ms);
    }
}
