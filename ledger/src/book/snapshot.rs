//! Snapshots: the book frozen at a revision, sharing its rows with the one that goes on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::adjust::AdjustmentRow;
use crate::book::Book;
use crate::book::derived::Tally;
use crate::book::generations::PlanVersion;
use crate::book::reservation::Kept;
use crate::book::shadow::Shadows;
use crate::book::table::TableSnapshot;
use crate::event::{Event, Statement};
use crate::ids::{AdjustmentId, TenantId};
use crate::plan::Calendar;
use crate::query::TenantVersion;
use crate::record::{CalendarRow, ClosedAccount, Freeze, FreezeScope, Header, Lineage, Record, Tombstone};
use crate::webhook::WebhookRow;

/// A book frozen at a revision.
#[derive(Clone, Debug)]
pub struct BookSnapshot {
    pub(super) header: Header,
    pub(super) plans: Vec<Arc<PlanVersion>>,
    pub(super) tenants: Arc<BTreeMap<TenantId, Vec<TenantVersion>>>,
    pub(super) calendars: BTreeMap<Arc<Calendar>, Arc<Vec<u64>>>,
    pub(super) lineages: TableSnapshot<Lineage>,
    pub(super) closed: TableSnapshot<ClosedAccount>,
    pub(super) reservations: TableSnapshot<Kept>,
    pub(super) tombstones: TableSnapshot<Tombstone>,
    pub(super) freezes: Arc<BTreeMap<FreezeScope, Freeze>>,
    pub(super) shadows: Arc<Shadows>,
    pub(super) adjustments: Arc<BTreeMap<AdjustmentId, AdjustmentRow>>,
    pub(super) webhooks: Arc<BTreeMap<TenantId, WebhookRow>>,
    pub(super) events: VecDeque<Arc<Event>>,
    pub(super) statements: VecDeque<Arc<Statement>>,
    pub(super) tally: Tally,
}

impl Book {
    /// The book as it stands, sharing its rows. Costs the number of segments, not of rows.
    /// Take it between entries: the digest in its header is that of the last [`Book::end_entry`].
    /// Nothing of the book changes but that its tables no longer own their rows alone.
    pub fn snapshot(&mut self) -> BookSnapshot {
        let mut snapshot = BookSnapshot {
            header: self.header.clone(),
            plans: self.generations.plans.clone(),
            tenants: Arc::clone(&self.generations.tenants),
            calendars: self.calendars.rows.clone(),
            lineages: self.lineages.snapshot(),
            closed: self.closed.snapshot(),
            reservations: self.reservations.snapshot(),
            tombstones: self.tombstones.snapshot(),
            freezes: Arc::clone(&self.freezes),
            shadows: Arc::clone(&self.shadows),
            adjustments: Arc::clone(&self.adjustments),
            webhooks: Arc::clone(&self.webhooks),
            events: self.events.clone(),
            statements: self.statements.clone(),
            tally: self.derived.tally.clone(),
        };
        snapshot.header.digest = self.digest();
        snapshot.header.records = snapshot.count();
        snapshot
    }
}

impl BookSnapshot {
    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Records besides the header.
    fn count(&self) -> u64 {
        let small = self.plans.len() + self.calendars.len() + self.freezes.len();
        let small = small + self.shadows.len() + self.adjustments.len() + self.webhooks.len();
        let small = small + self.events.len() + self.statements.len();
        let versions: usize = self.tenants.values().map(Vec::len).sum();
        let rows = self.lineages.len() + self.closed.len() + self.reservations.len() + self.tombstones.len();
        (small + versions + rows) as u64
    }

    /// All its records, the header first.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let plans = self.plans.iter().map(|plan| Record::Plan(plan.published.clone()));
        let tenants = self.tenants.values().flatten().map(|version| Record::Tenant(version.clone()));
        let calendars = self.calendars.iter().map(|(calendar, bounds_ms)| {
            Record::Calendar(CalendarRow { calendar: Arc::clone(calendar), bounds_ms: bounds_ms.to_vec() })
        });
        let lineages = self.lineages.iter().map(|(slot, row)| Record::Lineage(slot, Box::new(row.clone())));
        let closed = self.closed.iter().map(|(slot, row)| Record::ClosedAccount(slot, Box::new(row.clone())));
        let reservations =
            self.reservations.iter().map(|(slot, row)| Record::Reservation(slot, row.record()));
        let tombstones = self.tombstones.iter().map(|(slot, row)| Record::Tombstone(slot, *row));
        let freezes = self.freezes.values().map(|freeze| Record::Freeze(freeze.clone()));
        let shadows = self.shadows.values().map(|counts| Record::Shadow(counts.clone()));
        let adjustments = self.adjustments.values().map(|row| Record::Adjustment(row.clone()));
        let webhooks = self.webhooks.values().map(|row| Record::Webhook(row.clone()));
        let statements = self.statements.iter().map(|statement| Record::Statement(Arc::clone(statement)));
        let events = self.events.iter().map(|event| Record::Event(Arc::clone(event)));
        std::iter::once(Record::Header(self.header.clone()))
            .chain(plans)
            .chain(tenants)
            .chain(calendars)
            .chain(lineages)
            .chain(closed)
            .chain(reservations)
            .chain(tombstones)
            .chain(freezes)
            .chain(shadows)
            .chain(adjustments)
            .chain(webhooks)
            .chain(statements)
            .chain(events)
    }
}
