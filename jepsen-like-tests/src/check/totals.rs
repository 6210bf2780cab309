//! The books add up to what the clients were told: for a limit that all of a tenant's reservations
//! fall under, `used` is the sum of the settled amounts and `held` that of the open ones, each id once.
//!
//! This is independent of the ledger's code. Ids whose last outcome is unknown widen the sum to a
//! range; a run resolves them before it ends, so that the range is a point.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Findings};
use crate::evidence::FinalUsage;
use crate::history::{Call, Operation, Outcome, ReceiptFacts};

/// What is known of one reservation at the end.
struct Last<'a> {
    tenant: &'a str,
    receipt: Option<&'a ReceiptFacts>,
    /// The most that calls without a known outcome can have added or moved, by unit.
    open: BTreeMap<&'a str, u64>,
}

/// Adds up each tenant's reservations and compares.
pub fn check(operations: &[Operation], usage: &[FinalUsage]) -> Vec<Finding> {
    let mut findings = Findings::of("totals");
    let lasts = last_known(operations);
    for read in usage {
        let (mut used, mut held, mut slack) = (0u128, 0u128, 0u128);
        for last in lasts.values().filter(|last| last.tenant == read.tenant) {
            slack += u128::from(last.open.get(read.unit.as_str()).copied().unwrap_or(0));
            let Some(receipt) = last.receipt else { continue };
            let amount_of =
                |words: &BTreeMap<String, u64>| u128::from(words.get(&read.unit).copied().unwrap_or(0));
            match receipt.rank() {
                3 => used += receipt.used().map_or(0, amount_of),
                _ => held += amount_of(&receipt.reserved),
            }
        }
        for (name, expected, found) in [("used", used, read.used), ("held", held, read.held)] {
            let found = u128::from(found);
            if found > expected + slack || expected > found + slack {
                findings.violation(format!(
                    "{} / {}: {name} is {found}, the acknowledged reservations add up to {expected} \
                     (unknown outcomes explain at most {slack})",
                    read.tenant, read.limit
                ));
            }
        }
    }
    findings.done()
}

fn last_known(operations: &[Operation]) -> BTreeMap<&str, Last<'_>> {
    let mut by_id: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in operations.iter().filter(|operation| !operation.id.is_empty()) {
        by_id.entry(operation.about()).or_default().push(operation);
    }
    let keys: Keys =
        operations.iter().filter(|operation| operation.receipt().is_some()).filter_map(key_of).collect();
    by_id.into_iter().filter_map(|(id, calls)| Some((id, last_of(&calls, &keys)?))).collect()
}

/// Tenants and idempotency keys.
type Keys<'a> = BTreeSet<(&'a str, &'a str)>;

fn key_of(operation: &Operation) -> Option<(&str, &str)> {
    match &operation.call {
        Call::Reserve { tenant, key: Some(key), .. } => Some((tenant, key)),
        _ => None,
    }
}

/// `None` for an id that nobody reserved. A reserve whose key stands for a known reservation is that one or none.
fn last_of<'a>(calls: &[&'a Operation], known: &Keys<'_>) -> Option<Last<'a>> {
    let tenant = calls.iter().find_map(|operation| match &operation.call {
        Call::Reserve { tenant, .. } => Some(tenant.as_str()),
        _ => None,
    })?;
    let newest = calls.iter().filter(|operation| operation.receipt().is_some()).max_by_key(|op| op.revision);
    let mut last =
        Last { tenant, receipt: newest.and_then(|operation| operation.receipt()), open: BTreeMap::new() };
    for unknown in calls.iter().filter(|operation| operation.outcome == Outcome::Unknown) {
        let learnt_later = calls.iter().any(|later| later.outcome == Outcome::Ok && unknown.precedes(later));
        let is_known_by_key = key_of(unknown).is_some_and(|key| known.contains(&key));
        if !learnt_later && !is_known_by_key {
            last.widen_by(&unknown.call);
        }
    }
    Some(last)
}

impl<'a> Last<'a> {
    /// The call was asked, and never learnt of afterwards: it may have happened.
    fn widen_by(&mut self, call: &'a Call) {
        let held = || self.receipt.into_iter().flat_map(|receipt| &receipt.reserved);
        let moved: Vec<(&'a String, &'a u64)> = match call {
            Call::Reserve { amounts, .. } => amounts.iter().collect(),
            Call::Settle { actual, .. } | Call::Correct { actual, .. } | Call::Resolve { actual } => {
                actual.iter().chain(held()).collect()
            }
            Call::Release => held().collect(),
            Call::Start { .. }
            | Call::ReportUnknown { .. }
            | Call::Freeze { .. }
            | Call::Unfreeze { .. }
            | Call::Get
            | Call::Publish { .. } => Vec::new(),
        };
        for (unit, amount) in moved {
            *self.open.entry(unit).or_default() += *amount;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn read(used: u64, held: u64) -> Vec<FinalUsage> {
        vec![FinalUsage {
            tenant: "acme".into(),
            limit: "tenant-tokens".into(),
            unit: "tokens".into(),
            used,
            held,
        }]
    }

    fn settled(id: u128, tokens: u64) -> Operation {
        let mut operation = fixture::reserve(1, 0, 10, id);
        let receipt = fixture::receipt_mut(&mut operation);
        receipt.state = "SETTLED".to_owned();
        receipt.actual = Some([("tokens".to_owned(), tokens)].into());
        operation
    }

    #[test]
    fn sums_that_agree_pass() {
        let operations = [settled(1, 30), settled(2, 12), fixture::reserve(1, 0, 10, 3)];
        assert_eq!(check(&operations, &read(42, fixture::TOKENS)), vec![]);
    }

    #[test]
    fn an_amount_counted_twice_or_lost_is_found() {
        let operations = [settled(1, 30), settled(2, 12)];
        assert_eq!(check(&operations, &read(72, 0)).len(), 1);
        assert_eq!(check(&operations, &read(30, 0)).len(), 1);
        assert_eq!(check(&operations, &read(42, 5)).len(), 1);
    }

    #[test]
    fn an_unknown_reserve_explains_its_own_amount_and_no_more() {
        let mut unknown = fixture::reserve(1, 0, 10, 9);
        unknown.outcome = Outcome::Unknown;
        unknown.answered = None;
        let operations = [settled(1, 30), unknown];
        assert_eq!(check(&operations, &read(30, 0)), vec![]);
        assert_eq!(check(&operations, &read(30, fixture::TOKENS)), vec![]);
        assert_eq!(check(&operations, &read(30, fixture::TOKENS + 1)).len(), 1);
    }
}
