//! A book as far as its future depends on it: without revisions, slots and the numbers of events.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::Hasher;

use holdfast_ledger::{Book, Record};

/// A hash of what the book is, the same for orders that differ only in when what was applied.
pub(super) fn hash(book: &mut Book) -> u128 {
    let snapshot = book.snapshot();
    let lineages: BTreeMap<u32, String> = snapshot
        .records()
        .filter_map(|record| match record {
            Record::Lineage(slot, row) => Some((slot, row.key.to_string())),
            _ => None,
        })
        .collect();
    let name = |slot: u32| lineages.get(&slot).map_or("", String::as_str);
    let mut lines: Vec<String> = snapshot
        .records()
        .map(|record| match record {
            Record::Header(header) => {
                format!("{} {} {}", header.clock_ms, header.id_floor_ms, header.generation)
            }
            Record::Lineage(_, row) => format!("{row:?}"),
            Record::ClosedAccount(_, row) => format!("{} {:?}", name(row.lineage), row.account),
            Record::Reservation(_, mut row) => {
                let mut line = String::new();
                for leg in row.legs.iter() {
                    let _ = write!(line, "{}/{}/{} ", name(leg.lineage), leg.account, leg.amount);
                }
                row.legs = [].into();
                row.reserved_revision = 0;
                if let Some(ended) = &mut row.ended {
                    ended.revision = 0;
                }
                let _ = write!(line, "{row:?}");
                line
            }
            Record::Tombstone(_, row) => format!("{row:?}"),
            Record::Event(event) => format!("{:?} {}", event.kind, event.at_ms),
            other => format!("{other:?}"),
        })
        .collect();
    lines.sort_unstable();
    let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
    hashers[1].write_u8(1);
    for line in &lines {
        for hasher in &mut hashers {
            hasher.write(line.as_bytes());
            hasher.write_u8(0xff);
        }
    }
    u128::from(hashers[0].finish()) << 64 | u128::from(hashers[1].finish())
}
