//! Idempotency keys: per tenant, which reservation was made with which. Derived from the rows; a key goes
//! with its reservation.

use hashbrown::HashTable;

use crate::book::hash::hash_names;
use crate::book::reservation::Kept;
use crate::book::table::Table;
use crate::ids::{IdempotencyKey, TenantId};

/// Slots of the reservations that were made with a key.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    slots: HashTable<u32>,
}

impl Keys {
    /// The reservation that a tenant made with a key.
    pub(crate) fn find(
        &self,
        reservations: &Table<Kept>,
        tenant: &TenantId,
        key: &IdempotencyKey,
    ) -> Option<u32> {
        let is_it = |slot: &u32| {
            let row = reservations.get(*slot);
            row.key() == Some(key) && row.hold.subject.tenant == *tenant
        };
        self.slots.find(hash(tenant, key), is_it).copied()
    }

    /// Takes a reservation in, if it was made with a key that is not known.
    pub(crate) fn add(&mut self, reservations: &Table<Kept>, slot: u32) {
        if let Some(hash) = hash_of(reservations.get(slot)) {
            self.slots.insert_unique(hash, slot, |slot| hash_of(reservations.get(*slot)).unwrap_or(0));
        }
    }

    /// Takes a reservation out. Call it while the row still stands.
    pub(crate) fn remove(&mut self, reservations: &Table<Kept>, slot: u32) {
        let Some(hash) = hash_of(reservations.get(slot)) else { return };
        if let Ok(place) = self.slots.find_entry(hash, |known| *known == slot) {
            place.remove();
        }
        if self.slots.len() * 4 < self.slots.capacity() {
            let hash = |slot: &u32| hash_of(reservations.get(*slot)).unwrap_or(0);
            self.slots.shrink_to(self.slots.len() * 2, hash);
        }
    }
}

fn hash_of(row: &Kept) -> Option<u64> {
    row.key().map(|key| hash(&row.hold.subject.tenant, key))
}

fn hash(tenant: &TenantId, key: &IdempotencyKey) -> u64 {
    hash_names(&[Some(tenant.as_str()), Some(key.as_str())])
}
