//! One reservation for one idempotency key of a tenant, under whatever ids it was asked for. Judged from
//! the answers alone.

use std::collections::BTreeMap;

use super::{Finding, Findings};
use crate::history::{Call, Operation};

/// Compares what was answered to each key.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("keys");
    let mut first: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for operation in operations {
        let (Call::Reserve { tenant, key: Some(key), .. }, Some(receipt)) =
            (&operation.call, operation.receipt())
        else {
            continue;
        };
        if receipt.extras.key.as_ref() != Some(key) {
            findings.violation(format!(
                "{}: answered with key {:?}",
                operation.describe(),
                receipt.extras.key
            ));
        }
        let known = first.entry((tenant, key)).or_insert(&receipt.id);
        if *known != receipt.id {
            findings.violation(format!(
                "key {key} of {tenant} stands for {known} and for {}, in {}",
                receipt.id,
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

    fn keyed(asked: u128, answered: u128) -> Operation {
        let mut operation = fixture::reserve(1, 0, 10, answered);
        operation.id = fixture::id(asked).to_string();
        fixture::receipt_mut(&mut operation).extras.key = Some("k".into());
        if let Call::Reserve { key, .. } = &mut operation.call {
            *key = Some("k".into());
        }
        operation
    }

    #[test]
    fn the_first_one_under_two_ids_passes() {
        assert_eq!(check(&[keyed(1, 1), keyed(2, 1)]), vec![]);
    }

    #[test]
    fn a_second_reservation_of_a_key_is_found() {
        assert_eq!(check(&[keyed(1, 1), keyed(2, 2)]).len(), 1);
    }

    #[test]
    fn a_receipt_without_the_key_is_found() {
        let mut operation = keyed(1, 1);
        fixture::receipt_mut(&mut operation).extras.key = None;
        assert_eq!(check(&[operation]).len(), 1);
    }
}
