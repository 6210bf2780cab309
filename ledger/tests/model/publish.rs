//! Operators' commands in the model: plans, tenants' records, freezes.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_ledger::command::{Freeze, PublishPlan, SetTenant, Unfreeze};
use holdfast_ledger::ids::TenantId;
use holdfast_ledger::plan::{Plan, TenantRecord};

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
        let records = self.eras.last().map(|era| era.records.clone()).unwrap_or_default();
        self.open_era(Arc::clone(&publish.plan), records)
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
        self.open_era(plan, records)
    }

    fn open_era(&mut self, plan: Arc<Plan>, records: BTreeMap<TenantId, Arc<TenantRecord>>) -> Verdict {
        let generation = self.generation() + 1;
        self.log.push((self.clock_ms, Happening::Era(self.eras.len())));
        self.eras.push(Era { generation, plan, records });
        self.floor_ms = self.floor_ms.max(self.clock_ms.saturating_sub(self.window_ms()));
        Verdict::Published { generation, changed: true }
    }

    pub fn freeze(&mut self, freeze: &Freeze) -> Verdict {
        if self.plan().is_none_or(|plan| plan.routes.iter().all(|route| route.name != freeze.route)) {
            return Verdict::Invalid;
        }
        let key = (freeze.tenant.clone(), freeze.user.clone(), freeze.route.clone());
        Verdict::Frozen { changed: self.frozen.insert(key) }
    }

    pub fn unfreeze(&mut self, unfreeze: &Unfreeze) -> Verdict {
        let key = (unfreeze.tenant.clone(), unfreeze.user.clone(), unfreeze.route.clone());
        Verdict::Unfrozen { changed: self.frozen.remove(&key) }
    }
}
