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
use crate::event::Effect;
use crate::ids::{ModelName, RegionName, ReservationId, RouteName, TenantId, UserId};
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

/// A slot of the id index with this bit is one of a tombstone.
const TOMBSTONE: u32 = 1 << 31;

#[derive(Debug, Default)]
pub(crate) struct Derived {
    ids: HashTable<u32>,
    pub(crate) keys: Keys,
    lineages: HashTable<u32>,
    closed: HashTable<u32>,
    pub(crate) reservation_timers: Timers,
    pub(crate) tombstone_timers: Timers,
    pub(crate) lineage_timers: Timers,
    /// (since when, id) of reservations with unknown usage.
    pub(crate) unknown: BTreeSet<(u64, ReservationId)>,
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
        let found = self.ids.find(hash_id(id), |entry| id_of(reservations, tombstones, *entry) == id)?;
        Some(match found & TOMBSTONE {
            0 => Found::Reservation(*found),
            _ => Found::Tombstone(found & !TOMBSTONE),
        })
    }

    pub(crate) fn add_id(&mut self, reservations: &Table<Kept>, tombstones: &Table<Tombstone>, found: Found) {
        let entry = entry_of(found);
        let id = id_of(reservations, tombstones, entry);
        self.ids.insert_unique(hash_id(id), entry, |entry| hash_id(id_of(reservations, tombstones, *entry)));
    }

    /// Takes an id out of the index. Call it while the row still stands.
    pub(crate) fn remove_id(
        &mut self,
        reservations: &Table<Kept>,
        tombstones: &Table<Tombstone>,
        id: ReservationId,
        found: Found,
    ) {
        let entry = entry_of(found);
        if let Ok(place) = self.ids.find_entry(hash_id(id), |known| *known == entry) {
            place.remove();
        }
        if self.ids.len() * 4 < self.ids.capacity() {
            self.ids.shrink_to(self.ids.len() * 2, |entry| hash_id(id_of(reservations, tombstones, *entry)));
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

fn entry_of(found: Found) -> u32 {
    match found {
        Found::Reservation(slot) => slot,
        Found::Tombstone(slot) => slot | TOMBSTONE,
    }
}

fn id_of(reservations: &Table<Kept>, tombstones: &Table<Tombstone>, entry: u32) -> ReservationId {
    match entry & TOMBSTONE {
        0 => reservations.get(entry).id,
        _ => tombstones.get(entry & !TOMBSTONE).id,
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
