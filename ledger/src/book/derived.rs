//! What follows from the rows and is kept at hand: indexes, timers, sums. Never in a snapshot or the
//! digest; made anew when a book is restored.

use std::collections::BTreeSet;

use hashbrown::HashTable;

use crate::answer::State;
use crate::book::bytes::RowBytes;
use crate::book::check::Touched;
use crate::book::hash::{hash_id, hash_names, hash_pair};
use crate::book::keys::Keys;
use crate::book::lineage::Sink;
use crate::book::paths::Paths;
use crate::book::reservation::Kept;
use crate::book::table::Table;
use crate::book::timers::Timers;
use crate::book::wakes::Wakes;
use crate::event::Effect;
use crate::ids::{AdjustmentId, ModelName, RegionName, ReservationId, RouteName, TenantId, UserId};
use crate::record::{ClosedAccount, Lineage, LineageKey, Tombstone};

/// What stands under a reservation id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Reservation(u32),
    Tombstone(u32),
}

/// How many reservations are in each stored state, and the sums that C4 compares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) reserved: u64,
    pub(crate) started: u64,
    pub(crate) unknown: u64,
    pub(crate) ended: u64,
    /// Lineages in debt.
    pub(crate) indebted: u64,
    /// Accounts of the shadow lane, open and closed.
    pub(crate) shadow_accounts: usize,
    /// Per unit: `reserved` over all accounts.
    pub(crate) held_on_accounts: [u128; 4],
    /// Per unit: legs of open reservations.
    pub(crate) held_by_legs: [u128; 4],
}

impl Tally {
    pub(crate) fn open(&self) -> u64 {
        self.reserved + self.started + self.unknown
    }

    pub(crate) fn enter(&mut self, state: State) {
        *self.of(state) += 1;
    }

    pub(crate) fn leave(&mut self, state: State) {
        *self.of(state) -= 1;
    }

    fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Reserved | State::Expiring => &mut self.reserved,
            State::Started => &mut self.started,
            State::UsageUnknown => &mut self.unknown,
            State::Expired | State::Released | State::Settled | State::SettledWithDebt => &mut self.ended,
        }
    }
}

/// Timer work done for the entry that was begun.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimerWork {
    pub(crate) expired: u32,
    pub(crate) unknown: u32,
    pub(crate) forgotten: u32,
}

/// A place in the id index with this bit is the slot of a tombstone.
const TOMBSTONE: u32 = 1 << 31;

/// An id in the index: where its row is, and enough of the id's hash that no other row is looked at for it, neither
/// when it is searched nor when the index moves its entries.
#[derive(Clone, Copy, Debug)]
struct IdEntry {
    tag: IdTag,
    place: u32,
}

/// Half of the hash of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdTag(u32);

impl IdTag {
    fn of(id: ReservationId) -> IdTag {
        IdTag(hash_id(id) as u32)
    }

