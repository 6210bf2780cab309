//! The audit: every rule of the account equation over the whole book, from the rows alone.
//!
//! It can go over a snapshot, so that commands are applied meanwhile. Only the index of ids is not part of
//! one: it is compared with the rows of the book itself, a piece at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::adjust::AdjustmentRow;
use crate::book::adjustments::hash_adjustment;
use crate::book::carried::check_carried;
use crate::book::check::{check_equation, check_lineage};
use crate::book::derived::{Found, Tally};
use crate::book::events::hash_event;
use crate::book::generations::PlanVersion;
use crate::book::reservation::Kept;
use crate::book::shadow::{Shadows, hash_shadow};
use crate::book::small::{hash_calendar, hash_freeze, hash_header, hash_plan, hash_tenant};
use crate::book::statements::hash_statement;
use crate::book::table::AllRows;
use crate::book::{Book, BookSnapshot};
use crate::event::{Event, Statement};
use crate::ids::{AdjustmentId, ReservationId, TenantId};
use crate::limits::VIOLATIONS_SHOWN_MAX;
use crate::plan::Calendar;
use crate::query::{AuditReport, TenantVersion, ViolatedRule, Violation};
use crate::record::{Account, ClosedAccount, Columns, Freeze, FreezeScope, Header, Lane, Lineage, Tombstone};
use crate::webhook::WebhookRow;

/// Violations found so far.
#[derive(Default)]
struct Findings {
    shown: Vec<Violation>,
}

impl Findings {
    fn add(&mut self, violation: Option<Violation>) {
        if let Some(violation) = violation.filter(|_| self.shown.len() < VIOLATIONS_SHOWN_MAX) {
            self.shown.push(violation);
        }
    }

    fn expect<T: PartialEq + std::fmt::Debug>(
        &mut self,
        rule: ViolatedRule,
        place: impl FnOnce() -> String,
        what: &str,
        (kept, computed): (T, T),
    ) {
        if kept != computed {
            let detail = format!("{what} is kept as {kept:?}, the rows give {computed:?}");
            self.add(Some(Violation { rule, place: place(), detail }));
        }
    }
}

/// What the rows say about one account or lineage besides its own columns.
#[derive(Clone, Copy, Default)]
struct Sums {
    open: u128,
    legs: u32,
}

impl Book {
    /// Checks every rule of the account equation over the whole book, and its index. Costs the number of rows.
    pub fn audit(&self) -> AuditReport {
        let mut report = self.all_rows().audit();
        report.add(self.audit_index(0, u32::MAX).0);
        report
    }

    fn all_rows(&self) -> Everything<'_> {
        Everything {
            header: &self.header,
            digest: self.digest(),
            plans: &self.generations.plans,
            tenants: &self.generations.tenants,
            calendars: &self.calendars.rows,
            lineages: self.lineages.all(),
            closed: self.closed.all(),
            reservations: self.reservations.all(),
            tombstones: self.tombstones.all(),
            freezes: &self.freezes,
            shadows: &self.shadows,
            adjustments: &self.adjustments,
            webhooks: &self.webhooks,
            statements: &self.statements,
            events: &self.events,
            tally: &self.derived.tally,
        }
    }

    /// Compares the indexes of ids and keys with at most `most` slots of the rows, from slot `from` on. Gives what differs
    /// and the slot to go on from; `None`: that was the end.
    pub fn audit_index(&self, from: u32, most: u32) -> (Vec<Violation>, Option<u32>) {
        let mut findings = Findings::default();
        let slots = self.reservations.slots().max(self.tombstones.slots());
        let end = from.saturating_add(most).min(slots);
        let mut keyless = Vec::new();
        let mut expect = |id: ReservationId, found: Found| {
            let place = || format!("reservation {id}");
            findings.expect(ViolatedRule::Index, place, "its slot", (self.find(id), Some(found)));
        };
        for slot in from..end {
            if let Some(row) = self.reservations.find(slot) {
                expect(row.id, Found::Reservation(slot));
                let key = row.key().map(|key| (&row.hold.subject.tenant, key));
                if key.is_some_and(|(tenant, key)| self.find_key(tenant, key) != Some(slot)) {
                    keyless.push(Violation {
                        rule: ViolatedRule::Index,
                        place: format!("reservation {}", row.id),
                        detail: "it is not found by its key".to_owned(),
                    });
                }
            }
            if let Some(row) = self.tombstones.find(slot) {
                expect(row.id, Found::Tombstone(slot));
            }
        }
        keyless.into_iter().for_each(|violation| findings.add(Some(violation)));
        (findings.shown, (end < slots).then_some(end))
    }
}

