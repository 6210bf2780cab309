//! What is granted is what was asked; less only of a unit with a minimum, never less than that, and the
//! receipt says so. Judged from the answers alone.

use super::{Finding, Findings};
use crate::history::{Call, Operation};

/// Compares each admission with what was asked.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("granted");
    for operation in operations {
        if let Some(problem) = problem_of(operation) {
            findings.violation(format!("{}: {problem}", operation.describe()));
        }
    }
    findings.done()
}

fn problem_of(operation: &Operation) -> Option<String> {
    let (Call::Reserve { amounts, minimum, .. }, Some(receipt)) = (&operation.call, operation.receipt())
    else {
        return None;
    };
    amounts.iter().find_map(|(unit, asked)| {
        let granted = receipt.reserved.get(unit).copied().unwrap_or(0);
        let told = receipt.extras.asked.get(unit);
        let fits = match granted == *asked {
            true => told.is_none(),
            false => {
                granted < *asked
                    && minimum.get(unit).is_some_and(|least| granted >= *least)
                    && told == Some(asked)
            }
        };
        let least = minimum.get(unit);
        (!fits).then(|| format!("{granted} {unit} of {asked}, at least {least:?}, told as {told:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn granted(tokens: u64, least: Option<u64>, told: bool) -> Operation {
        let mut operation = fixture::reserve(1, 0, 10, 7);
        let receipt = fixture::receipt_mut(&mut operation);
        receipt.reserved.insert("tokens".into(), tokens);
        if told {
            receipt.extras.asked.insert("tokens".into(), fixture::TOKENS);
        }
        if let (Call::Reserve { minimum, .. }, Some(least)) = (&mut operation.call, least) {
            minimum.insert("tokens".into(), least);
        }
        operation
    }

    #[test]
    fn all_of_it_or_less_within_the_minimum_passes() {
        let asked = fixture::TOKENS;
        assert_eq!(check(&[granted(asked, None, false), granted(asked - 1, Some(5), true)]), vec![]);
    }

    #[test]
    fn too_little_too_much_and_less_that_is_not_told_are_found() {
        let asked = fixture::TOKENS;
        for wrong in [
            granted(asked - 1, None, true),
            granted(4, Some(5), true),
            granted(asked + 1, Some(5), true),
            granted(asked - 1, Some(5), false),
            granted(asked, Some(5), true),
        ] {
            assert_eq!(check(&[wrong]).len(), 1);
        }
    }
}
