//! Operators' commands in the model: plans, tenants' records, freezes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_ledger::command::{Freeze, PublishPlan, RollBack, SetTenant, SetWebhook, Unfreeze};
use holdfast_ledger::ids::{LimitId, RouteName, TenantId};
use holdfast_ledger::loss::LossyChange;
use holdfast_ledger::plan::{Limit, Plan, Rollout, Shape, TenantRecord};
use holdfast_ledger::record::{Lane, LineageKey};

use crate::history::suits;
use crate::naive::Model;
use crate::rows::{Era, Happening};
use crate::verdict::Verdict;

impl Model {
    pub fn publish(&mut self, publish: &PublishPlan) -> Verdict {
        let generation = self.generation();
        // What is in force already is no change, whatever was expected: so the repeat of a publish whose answer was lost is answered.
        if self.plan().is_some_and(|plan| **plan == *publish.plan) {
            return Verdict::Published { generation, changed: false };
        }
        if publish.expected_generation.is_some_and(|expected| expected != generation) {
            return Verdict::GenerationMismatch(generation);
        }
        let losses = self.losses(&publish.plan);
        let never = losses.iter().any(|(_, change, ..)| matches!(change, LossyChange::UnitChanged { .. }));
        if never || !(losses.is_empty() || publish.force) {
            return Verdict::Destructive(losses);
        }
        if !losses.is_empty() {
            self.seen.insert("forced");
        }
        let records = self.eras.last().map(|era| era.records.clone()).unwrap_or_default();
        self.open_era(Arc::clone(&publish.plan), records, None)
    }

    /// What a plan would cut off: reservation by reservation and key by key, limit by limit of the plan in force.
    fn losses(&self, next: &Plan) -> Vec<(LimitId, LossyChange, u64, i128, i128)> {
        let Some(plan) = self.plan() else { return Vec::new() };
        let mut losses = Vec::new();
        let ids: BTreeSet<_> = plan.limits.iter().chain(&next.limits).map(|limit| limit.id.clone()).collect();
        for id in ids {
            // What a limit counts is fixed by the last plan that had it, in force or not.
            let last = self.eras.iter().rev().find_map(|era| era.plan.limit(&id));
            let Some((limit, in_force)) = last.zip(Some(plan.limit(&id).is_some())) else { continue };
            let Some(change) = change_of(limit, next.limit(&id)) else { continue };
            if !in_force && !matches!(change, LossyChange::UnitChanged { .. }) {
                continue;
            }
            let stays = |key: &LineageKey| change == LossyChange::Rescoped && suits(next.limit(&id), key);
            // What the shadow lane holds is no loss.
            let lost = |key: &LineageKey| key.limit == id && key.lane == Lane::Enforced && !stays(key);
            let (mut reservations, mut held) = (0, 0);
            for reservation in self.reservations.iter().filter(|found| found.receipt.ended_at_ms.is_none()) {
                let on_it = reservation.legs.iter().filter(|(key, _)| lost(key));
                let amounts: Vec<i128> = on_it.map(|(_, amount)| i128::from(*amount)).collect();
                reservations += u64::from(!amounts.is_empty());
                held += amounts.iter().sum::<i128>();
            }
            let of_limit = self.keys().into_iter().filter(lost);
            let debt: i128 = of_limit.map(|key| self.balance(&key, self.clock_ms).debt).sum();
            let never = matches!(change, LossyChange::UnitChanged { .. });
            if never || reservations > 0 || debt > 0 {
                losses.push((id, change, reservations, held, debt));
            }
        }
        losses
    }

    pub fn set_tenant(&mut self, set: &SetTenant) -> Verdict {
        let generation = self.generation();
        let Some(era) = self.eras.last() else { return Verdict::Invalid };
        // As with plans; even if a plan of meanwhile has no room for the record any more.
        if era.records.get(&set.tenant) == set.record.as_ref() {
            return Verdict::Published { generation, changed: false };
        }
        if set.expected_generation.is_some_and(|expected| expected != generation) {
            return Verdict::GenerationMismatch(generation);
        }
        if set.record.as_ref().is_some_and(|record| !era.plan.check_record(record).is_empty()) {
            return Verdict::Invalid;
        }
        let (plan, mut records) = (Arc::clone(&era.plan), era.records.clone());
        match &set.record {
            Some(record) => records.insert(set.tenant.clone(), Arc::clone(record)),
            None => records.remove(&set.tenant),
        };
        self.open_era(plan, records, None)
    }

