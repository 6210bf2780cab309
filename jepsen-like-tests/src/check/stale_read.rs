//! No stale read: a read of a reservation knows at least what was acknowledged of it before the
//! read was made. Judged by the reservation's own life, without revisions and without the ledger,
//! so that a wrong revision cannot hide it.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::history::{Answered, Operation, Outcome};

/// Compares each read with the acknowledged writes of its id.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("stale_read");
    let mut known: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        if operation.outcome == Outcome::Ok && !operation.id.is_empty() {
            known.entry(operation.about()).or_default().push(operation);
        }
    }
    for read in operations.iter().filter(|operation| !operation.call.is_write()) {
        if !matches!(read.outcome, Outcome::Ok | Outcome::Rejected) {
            continue;
        }
        for earlier in known.get(read.id.as_str()).into_iter().flatten() {
            if earlier.precedes(read)
                && !earlier.is_ahead_of_the_book()
                && let Some(problem) = knows_less(read, earlier)
            {
                findings.violation(format!("{}: {problem} after {}", read.describe(), earlier.describe()));
            }
        }
    }
    findings.done()
}

fn knows_less(read: &Operation, earlier: &Operation) -> Option<String> {
    let acknowledged = match &earlier.answered {
        Some(Answered::Receipt(receipt)) => receipt,
        _ => return None,
    };
    match &read.answered {
        Some(Answered::Receipt(receipt)) if receipt.rank() >= acknowledged.rank() => None,
        Some(Answered::Receipt(receipt)) => {
            Some(format!("read {} where {} was acknowledged", receipt.state, acknowledged.state))
        }
        // An ended reservation is forgotten in the end, an open one never.
        _ if acknowledged.rank() >= 3 => None,
        _ => Some(format!("read nothing where {} was acknowledged", acknowledged.state)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_read_at_the_same_time_may_miss_the_write() {
        let read = fixture::absent(2, 5, 15, 7);
        assert_eq!(check(&[fixture::reserve(1, 0, 10, 7), read]), vec![]);
    }

    #[test]
    fn a_read_afterwards_may_not() {
        let read = fixture::absent(2, 11, 15, 7);
        assert_eq!(check(&[fixture::reserve(1, 0, 10, 7), read]).len(), 1);
    }

    #[test]
    fn an_older_state_is_stale() {
        let mut started = fixture::reserve(1, 0, 10, 7);
        fixture::receipt_mut(&mut started).state = "STARTED".to_owned();
        let read = fixture::get(2, 11, 15, 7);
        assert_eq!(check(&[started, read]).len(), 1);
    }
}
