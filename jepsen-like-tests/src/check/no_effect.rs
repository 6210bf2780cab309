//! *Certainly no effect* means it: a call that was reported as unavailable stands nowhere in the
//! committed order, and a reservation that was reported as rejected was never admitted for good.

use std::collections::BTreeMap;

use super::replay::Replayed;
use super::{Finding, Findings};
use crate::history::{Call, Operation, Outcome};

/// Compares with the replayed order.
pub fn check(operations: &[Operation], replayed: &Replayed) -> Vec<Finding> {
    let mut findings = Findings::of("no_effect");
    let mut by_id: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        by_id.entry(&operation.id).or_default().push(operation);
    }
    for operation in operations.iter().filter(|operation| operation.call.is_write()) {
        let asked_elsewhere = || {
            by_id[operation.id.as_str()]
                .iter()
                .any(|other| !std::ptr::eq(*other, operation) && other.call == operation.call)
        };
        match operation.outcome {
            Outcome::Unavailable => {
                if let Some(revision) = replayed.revision_of(operation)
                    && !asked_elsewhere()
                {
                    findings.violation(format!("{}: stands at revision {revision}", operation.describe()));
                }
            }
            Outcome::Rejected if matches!(operation.call, Call::Reserve { .. }) => {
                if let Some(state) = replayed.final_state(&operation.id)
                    && state != "RELEASED"
                    && !asked_elsewhere()
                {
                    findings.violation(format!("{}: is {state} in the book", operation.describe()));
                }
            }
            _ => {}
        }
    }
    findings.done()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check::replay;
    use crate::fixture::Story;

    fn found(story: &Story) -> usize {
        let (replayed, _) = replay::check(&story.operations, &story.applied());
        check(&story.operations, &replayed.unwrap()).len()
    }

    #[test]
    fn effects_of_acknowledged_calls_pass() {
        assert_eq!(found(&Story::of_one_reservation()), 0);
    }

    #[test]
    fn an_unavailable_call_in_the_order_is_found() {
        let mut story = Story::of_one_reservation();
        let start = story.operations.last_mut().unwrap();
        (start.outcome, start.revision) = (Outcome::Unavailable, None);
        assert_eq!(found(&story), 1);
    }

    #[test]
    fn a_rejected_reservation_that_is_held_is_found() {
        let mut story = Story::of_one_reservation();
        let reserve = &mut story.operations[1];
        assert!(matches!(reserve.call, Call::Reserve { .. }));
        (reserve.outcome, reserve.revision) = (Outcome::Rejected, None);
        assert_eq!(found(&story), 1);
    }
}
