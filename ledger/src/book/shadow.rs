//! The shadow lane's counts, and how many accounts it has.

use std::collections::BTreeMap;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::book::Book;
use crate::book::bytes::RowBytes;
use crate::ids::RouteName;
use crate::limits::LIMITS_PER_PLAN_MAX;
use crate::plan::{Plan, Rollout};
use crate::record::Lane;
use crate::shadow::{ShadowCounts, ShadowDecision};

/// By the plan's route.
pub(crate) type Shadows = BTreeMap<RouteName, ShadowCounts>;

/// Whether an account came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    In,
    Out,
}

impl Book {
    /// What the shadow lane decided, route by route, since each has been in `shadow` or `percent`.
    pub fn shadow_counts(&self) -> impl Iterator<Item = &ShadowCounts> {
        self.shadows.values()
    }

    /// Counts an account of a lineage, open or closed, if it is one of the shadow lane.
    pub(crate) fn count_account(&mut self, lineage: u32, counted: Counted) {
        if self.lineages.get(lineage).key.lane == Lane::Enforced {
            return;
        }
        match counted {
            Counted::In => self.derived.tally.shadow_accounts += 1,
            Counted::Out => self.derived.tally.shadow_accounts -= 1,
        }
    }

    pub(crate) fn count_shadow(&mut self, route: &RouteName, decision: &ShadowDecision) {
        let now_ms = self.header.clock_ms;
        let before = self.shadows.get(route).map_or(0, hash_shadow);
        let counts = Arc::make_mut(&mut self.shadows)
            .entry(route.clone())
            .or_insert_with(|| ShadowCounts::new(route.clone(), now_ms));
        counts.count(decision);
        self.small_sum = self.small_sum.wrapping_sub(before).wrapping_add(hash_shadow(counts));
    }

    /// Under another plan: forgets the counts of routes that have no shadow lane any more, and, if there are
    /// many, of limits that are gone.
    pub(crate) fn trim_shadows(&mut self, plan: &Plan) {
        if self.shadows.is_empty() {
            return;
        }
        let sum = |shadows: &Shadows| shadows.values().map(hash_shadow).fold(0, u128::wrapping_add);
        let before = sum(&self.shadows);
        Arc::make_mut(&mut self.shadows).retain(|name, counts| {
            if counts.rejected.len() > LIMITS_PER_PLAN_MAX {
                counts.rejected.retain(|limit, _| plan.limit(limit).is_some());
            }
            plan.route(name).is_some_and(|route| route.rollout != Rollout::Enforce)
        });
        let after = sum(&self.shadows);
        self.small_sum = self.small_sum.wrapping_sub(before).wrapping_add(after);
    }
}

pub(crate) fn hash_shadow(counts: &ShadowCounts) -> u128 {
    let ShadowCounts { route, since_ms, admitted, rejected, undecided } = counts;
    let mut out = RowBytes::default();
    out.put_u8(20);
    out.put_text(route.as_str());
    out.put_u64(*since_ms);
    for count in admitted {
        out.put_u64(*count);
    }
    out.put_u64(*undecided);
    out.put_u32(rejected.len() as u32);
    for (limit, count) in rejected {
        out.put_text(limit.as_str());
        out.put_u64(*count);
    }
    xxh3_128(out.as_slice())
}
