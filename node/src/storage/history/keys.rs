//! The keys of the history index. One tree, so that one batch changes everything or nothing. Layout: docs/format.md.

use super::record::{HistoryId, HistoryRecord};

/// Facts about the index itself.
pub(super) const META: &[u8] = b"m";

const RECORD: u8 = b'r';
const IDENTITY: u8 = b'i';
const TENANT: u8 = b't';

/// Bytes that place a record: revision, log index, number within the entry.
pub(super) const PLACE_BYTES: usize = 20;

/// Where a record stands in the order of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) revision: u64,
    pub(super) index: u64,
    pub(super) number: u32,
}

impl Place {
    pub(super) fn bytes(&self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..8].copy_from_slice(&self.revision.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.index.to_be_bytes());
        bytes[16..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }
}

/// `r` place → the record.
pub(super) fn record(place: &[u8]) -> Vec<u8> {
    let mut key = vec![RECORD];
    key.extend_from_slice(place);
    key
}

/// The prefix of all records.
pub(super) const RECORDS: [u8; 1] = [RECORD];

/// `i` kind identity → place.
pub(super) fn identity(id: &HistoryId) -> Vec<u8> {
    let mut key = vec![IDENTITY];
    match id {
        HistoryId::Reservation(id) => {
            key.push(1);
            key.extend_from_slice(id);
        }
        HistoryId::Event(number) => {
            key.push(2);
            key.extend_from_slice(&number.to_be_bytes());
        }
        HistoryId::Statement(name) => {
            key.push(3);
            key.extend_from_slice(name);
        }
        HistoryId::Correction(id) => {
            key.push(4);
            key.extend_from_slice(id);
        }
    }
    key
}

/// `t` length of the name, name: the prefix of a tenant's keys.
pub(super) fn tenant(tenant: &str) -> Vec<u8> {
    let mut key = vec![TENANT];
    key.extend_from_slice(&(tenant.len() as u32).to_be_bytes());
    key.extend_from_slice(tenant.as_bytes());
    key
}

/// `t` length, name, place → book time.
pub(super) fn tenant_place(record: &HistoryRecord, place: &[u8]) -> Option<Vec<u8>> {
    record.tenant.as_deref().map(|name| {
        let mut key = tenant(name);
        key.extend_from_slice(place);
        key
    })
}
