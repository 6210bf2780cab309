//! The same receipt for the same id, in every answer that any client got: one admission, one end.
//! Judged from the answers alone.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::history::{Operation, ReceiptFacts};

/// Compares all receipts of each id.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("receipts");
    let mut by_id: BTreeMap<&str, Vec<(&Operation, &ReceiptFacts)>> = BTreeMap::new();
    for operation in operations {
        if let Some(receipt) = operation.receipt()
            && !operation.is_ahead_of_the_book()
        {
            by_id.entry(operation.about()).or_default().push((operation, receipt));
        }
    }
    for (id, mut answers) in by_id {
        answers.sort_by_key(|(operation, _)| operation.revision);
        for pair in answers.windows(2) {
            let [(_, before), (operation, after)] = pair else { continue };
            if let Some(problem) = contradiction(before, after) {
                findings.violation(format!("{id}: {problem}, in {}", operation.describe()));
            }
        }
    }
    findings.done()
}

fn contradiction(before: &ReceiptFacts, after: &ReceiptFacts) -> Option<String> {
    if !before.same_admission(after) {
        return Some(format!(
            "admitted at revision {} and again, differently, at {}",
            before.reserved_revision, after.reserved_revision
        ));
    }
    if after.rank() < before.rank() {
        return Some(format!("went from {} back to {}", before.state, after.state));
    }
    if before.operation.is_some() && before.operation != after.operation {
        return Some(format!("bound to {:?} and then to {:?}", before.operation, after.operation));
    }
    let ended = before.rank() == 3;
    // Only a correction changes the state of what has ended, and only once.
    let corrected = before.extras.corrected.is_none() && after.extras.corrected.is_some();
    if before.extras.corrected.is_some() && before.extras != after.extras {
        return Some(format!("corrected as {:?} and again as {:?}", before.extras, after.extras));
    }
    if ended
        && ((!corrected && before.state != after.state)
            || (&before.actual, before.ended_revision) != (&after.actual, after.ended_revision))
    {
        return Some(format!(
            "ended as {} with {:?} at {:?} and again as {} with {:?} at {:?}",
            before.state,
            before.actual,
            before.ended_revision,
            after.state,
            after.actual,
            after.ended_revision
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_same_receipt_twice_passes() {
        assert_eq!(check(&[fixture::reserve(1, 0, 10, 7), fixture::get(2, 20, 30, 7)]), vec![]);
    }

    #[test]
    fn a_second_admission_is_found() {
        let mut again = fixture::reserve(2, 20, 30, 7);
        fixture::receipt_mut(&mut again).reserved_revision += 5;
        again.revision = Some(99);
        assert_eq!(check(&[fixture::reserve(1, 0, 10, 7), again]).len(), 1);
    }

    #[test]
    fn a_second_end_is_found() {
        let settled = |revision: u64, tokens: u64| {
            let mut operation = fixture::reserve(1, 0, 10, 7);
            operation.revision = Some(revision);
            let receipt = fixture::receipt_mut(&mut operation);
            receipt.state = "SETTLED".to_owned();
            receipt.actual = Some([("tokens".to_owned(), tokens)].into());
            operation
        };
        assert_eq!(check(&[settled(8, 3), settled(9, 3)]), vec![]);
        assert_eq!(check(&[settled(8, 3), settled(9, 4)]).len(), 1);
    }

    #[test]
    fn a_second_correction_is_found() {
        let corrected = |revision: u64, tokens: Option<u64>| {
            let mut operation = fixture::reserve(1, 0, 10, 7);
            operation.revision = Some(revision);
            let receipt = fixture::receipt_mut(&mut operation);
            receipt.state = if tokens.is_some() { "SETTLED_WITH_DEBT" } else { "SETTLED" }.to_owned();
            receipt.extras.estimated = true;
            receipt.extras.corrected = tokens.map(|tokens| [("tokens".to_owned(), tokens)].into());
            operation
        };
        let once = [corrected(8, None), corrected(9, Some(3)), corrected(10, Some(3))];
        assert_eq!(check(&once), vec![]);
        assert_eq!(check(&[corrected(9, Some(3)), corrected(10, Some(4))]).len(), 1);
        assert_eq!(check(&[corrected(9, Some(3)), corrected(10, None)]).len(), 1);
    }

    #[test]
    fn a_life_does_not_go_backwards() {
        let mut started = fixture::reserve(1, 0, 10, 7);
        fixture::receipt_mut(&mut started).state = "STARTED".to_owned();
        let mut later = fixture::get(2, 20, 30, 7);
        later.revision = Some(99);
        assert_eq!(check(&[started, later]).len(), 1);
    }
}