impl AuditReport {
    /// Adds what was found besides.
    pub fn add(&mut self, violations: Vec<Violation>) {
        self.ok &= violations.is_empty();
        self.violations.extend(violations);
        self.violations.truncate(VIOLATIONS_SHOWN_MAX);
    }
}

impl BookSnapshot {
    /// Checks every rule of the account equation over all rows. Costs their number.
    pub fn audit(&self) -> AuditReport {
        let everything = Everything {
            header: &self.header,
            digest: self.header.digest,
            plans: &self.plans,
            tenants: &self.tenants,
            calendars: &self.calendars,
            lineages: self.lineages.all(),
            closed: self.closed.all(),
            reservations: self.reservations.all(),
            tombstones: self.tombstones.all(),
            freezes: &self.freezes,
            shadows: &self.shadows,
            adjustments: &self.adjustments,
            webhooks: &self.webhooks,
            statements: &self.statements,
            events: &self.events,
            tally: &self.tally,
        };
        everything.audit()
    }
}

/// What stands in a book or in a snapshot of one, and the sums that are kept of it.
struct Everything<'a> {
    header: &'a Header,
    digest: u128,
    plans: &'a [Arc<PlanVersion>],
    tenants: &'a BTreeMap<TenantId, Vec<TenantVersion>>,
    calendars: &'a BTreeMap<Arc<Calendar>, Arc<Vec<u64>>>,
    lineages: AllRows<'a, Lineage>,
    closed: AllRows<'a, ClosedAccount>,
    reservations: AllRows<'a, Kept>,
    tombstones: AllRows<'a, Tombstone>,
    freezes: &'a BTreeMap<FreezeScope, Freeze>,
    shadows: &'a Shadows,
    adjustments: &'a BTreeMap<AdjustmentId, AdjustmentRow>,
    webhooks: &'a BTreeMap<TenantId, WebhookRow>,
    statements: &'a VecDeque<Arc<Statement>>,
    events: &'a VecDeque<Arc<Event>>,
    tally: &'a Tally,
}

