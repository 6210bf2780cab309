//! Roll-out of a route: which requests its limits are enforced for.

use xxhash_rust::xxh3::xxh3_64;

use crate::ids::{RouteName, TenantId, UserId};
use crate::record::Lane;

/// Roll-out of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rollout {
    /// Decide and book in the shadow lane, never refuse.
    Shadow,
    /// A share of subjects in the enforced lane; the rest in shadow.
    Percent {
        /// The share, 0 to 100.
        percent: u8,
        /// What a subject is here.
        by: RolloutBy,
    },
    /// Everybody in the enforced lane.
    #[default]
    Enforce,
}

/// What is put into a lane as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RolloutBy {
    /// A tenant with all its users.
    #[default]
    Tenant,
    /// Each user of a tenant for itself; requests without a user go with their tenant.
    User,
}

impl Rollout {
    /// The lane of a subject on a route. Which of 100 places a subject has never changes, so a larger share
    /// only ever adds subjects to the enforced lane.
    pub fn lane(self, route: &RouteName, tenant: &TenantId, user: Option<&UserId>) -> Lane {
        let enforced = match self {
            Rollout::Shadow => false,
            Rollout::Enforce => true,
            Rollout::Percent { percent, by } => {
                let user = user.filter(|_| by == RolloutBy::User);
                place(route, tenant, user) < percent
            }
        };
        if enforced { Lane::Enforced } else { Lane::Shadow }
    }
}

/// A subject's place on a route, 0 to 99: the hundredth of the range of a 64-bit hash (XXH3, seed 0) that the
/// hash of `holdfast.rollout.v1 NUL route NUL tenant [NUL user]` lies in. Part of what a plan means: never to change.
fn place(route: &RouteName, tenant: &TenantId, user: Option<&UserId>) -> u8 {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend_from_slice(b"holdfast.rollout.v1");
    let names = [Some(route.as_str()), Some(tenant.as_str()), user.map(UserId::as_str)];
    for name in names.into_iter().flatten() {
        // No name has a NUL in it.
        bytes.push(0);
        bytes.extend_from_slice(name.as_bytes());
    }
    // The upper half of a product with 100 is less than 100.
    ((u128::from(xxh3_64(&bytes)) * 100) >> 64) as u8
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(route: &str, tenant: &str, user: Option<&str>) -> u8 {
        let user = user.map(|user| user.parse().unwrap());
        place(&route.parse().unwrap(), &tenant.parse().unwrap(), user.as_ref())
    }

    /// A change here moves live subjects between lanes.
    #[test]
    fn places_are_pinned() {
        let places = [
            at("chat", "acme", None),
            at("chat", "acme", Some("ada")),
            at("chat", "beta", None),
            at("embeddings", "acme", None),
            at("chat.generate", "demo", Some("u1")),
        ];
        assert_eq!(places, [55, 37, 27, 38, 64]);
    }

    #[test]
    fn a_larger_share_only_adds_subjects_and_is_met() {
        let route: RouteName = "chat".parse().unwrap();
        let tenants: Vec<TenantId> = (0..10_000).map(|at| format!("t{at}").parse().unwrap()).collect();
        let enforced = |percent: u8| -> Vec<bool> {
            let rollout = Rollout::Percent { percent, by: RolloutBy::Tenant };
            tenants.iter().map(|tenant| rollout.lane(&route, tenant, None) == Lane::Enforced).collect()
        };
        let mut before = enforced(0);
        assert!(before.iter().all(|enforced| !enforced));
        for percent in 1..=100 {
            let now = enforced(percent);
            assert!(before.iter().zip(&now).all(|(before, now)| now >= before), "{percent} took one away");
            let share = now.iter().filter(|enforced| **enforced).count();
            assert!(share.abs_diff(usize::from(percent) * 100) < 200, "{share} of 10000 at {percent} %");
            before = now;
        }
        assert!(before.iter().all(|enforced| *enforced));
    }

    #[test]
    fn users_go_with_their_tenant_unless_the_plan_says_otherwise() {
        let (route, tenant) = ("chat".parse().unwrap(), "acme".parse().unwrap());
        let users: Vec<UserId> = (0..100).map(|at| format!("u{at}").parse().unwrap()).collect();
        let lanes = |by| -> Vec<Lane> {
            let rollout = Rollout::Percent { percent: 50, by };
            users.iter().map(|user| rollout.lane(&route, &tenant, Some(user))).collect()
        };
        let whole = Rollout::Percent { percent: 50, by: RolloutBy::User }.lane(&route, &tenant, None);
        assert!(lanes(RolloutBy::Tenant).iter().all(|lane| *lane == whole));
        let by_user = lanes(RolloutBy::User);
        assert!(by_user.contains(&Lane::Enforced) && by_user.contains(&Lane::Shadow));
    }
}
