//! Real-time order: what had returned when a call was made is ordered before it.
//!
//! A write has a revision of its own, so everything that returned before it was called has a
//! smaller one. A read or a refusal carries the last revision applied, so there smaller or equal.

use super::{Finding, Findings};
use crate::history::{Operation, Outcome};

/// Sweeps the calls by time of invocation, with the largest revision returned so far.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("real_time");
    let answered = |operation: &&Operation| {
        operation.revision.is_some() && matches!(operation.outcome, Outcome::Ok | Outcome::Rejected)
    };
    let mut by_call: Vec<&Operation> = operations.iter().filter(answered).collect();
    let mut by_return: Vec<&Operation> =
        by_call.iter().copied().filter(|operation| operation.returned_us.is_some()).collect();
    by_call.sort_by_key(|operation| operation.invoked_us);
    by_return.sort_by_key(|operation| operation.returned_us);

    let mut returned = by_return.into_iter().peekable();
    let mut latest: Option<&Operation> = None;
    for operation in by_call {
        while let Some(before) = returned.next_if(|before| before.precedes(operation)) {
            if latest.is_none_or(|latest| before.revision > latest.revision) {
                latest = Some(before);
            }
        }
        let Some(before) = latest else { continue };
        let in_order = match operation.is_acknowledged_write() {
            true => before.revision < operation.revision,
            false => before.revision <= operation.revision,
        };
        if !in_order {
            findings.violation(format!(
                "{} had returned before {} was called",
                before.describe(),
                operation.describe()
            ));
        }
    }
    findings.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn at(client: u32, invoked_us: u64, returned_us: u64, revision: u64) -> Operation {
        let mut operation = fixture::reserve(client, invoked_us, returned_us, u128::from(revision));
        operation.revision = Some(revision);
        operation
    }

    #[test]
    fn overlapping_calls_may_be_ordered_either_way() {
        assert_eq!(check(&[at(1, 0, 100, 2), at(2, 50, 150, 1)]), vec![]);
    }

    #[test]
    fn a_write_ordered_before_one_that_had_returned_is_found() {
        assert_eq!(check(&[at(1, 0, 40, 2), at(2, 50, 150, 1)]).len(), 1);
    }

    #[test]
    fn two_writes_may_not_share_a_revision_but_a_read_may_repeat_one() {
        assert_eq!(check(&[at(1, 0, 40, 2), at(2, 50, 150, 2)]).len(), 1);
        let mut read = fixture::get(2, 50, 150, 2);
        read.revision = Some(2);
        assert_eq!(check(&[at(1, 0, 40, 2), read.clone()]), vec![]);
        read.revision = Some(1);
        assert_eq!(check(&[at(1, 0, 40, 2), read]).len(), 1);
    }

    #[test]
    fn a_write_after_a_read_is_newer_than_what_was_read() {
        let mut read = fixture::get(2, 0, 10, 2);
        read.revision = Some(5);
        assert_eq!(check(&[read, at(1, 20, 40, 5)]).len(), 1);
    }
}
