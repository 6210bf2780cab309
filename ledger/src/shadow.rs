//! The shadow lane: what it decided, and how often.

use std::collections::BTreeMap;

use crate::answer::{Rejection, Tier};
use crate::ids::{LimitId, RouteName};

/// What the shadow lane decided of a reservation, which it never refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowDecision {
    /// It would have been admitted, and is held in the shadow lane.
    Admitted {
        /// The tier that it would have had.
        tier: Tier,
    },
    /// A limit would have said no. Nothing is held: in the enforced lane it would have used up nothing either.
    Rejected(Rejection),
    /// The shadow lane could not decide it. Nothing is held.
    Undecided(Undecided),
}

/// Why the shadow lane could not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Undecided {
    /// It is over the route's `reservation_max`: in the enforced lane it would be invalid.
    ReservationMax,
    /// More limits apply to it than a reservation has legs.
    LegsMax,
    /// The shadow lane has as many accounts as it may.
    AccountsMax,
    /// The bounds of an accounting epoch are not known yet.
    EpochBounds,
}

impl Undecided {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Undecided::ReservationMax => "reservation_max",
            Undecided::LegsMax => "LEGS_MAX",
            Undecided::AccountsMax => "SHADOW_ACCOUNTS_MAX",
            Undecided::EpochBounds => "epoch_bounds",
        }
    }
}

/// What the shadow lane of one route decided, since the route has been in `shadow` or `percent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowCounts {
    /// The plan's route.
    pub route: RouteName,
    /// Book time of the first decision, ms.
    pub since_ms: u64,
    /// How many would have been admitted, by tier in the order of [`Tier`].
    pub admitted: [u64; 3],
    /// How many the named limit would have refused.
    pub rejected: BTreeMap<LimitId, u64>,
    /// How many could not be decided.
    pub undecided: u64,
}

impl ShadowCounts {
    /// No decision yet.
    pub fn new(route: RouteName, since_ms: u64) -> Self {
        ShadowCounts { route, since_ms, admitted: [0; 3], rejected: BTreeMap::new(), undecided: 0 }
    }

    /// Counts a decision.
    pub fn count(&mut self, decision: &ShadowDecision) {
        let count = match decision {
            ShadowDecision::Admitted { tier } => match tier {
                Tier::Normal => &mut self.admitted[0],
                Tier::DegradedLight => &mut self.admitted[1],
                Tier::DegradedHeavy => &mut self.admitted[2],
            },
            ShadowDecision::Rejected(rejection) => self.rejected.entry(rejection.limit.clone()).or_default(),
            ShadowDecision::Undecided(_) => &mut self.undecided,
        };
        *count += 1;
    }
}
