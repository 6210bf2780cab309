//! Restoring a book from the records of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::adjust::AdjustmentRow;
use crate::answer::Hold;
use crate::book::events::hash_event;
use crate::book::shadow::hash_shadow;
use crate::book::small::{hash_calendar, hash_freeze, hash_plan, hash_tenant};
use crate::book::{Book, Counted, Found, Kept};
use crate::limits::RULES_VERSION_MAX;
use crate::mutants;
use crate::query::{PublishedPlan, TenantVersion};
use crate::record::{CalendarRow, ClosedAccount, Freeze, Header, Lineage, Record, RestoreError};
use crate::record::{ReservationRow, Subject, Tombstone};
use crate::shadow::ShadowCounts;
use crate::webhook::WebhookRow;

/// A book that is being restored.
#[derive(Default)]
struct Restoring {
    book: Book,
    /// Subjects, legs and what receipts say of them are shared by their reservations, as in the book that was
    /// saved: each subject's last ones.
    holds: BTreeMap<Arc<Subject>, Arc<Hold>>,
}

impl Book {
    /// The book that the records of a snapshot hold. Its digest is that of the book the snapshot was made of.
    pub fn restore(records: impl Iterator<Item = Record>) -> Result<Book, RestoreError> {
        let mut records = records;
        let Some(Record::Header(header)) = records.next() else { return Err(RestoreError::Header) };
        if header.rules_version > RULES_VERSION_MAX {
            return Err(RestoreError::RulesVersion(header.rules_version));
        }
        let mut restoring = Restoring::default();
        let mut found: u64 = 0;
        for record in records {
            found += 1;
            restoring.add(record)?;
        }
        restoring.finish(header, found)
    }
}

impl Restoring {
    fn add(&mut self, record: Record) -> Result<(), RestoreError> {
        match record {
            Record::Header(_) => Err(RestoreError::Header),
            Record::Plan(plan) => self.add_plan(plan),
            Record::Tenant(version) => self.add_tenant(version),
            Record::Calendar(row) => self.add_calendar(row),
            Record::Lineage(slot, row) => self.add_lineage(slot, *row),
            Record::ClosedAccount(slot, row) => self.add_closed(slot, *row),
            Record::Reservation(slot, row) => self.add_reservation(slot, row),
            Record::Tombstone(slot, row) => self.add_tombstone(slot, row),
            Record::Freeze(freeze) => self.add_freeze(freeze),
            Record::Shadow(counts) => self.add_shadow(counts),
            Record::Adjustment(row) => self.add_adjustment(row),
            Record::Webhook(row) => self.add_webhook(row),
            Record::Statement(statement) => {
                self.book.keep_statement(statement);
                Ok(())
            }
            Record::Event(event) => {
                self.sum(hash_event(&event));
                self.book.events.push_back(event);
                Ok(())
            }
        }
    }

    fn sum(&mut self, hash: u128) {
        self.book.small_sum = self.book.small_sum.wrapping_add(hash);
    }

    fn add_plan(&mut self, plan: PublishedPlan) -> Result<(), RestoreError> {
        let last = self.book.generations.plan().map_or(0, |known| known.published.generation);
        if plan.generation <= last {
            return Err(RestoreError::Duplicate(format!("plan generation {}", plan.generation)));
        }
        self.sum(hash_plan(&plan));
        self.book.generations.push_plan(plan);
        Ok(())
    }

    fn add_tenant(&mut self, version: TenantVersion) -> Result<(), RestoreError> {
        let versions = self.book.generations.tenants.get(&version.tenant);
        let last = versions.and_then(|versions| versions.last()).map_or(0, |known| known.generation);
        if version.generation <= last {
            let what = format!("tenant {} generation {}", version.tenant, version.generation);
            return Err(RestoreError::Duplicate(what));
        }
        self.sum(hash_tenant(&version));
        self.book.generations.push_tenant(version);
        Ok(())
    }

    fn add_calendar(&mut self, row: CalendarRow) -> Result<(), RestoreError> {
        self.sum(hash_calendar(&row.calendar, &row.bounds_ms));
        let what = row.calendar.to_string();
        match self.book.calendars.rows.insert(row.calendar, Arc::new(row.bounds_ms)) {
            Some(_) => Err(RestoreError::Duplicate(format!("calendar {what}"))),
            None => Ok(()),
        }
    }

    fn add_lineage(&mut self, slot: u32, row: Lineage) -> Result<(), RestoreError> {
        let book = &mut self.book;
        let what = row.key.to_string();
        if book.derived.find_lineage(&book.lineages, &row.key).is_some() {
            return Err(RestoreError::Duplicate(format!("lineage {what}")));
        }
        let tally = &mut book.derived.tally;
        tally.held_on_accounts[row.unit as usize] += row.current.columns.reserved;
        tally.indebted += u64::from(row.debt > 0);
        if let Some(drop_at_ms) = row.drop_at_ms {
            book.derived.lineage_timers.schedule(drop_at_ms, slot);
        }
        if !book.lineages.insert_at(slot, row) {
            return Err(RestoreError::Duplicate(format!("lineage slot {slot}")));
        }
        book.derived.add_lineage(&book.lineages, slot);
        book.count_account(slot, Counted::In);
        Ok(())
    }

