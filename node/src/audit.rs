//! Checking the whole book while entries go on being applied.

use holdfast_ledger::query::AuditReport;
use holdfast_ledger::{BookSnapshot, record::Header};

use crate::limits::AUDIT_SLOTS_PER_LOOK;
use crate::replica::Replica;

/// An audit of the book as it was when this was begun.
///
/// Going over every row under the replica's lock would stop apply, and with it every answer, for as long as
/// that takes. So the rows are those of a snapshot, and the index of ids, which a snapshot does not have, is
/// compared with the live book a few rows at a time: it must agree with the rows at any moment.
pub struct Audit {
    frozen: BookSnapshot,
}

impl Audit {
    /// Freezes the book. Costs the number of segments, not of rows.
    pub fn begin(replica: &Replica) -> Self {
        Audit { frozen: replica.begin_snapshot() }
    }

    /// The header of the book that is audited.
    pub fn header(&self) -> &Header {
        self.frozen.header()
    }

    /// Checks every rule. Takes as long as there are rows: not on a thread that others wait for.
    pub fn run(self, replica: &Replica) -> AuditReport {
        let mut report = self.frozen.audit();
        // Segments that the snapshot still shares would be copied by whoever writes to them.
        drop(self.frozen);
        let mut from = Some(0);
        while let Some(slot) = from {
            let (found, next) = replica.read(|book| book.audit_index(slot, AUDIT_SLOTS_PER_LOOK));
            report.add(found);
            from = next;
        }
        report
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use holdfast_ledger::command::Release;
    use holdfast_ledger::{Command, ReservationId};
    use holdfast_proto::log::encode_entry;

    use super::*;
    use crate::replica::NoEffects;

    /// For a loaded machine to give both threads a turn.
    const PATIENCE: Duration = Duration::from_secs(60);

    const NOW_MS: u64 = 1_796_083_200_000;

    fn put(replica: &Replica, index: u64) {
        let release = |n: u64| {
            Command::Release(Release {
                id: ReservationId::from_parts(NOW_MS, u128::from(index) << 32 | u128::from(n)),
            })
        };
        let commands: Vec<_> = (0..100).map(release).collect();
        replica.apply(index, 1, encode_entry(NOW_MS, &[], &commands)).unwrap();
    }

    #[test]
    fn entries_are_applied_between_the_beginning_and_the_end_of_an_audit() {
        let replica = Replica::new(Box::new(NoEffects));
        put(&replica, 1);
        let audit = Audit::begin(&replica);
        let digest = audit.header().digest;
        put(&replica, 2);
        let report = audit.run(&replica);
        assert!(report.ok, "{:?}", report.violations);
        assert_eq!((report.revision, report.digest), (100, digest));
        assert_eq!(replica.revision(), 200);
    }

    /// The lock is not held while the rows are gone over: sooner or later a writer gets several entries in
    /// during one audit, and what every audit sees is whole.
    #[test]
    fn apply_goes_on_while_a_large_book_is_audited() {
        let replica = Replica::new(Box::new(NoEffects));
        for index in 1..=1_000 {
            put(&replica, index);
        }
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut index = 1_000;
                while !ended.load(Ordering::SeqCst) {
                    index += 1;
                    put(&replica, index);
                }
            });
            let began = Instant::now();
            loop {
                let audit = Audit::begin(&replica);
                let before = replica.revision();
                let report = audit.run(&replica);
                let applied = replica.revision() - before;
                assert!(report.ok, "{:?}", report.violations);
                assert_eq!(report.revision % 100, 0, "an audit saw half an entry");
                if applied >= 500 {
                    break;
                }
                assert!(began.elapsed() < PATIENCE, "nothing is applied during an audit");
            }
            ended.store(true, Ordering::SeqCst);
        });
    }
}
