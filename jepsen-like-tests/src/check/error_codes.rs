//! Every error is one of the documented ones, and its class fits the outcome that the client
//! reported: only a code documented as *certainly no effect* may become unavailable or rejected.

use super::{Finding, Findings};
use crate::codes::{Effect, effect_of};
use crate::history::{Operation, Outcome};

/// Looks each code up.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    let mut findings = Findings::of("error_codes");
    for operation in operations {
        let code = match (operation.outcome, &operation.code) {
            (Outcome::Ok, None) => continue,
            (Outcome::Ok, Some(code)) => {
                findings.violation(format!("{}: an error code {code} on success", operation.describe()));
                continue;
            }
            (_, None) => {
                findings.violation(format!("{}: no error code", operation.describe()));
                continue;
            }
            (_, Some(code)) => code,
        };
        match (effect_of(code), operation.outcome) {
            (None, _) => findings.violation(format!("{}: undocumented code {code}", operation.describe())),
            (Some(Effect::Unknown), Outcome::Rejected | Outcome::Unavailable) => findings
                .violation(format!("{}: code {code} says nothing about the effect", operation.describe())),
            _ => {}
        }
    }
    findings.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;
    use crate::fixture;

    fn ended(outcome: Outcome, code: Option<&str>) -> Vec<Operation> {
        let mut operation = fixture::reserve(1, 0, 10, 7);
        operation.outcome = outcome;
        operation.code = code.map(str::to_owned);
        vec![operation]
    }

    #[test]
    fn documented_codes_pass() {
        assert_eq!(check(&ended(Outcome::Ok, None)), vec![]);
        assert_eq!(check(&ended(Outcome::Unknown, Some(codes::LOST))), vec![]);
        assert_eq!(check(&ended(Outcome::Unavailable, Some("NO_LEADER"))), vec![]);
    }

    #[test]
    fn a_code_from_nowhere_is_found() {
        assert_eq!(check(&ended(Outcome::Rejected, Some("OOPS"))).len(), 1);
        assert_eq!(check(&ended(Outcome::Rejected, None)).len(), 1);
    }

    #[test]
    fn a_time_out_reported_as_no_effect_is_found() {
        assert_eq!(check(&ended(Outcome::Unavailable, Some(codes::LOST))).len(), 1);
    }
}
