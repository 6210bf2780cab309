//! Keeping the history of generations bounded.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::book::{Book, hash_plan, hash_tenant};
use crate::limits::{GENERATIONS_KEPT_MAX, PLANS_KEPT_MAX, PLANS_KEPT_MIN};

impl Book {
    /// Once too many generations are kept: touches every lineage, so that none needs an old one, and drops
    /// the older half; but not a plan that an open reservation was admitted under.
    pub(super) fn trim_generations(&mut self) {
        let superseded = self.generations.versions - self.generations.tenants.len();
        if superseded <= GENERATIONS_KEPT_MAX && !self.has_too_many_plans() {
            return;
        }
        self.touch_all();
        self.drop_plans();
        self.drop_tenant_versions();
        self.prune_calendars();
    }

    fn has_too_many_plans(&self) -> bool {
        let kept = self.generations.plans.len();
        kept > PLANS_KEPT_MAX && kept - self.plans_in_use().len() > PLANS_KEPT_MAX
    }

    /// Generations of the plans whose terms are still needed: of open reservations, and of estimated
    /// settlements that may yet be corrected.
    fn plans_in_use(&self) -> BTreeSet<u64> {
        let needed = self.reservations.iter().filter(|(_, row)| row.needs_terms());
        needed
            .filter_map(|(_, row)| Some(self.generations.plan_at(row.generation)?.published.generation))
            .collect()
    }

    fn drop_plans(&mut self) {
        let in_use = self.plans_in_use();
        let first_kept = self.generations.plans.len().saturating_sub(PLANS_KEPT_MIN);
        let mut kept = Vec::new();
        for (place, plan) in std::mem::take(&mut self.generations.plans).into_iter().enumerate() {
            if place >= first_kept || in_use.contains(&plan.published.generation) {
                kept.push(plan);
            } else {
                self.small_sum = self.small_sum.wrapping_sub(hash_plan(&plan.published));
            }
        }
        self.generations.plans = kept;
    }

    /// Keeps of each tenant the record that stands.
    fn drop_tenant_versions(&mut self) {
        let mut dropped: u128 = 0;
        let tenants = Arc::make_mut(&mut self.generations.tenants);
        tenants.retain(|_, versions| {
            let standing = versions.pop();
            dropped = versions.iter().fold(dropped, |sum, version| sum.wrapping_add(hash_tenant(version)));
            versions.clear();
            match standing {
                Some(version) if version.record.is_some() => versions.push(version),
                Some(version) => dropped = dropped.wrapping_add(hash_tenant(&version)),
                None => {}
            }
            !versions.is_empty()
        });
        self.generations.versions = tenants.len();
        self.small_sum = self.small_sum.wrapping_sub(dropped);
    }
}