    /// What the index places an entry by.
    fn hash(self) -> u64 {
        hash_pair(0, self.0)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Derived {
    ids: HashTable<IdEntry>,
    pub(crate) keys: Keys,
    lineages: HashTable<u32>,
    closed: HashTable<u32>,
    pub(crate) reservation_timers: Timers,
    pub(crate) tombstone_timers: Timers,
    pub(crate) lineage_timers: Timers,
    /// (when it may be forgotten, id) of remembered adjustments.
    pub(crate) adjustments_due: BTreeSet<(u64, AdjustmentId)>,
    /// (since when, id) of reservations with unknown usage.
    pub(crate) unknown: BTreeSet<(u64, ReservationId)>,
    pub(crate) wakes: Wakes,
    pub(crate) paths: Paths,
    pub(crate) tally: Tally,
    pub(crate) touched: Touched,
    pub(crate) effects: Vec<Effect>,
    pub(crate) sink: Sink,
    pub(crate) bytes: RowBytes,
    pub(crate) work: TimerWork,
    /// Nobody reads the answers of the entry that was begun.
    pub(crate) unread: bool,
}

impl Derived {
    pub(crate) fn find_id(
        &self,
        reservations: &Table<Kept>,
        tombstones: &Table<Tombstone>,
        id: ReservationId,
    ) -> Option<Found> {
        let tag = IdTag::of(id);
        let of_id = |entry: &IdEntry| entry.tag == tag && id_of(reservations, tombstones, entry.place) == id;
        let place = self.ids.find(tag.hash(), of_id)?.place;
        Some(match place & TOMBSTONE {
            0 => Found::Reservation(place),
            _ => Found::Tombstone(place & !TOMBSTONE),
        })
    }

    /// Puts an id into the index that is not in it.
    pub(crate) fn add_id(&mut self, id: ReservationId, found: Found) {
        let entry = IdEntry { tag: IdTag::of(id), place: place_of(found) };
        self.ids.insert_unique(entry.tag.hash(), entry, |entry| entry.tag.hash());
    }

    pub(crate) fn remove_id(&mut self, id: ReservationId, found: Found) {
        let place = place_of(found);
        if let Ok(entry) = self.ids.find_entry(IdTag::of(id).hash(), |known| known.place == place) {
            entry.remove();
        }
        if self.ids.len() * 4 < self.ids.capacity() {
            self.ids.shrink_to(self.ids.len() * 2, |entry| entry.tag.hash());
        }
    }

    pub(crate) fn find_lineage(&self, lineages: &Table<Lineage>, key: &LineageKey) -> Option<u32> {
        self.lineages.find(hash_key(key), |slot| *lineages.get(*slot).key == *key).copied()
    }

    pub(crate) fn add_lineage(&mut self, lineages: &Table<Lineage>, slot: u32) {
        let hash = hash_key(&lineages.get(slot).key);
        self.lineages.insert_unique(hash, slot, |slot| hash_key(&lineages.get(*slot).key));
    }

    pub(crate) fn remove_lineage(&mut self, lineages: &Table<Lineage>, key: &LineageKey, slot: u32) {
        if let Ok(place) = self.lineages.find_entry(hash_key(key), |known| *known == slot) {
            place.remove();
        }
        if self.lineages.len() * 4 < self.lineages.capacity() {
            self.lineages.shrink_to(self.lineages.len() * 2, |slot| hash_key(&lineages.get(*slot).key));
        }
    }

    pub(crate) fn closed_slot(
        &self,
        closed: &Table<ClosedAccount>,
        lineage: u32,
        account: u32,
    ) -> Option<u32> {
        self.closed
            .find(hash_pair(lineage, account), |slot| {
                let row = closed.get(*slot);
                row.lineage == lineage && row.account.number == account
            })
            .copied()
    }

    pub(crate) fn add_closed(&mut self, closed: &Table<ClosedAccount>, slot: u32) {
        let hash = |slot: u32| {
            let row = closed.get(slot);
            hash_pair(row.lineage, row.account.number)
        };
        self.closed.insert_unique(hash(slot), slot, |slot| hash(*slot));
    }

    /// Takes a closed account out of the index. Call it while the row still stands.
    pub(crate) fn remove_closed(
        &mut self,
        closed: &Table<ClosedAccount>,
        lineage: u32,
        account: u32,
        slot: u32,
    ) {
        if let Ok(place) = self.closed.find_entry(hash_pair(lineage, account), |known| *known == slot) {
            place.remove();
        }
        if self.closed.len() * 4 < self.closed.capacity() {
            self.closed.shrink_to(self.closed.len() * 2, |slot| {
                let row = closed.get(*slot);
                hash_pair(row.lineage, row.account.number)
            });
        }
    }
}

fn place_of(found: Found) -> u32 {
    match found {
        Found::Reservation(slot) => slot,
        Found::Tombstone(slot) => slot | TOMBSTONE,
    }
}

fn id_of(reservations: &Table<Kept>, tombstones: &Table<Tombstone>, place: u32) -> ReservationId {
    match place & TOMBSTONE {
        0 => reservations.get(place).id,
        _ => tombstones.get(place & !TOMBSTONE).id,
    }
}

fn hash_key(key: &LineageKey) -> u64 {
    hash_names(&[
        Some(key.limit.as_str()),
        key.tenant.as_ref().map(TenantId::as_str),
        key.user.as_ref().map(UserId::as_str),
        key.route.as_ref().map(RouteName::as_str),
        key.model.as_ref().map(ModelName::as_str),
        key.region.as_ref().map(RegionName::as_str),
    ])
}

const _: () = assert!(crate::limits::RESERVATIONS_KEPT_MAX < TOMBSTONE as usize);