impl Everything<'_> {
    fn audit(&self) -> AuditReport {
        let mut findings = Findings::default();
        let by_account = self.audit_reservations(&mut findings);
        let sums = self.audit_accounts(&by_account, &mut findings);
        let digest = self.audit_digest(&mut findings);
        AuditReport {
            ok: findings.shown.is_empty(),
            revision: self.header.revision,
            digest,
            accounts: (self.lineages.len() + self.closed.len()) as u64,
            open_reservations: self.tally.open(),
            sums,
            violations: findings.shown,
        }
    }

    /// Sums the legs by account, and checks that the tallies agree with the rows.
    fn audit_reservations(&self, findings: &mut Findings) -> BTreeMap<(u32, u32), Sums> {
        let mut by_account: BTreeMap<(u32, u32), Sums> = BTreeMap::new();
        let mut tally = Tally::default();
        for (_, row) in self.reservations.iter() {
            tally.enter(row.state);
            for leg in row.legs() {
                let sums = by_account.entry((leg.lineage, leg.account)).or_default();
                sums.legs += 1;
                if row.state.is_open() {
                    sums.open += u128::from(leg.amount);
                }
            }
        }
        let states = |tally: &Tally| (tally.reserved, tally.started, tally.unknown, tally.ended);
        findings.expect(
            ViolatedRule::Index,
            || "the tally".to_owned(),
            "reservations by state",
            (states(self.tally), states(&tally)),
        );
        by_account
    }

    fn audit_accounts(
        &self,
        by_account: &BTreeMap<(u32, u32), Sums>,
        findings: &mut Findings,
    ) -> [Columns; 4] {
        let mut sums = [Columns::default(); 4];
        let mut in_shadow = 0;
        let mut closed: BTreeMap<u32, Vec<&Account>> = BTreeMap::new();
        for (_, row) in self.closed.iter() {
            closed.entry(row.lineage).or_default().push(&row.account);
        }
        for (slot, row) in self.lineages.iter() {
            let mut earlier = closed.remove(&slot).unwrap_or_default();
            earlier.sort_by_key(|account| account.number);
            if row.key.lane == Lane::Shadow {
                in_shadow += earlier.len() + 1;
            }
            findings.add(check_lineage(row));
            audit_lineage(row, &earlier, findings);
            for account in earlier.iter().copied().chain([&row.current]) {
                let place = || format!("{} account {}", row.key, account.number);
                findings.add(check_equation(&account.columns, &place));
                let said = by_account.get(&(slot, account.number)).copied().unwrap_or_default();
                let reserved = account.columns.reserved;
                findings.expect(ViolatedRule::C4, place, "reserved", (reserved, said.open));
                findings.expect(ViolatedRule::Index, place, "its number of legs", (account.legs, said.legs));
                // No command mints a shard yet.
                findings.expect(ViolatedRule::C5, place, "to_shards", (account.columns.to_shards, 0));
                sums[row.unit as usize].add(&account.columns);
            }
        }
        findings.expect(
            ViolatedRule::Index,
            || "the tally".to_owned(),
            "accounts of the shadow lane",
            (self.tally.shadow_accounts, in_shadow),
        );
        for slot in closed.into_keys() {
            findings.add(Some(Violation {
                rule: ViolatedRule::Index,
                place: format!("lineage slot {slot}"),
                detail: "closed accounts refer to it, but it is vacant".to_owned(),
            }));
        }
        sums
    }

    fn audit_digest(&self, findings: &mut Findings) -> u128 {
        let plans = self.plans.iter().map(|plan| hash_plan(&plan.published));
        let tenants = self.tenants.values().flatten().map(hash_tenant);
        let calendars = self.calendars.iter().map(|(calendar, bounds)| hash_calendar(calendar, bounds));
        let freezes = self.freezes.values().map(hash_freeze);
        let shadows = self.shadows.values().map(hash_shadow);
        let events = self.events.iter().map(|event| hash_event(event));
        let adjustments = self.adjustments.values().map(hash_adjustment);
        let statements = self.statements.iter().map(|statement| hash_statement(statement));
        let small = plans.chain(tenants).chain(calendars).chain(freezes).chain(shadows);
        let webhooks = self.webhooks.values().map(WebhookRow::hash);
        let small = small.chain(adjustments).chain(webhooks).chain(statements).chain(events);
        let small = small.fold(0, u128::wrapping_add);
        let tables = [
            self.lineages.sum_in_full(),
            self.closed.sum_in_full(),
            self.reservations.sum_in_full(),
            self.tombstones.sum_in_full(),
        ];
        let digest =
            tables.into_iter().fold(small.wrapping_add(hash_header(self.header)), u128::wrapping_add);
        findings.expect(ViolatedRule::Digest, || "the book".to_owned(), "its digest", (self.digest, digest));
        digest
    }
}

/// The sums that a lineage keeps over its accounts, and C9 over those that are still there.
fn audit_lineage(row: &Lineage, earlier: &[&Account], findings: &mut Findings) {
    let place = || row.key.to_string();
    let debt_of = |accounts: &mut dyn Iterator<Item = &Account>| -> i128 {
        accounts.map(|account| account.columns.debt()).sum()
    };
    let all = row.archived_debt + debt_of(&mut earlier.iter().copied()) + row.current.columns.debt();
    findings.expect(ViolatedRule::Index, place, "its debt", (row.debt as i128, all));
    let of_epoch = || earlier.iter().copied().filter(|account| row.is_of_epoch(account.number));
    let used: i128 = of_epoch().map(|account| account.columns.used()).sum();
    findings.expect(
        ViolatedRule::C7,
        place,
        "the usage of earlier accounts",
        (row.past_used, used + row.archived_used),
    );
    // What archived accounts owe is known over all epochs only.
    if of_epoch().count() as u64 == u64::from(row.current.number - row.epoch_first) {
        let debt = debt_of(&mut of_epoch());
        findings.expect(
            ViolatedRule::C7,
            place,
            "the debt of the epoch's earlier accounts",
            (row.past_debt, debt),
        );
    }
    let legs: u32 = earlier.iter().map(|account| account.legs).sum::<u32>() + row.current.legs;
    findings.expect(ViolatedRule::Index, place, "its number of legs", (row.legs, legs));
    let line: Vec<&Account> = earlier.iter().copied().chain([&row.current]).collect();
    for violation in check_carried(row, &line) {
        findings.add(Some(violation));
    }
}