    fn add_closed(&mut self, slot: u32, row: ClosedAccount) -> Result<(), RestoreError> {
        let book = &mut self.book;
        let of_lineage = row.lineage;
        let what = format!("account {} of lineage {}", row.account.number, row.lineage);
        let Some(lineage) = book.lineages.find(row.lineage) else { return Err(RestoreError::Dangling(what)) };
        let known = book.derived.closed_slot(&book.closed, row.lineage, row.account.number);
        if known.is_some() || lineage.current.number == row.account.number {
            return Err(RestoreError::Duplicate(what));
        }
        book.derived.tally.held_on_accounts[lineage.unit as usize] += row.account.columns.reserved;
        if !book.closed.insert_at(slot, row) {
            return Err(RestoreError::Duplicate(format!("closed account slot {slot}")));
        }
        book.derived.add_closed(&book.closed, slot);
        book.count_account(of_lineage, Counted::In);
        Ok(())
    }

    fn add_reservation(&mut self, slot: u32, row: ReservationRow) -> Result<(), RestoreError> {
        let id = row.id;
        self.check_new_id(id)?;
        self.check_new_key(&row)?;
        for leg in row.legs.iter() {
            let book = &mut self.book;
            let dangling = || RestoreError::Dangling(format!("reservation {id}"));
            let lineage = book.lineages.find(leg.lineage).ok_or_else(dangling)?;
            let open = lineage.current.number == leg.account;
            if !open && book.derived.closed_slot(&book.closed, leg.lineage, leg.account).is_none() {
                return Err(dangling());
            }
            if row.ended.is_none() {
                book.derived.tally.held_by_legs[lineage.unit as usize] += u128::from(leg.amount);
            }
        }
        let hold = self.share_hold(&row);
        let row = Kept::of(row, hold);
        let book = &mut self.book;
        book.derived.tally.enter(row.state);
        if row.unknown_at_ms != 0 && row.ended.is_none() {
            book.derived.unknown.insert((row.unknown_at_ms, id));
        }
        if !book.reservations.insert_at(slot, row) {
            return Err(RestoreError::Duplicate(format!("reservation slot {slot}")));
        }
        book.derived.add_id(id, Found::Reservation(slot));
        book.derived.keys.add(&book.reservations, slot);
        if !mutants::on("restore-without-timers") {
            book.schedule_reservation(slot);
        }
        Ok(())
    }

    fn share_hold(&mut self, row: &ReservationRow) -> Arc<Hold> {
        let last = self.holds.get(&row.subject);
        if let Some(known) = last.filter(|known| *known.places == *row.legs) {
            return Arc::clone(known);
        }
        let subject = last.map_or(&row.subject, |known| &known.subject);
        let hold = Arc::new(self.book.hold(subject, SmallVec::from_slice(&row.legs)));
        self.holds.insert(Arc::clone(&hold.subject), Arc::clone(&hold));
        hold
    }

    fn add_tombstone(&mut self, slot: u32, row: Tombstone) -> Result<(), RestoreError> {
        self.check_new_id(row.id)?;
        let book = &mut self.book;
        if !book.tombstones.insert_at(slot, row) {
            return Err(RestoreError::Duplicate(format!("tombstone slot {slot}")));
        }
        book.derived.add_id(row.id, Found::Tombstone(slot));
        book.derived.tombstone_timers.schedule(row.forget_at_ms, slot);
        Ok(())
    }

    fn check_new_id(&self, id: crate::ids::ReservationId) -> Result<(), RestoreError> {
        match self.book.find(id) {
            Some(_) => Err(RestoreError::Duplicate(format!("reservation {id}"))),
            None => Ok(()),
        }
    }

    fn check_new_key(&self, row: &ReservationRow) -> Result<(), RestoreError> {
        let Some(key) = row.extras.as_ref().and_then(|extras| extras.key.as_ref()) else { return Ok(()) };
        match self.book.derived.keys.find(&self.book.reservations, &row.subject.tenant, key) {
            Some(_) => Err(RestoreError::Duplicate(format!("key {key} of {}", row.subject.tenant))),
            None => Ok(()),
        }
    }

    fn add_freeze(&mut self, freeze: Freeze) -> Result<(), RestoreError> {
        if mutants::on("restore-thaws") {
            return Ok(());
        }
        self.sum(hash_freeze(&freeze));
        let what = format!("freeze of {}", freeze.scope);
        match Arc::make_mut(&mut self.book.freezes).insert(freeze.scope.clone(), freeze) {
            Some(_) => Err(RestoreError::Duplicate(what)),
            None => Ok(()),
        }
    }

    fn add_shadow(&mut self, counts: ShadowCounts) -> Result<(), RestoreError> {
        self.sum(hash_shadow(&counts));
        let what = format!("shadow counts of {}", counts.route);
        match Arc::make_mut(&mut self.book.shadows).insert(counts.route.clone(), counts) {
            Some(_) => Err(RestoreError::Duplicate(what)),
            None => Ok(()),
        }
    }

    fn add_adjustment(&mut self, row: AdjustmentRow) -> Result<(), RestoreError> {
        let id = row.receipt.command.id;
        match self.book.keep_adjustment(row) {
            true => Ok(()),
            false => Err(RestoreError::Duplicate(format!("adjustment {id}"))),
        }
    }

    fn add_webhook(&mut self, row: WebhookRow) -> Result<(), RestoreError> {
        self.sum(row.hash());
        let what = format!("webhook of {}", row.tenant);
        match Arc::make_mut(&mut self.book.webhooks).insert(row.tenant.clone(), row) {
            Some(_) => Err(RestoreError::Duplicate(what)),
            None => Ok(()),
        }
    }

    fn finish(self, header: Header, found: u64) -> Result<Book, RestoreError> {
        let mut book = self.book;
        if header.records != found {
            return Err(RestoreError::Records { announced: header.records, found });
        }
        let announced = header.digest;
        book.header = Header { digest: 0, records: 0, ..header };
        book.find_wakes();
        book.end_entry();
        match book.digest() {
            found if found == announced => Ok(book),
            found => Err(RestoreError::Digest { announced, found }),
        }
    }
}
