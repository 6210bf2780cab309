//! Nothing is admitted for a subject while an operator's freeze is on it: from the freeze's answer until
//! somebody may have lifted it. Judged from the answers alone.

use super::{Finding, Findings};
use crate::history::{Call, FrozenSubject, Operation, Outcome};

/// Compares admissions with the freezes that were acknowledged before they were asked for.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("frozen");
    let freezes: Vec<_> = operations.iter().filter_map(freeze_of).collect();
    let lifts: Vec<_> = operations.iter().filter_map(lift_of).collect();
    for admission in operations.iter().filter(|operation| is_admission(operation)) {
        let stands = |freeze: &&(&Operation, &FrozenSubject)| {
            let (frozen, subject) = *freeze;
            let of_it = lifts.iter().filter(|(_, lifted)| lifted == subject);
            concerns(subject, &admission.call)
                && frozen.precedes(admission)
                && of_it.into_iter().all(|(lift, _)| lift.precedes(frozen) || admission.precedes(lift))
        };
        if let Some((frozen, _)) = freezes.iter().find(stands) {
            findings.violation(format!("{}: admitted after {}", admission.describe(), frozen.describe()));
        }
    }
    findings.done()
}

fn freeze_of(operation: &Operation) -> Option<(&Operation, &FrozenSubject)> {
    match &operation.call {
        Call::Freeze { subject } if operation.outcome == Outcome::Ok => Some((operation, subject)),
        _ => None,
    }
}

/// What may have lifted a freeze, whatever came of it.
fn lift_of(operation: &Operation) -> Option<(&Operation, &FrozenSubject)> {
    match &operation.call {
        Call::Unfreeze { subject } => Some((operation, subject)),
        _ => None,
    }
}

/// Whether the reservation was admitted by this very call.
fn is_admission(operation: &Operation) -> bool {
    let revision = operation.receipt().map(|receipt| receipt.reserved_revision);
    matches!(operation.call, Call::Reserve { .. }) && revision.is_some() && revision == operation.revision
}

fn concerns(subject: &FrozenSubject, call: &Call) -> bool {
    let Call::Reserve { tenant, user, route, .. } = call else { return false };
    subject.tenant == *tenant && subject.route == *route && (subject.user.is_none() || subject.user == *user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn operators(call: Call, invoked_us: u64, returned_us: u64) -> Operation {
        let mut operation = fixture::reserve(2, invoked_us, returned_us, 3);
        (operation.id, operation.call, operation.answered) = (String::new(), call, None);
        operation
    }

    fn subject() -> FrozenSubject {
        FrozenSubject { tenant: "acme".into(), user: None, route: "chat".into() }
    }

    #[test]
    fn an_admission_of_a_frozen_subject_is_found() {
        let freeze = operators(Call::Freeze { subject: subject() }, 0, 10);
        assert_eq!(check(&[freeze.clone(), fixture::reserve(1, 11, 20, 7)]).len(), 1);
        assert_eq!(check(&[freeze, fixture::reserve(1, 5, 20, 7)]), vec![], "at the same time");
    }

    #[test]
    fn another_subject_is_not_concerned() {
        let user = Some("somebody".to_owned());
        let freeze = operators(Call::Freeze { subject: FrozenSubject { user, ..subject() } }, 0, 10);
        assert_eq!(check(&[freeze, fixture::reserve(1, 11, 20, 7)]), vec![]);
    }

    #[test]
    fn what_may_have_been_lifted_is_not_judged() {
        let freeze = operators(Call::Freeze { subject: subject() }, 0, 10);
        let mut lift = operators(Call::Unfreeze { subject: subject() }, 12, 14);
        lift.outcome = Outcome::Unknown;
        assert_eq!(check(&[freeze.clone(), lift.clone(), fixture::reserve(1, 15, 20, 7)]), vec![]);
        (lift.invoked_us, lift.returned_us) = (21, Some(22));
        assert_eq!(check(&[freeze, lift, fixture::reserve(1, 15, 20, 7)]).len(), 1);
    }
}
