//! Reserve in the shadow lane: decide and book there, and never refuse.

use std::sync::Arc;

use crate::answer::{Answer, Refusal, Tier};
use crate::apply::reserve::{Admission, Legs, check_form, check_legs, no_plan, over_reservation_max};
use crate::book::{Book, Path};
use crate::command::{Request, Reserve};
use crate::limits::SHADOW_ACCOUNTS_MAX;
use crate::shadow::{ShadowDecision, Undecided};
use crate::unit::Amounts;

impl Book {
    /// Admits whatever is well formed. What the shadow lane would have admitted is held there; what it would
    /// have refused is held nowhere, since a refused request uses up nothing in the enforced lane either.
    pub(super) fn reserve_in_shadow(
        &mut self,
        path: &mut Path,
        reserve: &Reserve,
    ) -> Result<Answer, Refusal> {
        let plan = &self.generations.plan().ok_or_else(no_plan)?.published.plan;
        let route = &plan.routes[path.route];
        let asked = check_form(&reserve.request, route)?;
        let hold_ttl_ms = reserve.request.hold_ttl_ms.unwrap_or(route.hold_ttl_ms);
        let grace_ms = plan.expiring_grace_ms;
        let held = match over_reservation_max(&asked, route) {
            Some(_) => Err(ShadowDecision::Undecided(Undecided::ReservationMax)),
            None => self.hold_in_shadow(path, &asked, &reserve.request),
        };
        let (decision, legs) = match held {
            Ok((tier, legs)) => (ShadowDecision::Admitted { tier }, legs),
            Err(decision) => (decision, Legs::new()),
        };
        self.count_shadow(&path.subject.route, &decision);
        // The tier is what gateways act on, and the shadow lane never changes what happens.
        let (tier, shadow) = (Tier::Normal, Some(Arc::new(decision)));
        // Nor is less granted than was asked: only what is held in the shadow lane is less.
        let amounts = asked;
        let admission = Admission { asked, amounts, tier, legs, shadow, hold_ttl_ms, grace_ms };
        Ok(self.book_reservation(path, reserve, admission))
    }

    fn hold_in_shadow(
        &mut self,
        path: &mut Path,
        asked: &Amounts,
        request: &Request,
    ) -> Result<(Tier, Legs), ShadowDecision> {
        if self.derived.tally.shadow_accounts >= SHADOW_ACCOUNTS_MAX {
            return Err(ShadowDecision::Undecided(Undecided::AccountsMax));
        }
        check_legs(path).map_err(|_| ShadowDecision::Undecided(Undecided::LegsMax))?;
        let unopened =
            self.touch_path(path, asked).map_err(|_| ShadowDecision::Undecided(Undecided::EpochBounds))?;
        let (amounts, tier) =
            self.grant(path, asked, request, &unopened).map_err(ShadowDecision::Rejected)?;
        Ok((tier, self.hold_path(path, &amounts, unopened)))
    }
}