    /// The plan of an earlier era again, under the records of now.
    pub fn roll_back(&mut self, roll_back: &RollBack) -> Verdict {
        let generation = self.generation();
        let Some(era) = self.eras.iter().find(|era| era.generation == roll_back.to) else {
            return Verdict::Invalid;
        };
        let target = Arc::clone(&era.plan);
        if self.plan().is_some_and(|plan| *plan == target) {
            return Verdict::Published { generation, changed: false };
        }
        if roll_back.expected_generation.is_some_and(|expected| expected != generation) {
            return Verdict::GenerationMismatch(generation);
        }
        // When that plan came into force, and when the next one did. Eras of tenants' records share their plan.
        let mut since = 0;
        let mut first = generation;
        for pair in self.eras.windows(2).rev() {
            if !Arc::ptr_eq(&pair[0].plan, &pair[1].plan) {
                if pair[0].generation >= roll_back.to {
                    first = pair[1].generation;
                } else {
                    since = since.max(pair[1].generation);
                }
            }
        }
        self.seen.insert("rolled back");
        let restored = if since == 0 { self.eras[0].generation } else { since };
        let records = self.eras.last().map(|era| era.records.clone()).unwrap_or_default();
        self.open_era(target, records, Some((restored, first)))
    }

    fn open_era(
        &mut self,
        plan: Arc<Plan>,
        records: BTreeMap<TenantId, Arc<TenantRecord>>,
        rolled_back: Option<(u64, u64)>,
    ) -> Verdict {
        let generation = self.generation() + 1;
        self.log.push((self.clock_ms, Happening::Era(self.eras.len())));
        // Counts of routes that have a shadow lane still.
        let in_shadow = |name: &RouteName| {
            plan.routes.iter().any(|route| route.name == *name && route.rollout != Rollout::Enforce)
        };
        self.shadow.retain(|(route, _), _| in_shadow(route));
        self.eras.push(Era { generation, plan, records, rolled_back });
        self.floor_ms = self.floor_ms.max(self.clock_ms.saturating_sub(self.window_ms()));
        Verdict::Published { generation, changed: true }
    }

    pub fn freeze(&mut self, freeze: &Freeze) -> Verdict {
        if self.plan().is_none_or(|plan| plan.routes.iter().all(|route| route.name != freeze.scope.route)) {
            return Verdict::Invalid;
        }
        Verdict::Frozen { changed: self.frozen.insert(freeze.scope.clone()) }
    }

    pub fn set_webhook(&mut self, set: &SetWebhook) -> Verdict {
        let before = match &set.webhook {
            Some(webhook) => self.webhooks.insert(set.tenant.clone(), webhook.clone()),
            None => self.webhooks.remove(&set.tenant),
        };
        Verdict::Webhook { changed: before != set.webhook }
    }

    pub fn unfreeze(&mut self, unfreeze: &Unfreeze) -> Verdict {
        Verdict::Unfrozen { changed: self.frozen.remove(&unfreeze.scope) }
    }
}

fn change_of(limit: &Limit, next: Option<&Limit>) -> Option<LossyChange> {
    let word = |shape: &Shape| match shape {
        Shape::Bucket { .. } => "bucket",
        Shape::Period { .. } => "period",
        Shape::Concurrency => "concurrency",
    };
    let Some(next) = next else { return Some(LossyChange::Removed) };
    if next.unit != limit.unit {
        Some(LossyChange::UnitChanged { to: next.unit })
    } else if word(&next.shape) != word(&limit.shape) {
        Some(LossyChange::KindChanged)
    } else if next.scope != limit.scope {
        Some(LossyChange::Rescoped)
    } else {
        None
    }
}
