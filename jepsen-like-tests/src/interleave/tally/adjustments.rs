//! What operators book by hand.

use holdfast_ledger::adjust::{Adjust, Adjustment};
use holdfast_ledger::answer::{Answer, Refusal};

use super::{AHEAD_MS, Place, Tally, refusal};
use crate::interleave::found::Kind;
use crate::interleave::plans::{TENANTS, USERS, unit_of_limit};

impl Tally {
    pub(super) fn on_adjust(&mut self, adjust: &Adjust, answer: &Answer) {
        let too_old = adjust.id.time_ms() < self.floor_ms;
        if let Some(known) = self.adjusted.get(&adjust.id) {
            let right = match answer {
                Answer::Adjusted(receipt) => receipt.command == *known && known == adjust,
                Answer::Refused(Refusal::AdjustmentConflict) => known != adjust,
                // It was forgotten, and can never be booked again.
                Answer::Refused(Refusal::IdTooOld { .. }) => too_old,
                _ => false,
            };
            return self.judge_adjusted(right, adjust, answer, "known");
        }
        let ahead = adjust.id.time_ms() > self.clock_ms + AHEAD_MS;
        if too_old || ahead {
            let refused = |refusal: &Refusal| match refusal {
                Refusal::IdTooOld { .. } => too_old,
                Refusal::IdInFuture { .. } => ahead,
                _ => false,
            };
            return self.judge_adjusted(
                refusal(answer).is_some_and(refused),
                adjust,
                answer,
                "not of its time",
            );
        }
        let booked = self.place_of(adjust).is_some_and(|place| self.book_adjustment(place, &adjust.what));
        if booked {
            self.adjusted.insert(adjust.id, adjust.clone());
        }
        let right = match answer {
            Answer::Adjusted(receipt) => booked && receipt.command == *adjust,
            Answer::Refused(Refusal::Invalid { .. }) => !booked,
            _ => false,
        };
        let expected = if booked { "booked" } else { "invalid" };
        self.judge_adjusted(right, adjust, answer, expected);
    }

    fn judge_adjusted(&mut self, right: bool, adjust: &Adjust, answer: &Answer, expected: &str) {
        if !right {
            self.find(Kind::Conservation, || {
                format!(
                    "adjust {} of {}: {:?}: {answer:?}, expected: {expected}",
                    adjust.id, adjust.lineage, adjust.what
                )
            });
        }
    }

    fn book_adjustment(&mut self, place: Place, what: &Adjustment) -> bool {
        let unit = unit_of_limit(self.lineages.at(place).limit);
        let Some(balance) = self.lineages.balance(place) else { return false };
        match *what {
            Adjustment::Grant(amount) => balance.grant_more(amount),
            Adjustment::Take(amount) => balance.take_away(amount),
            Adjustment::Charge(amount) => {
                let booked = balance.charge(amount);
                if booked {
                    self.charged[unit as usize] += u128::from(amount);
                }
                booked
            }
            Adjustment::Correct(amount) => balance.take_back(amount),
            // No world sends these.
            Adjustment::SetUsed(_) | Adjustment::Boost { .. } | Adjustment::EndBoost { .. } => false,
        }
    }

    fn place_of(&self, adjust: &Adjust) -> Option<Place> {
        let key = &adjust.lineage;
        let named = |names: &[&str], name: Option<&str>| names.iter().position(|known| Some(*known) == name);
        let tenant = named(&TENANTS, key.tenant.as_ref().map(|tenant| tenant.as_str()));
        let user = named(&USERS, key.user.as_ref().map(|user| user.as_str()));
        let found = self
            .lineages
            .iter()
            .find(|(_, row)| row.limit == key.limit.as_str() && row.tenant == tenant && row.user == user);
        found.map(|(place, _)| place)
    }
}
