//! Plans, records and freezes as they follow each other.

use std::sync::Arc;

use holdfast_ledger::answer::{Answer, Refusal};
use holdfast_ledger::command::{Freeze, PublishPlan, RollBack, SetTenant, Unfreeze};

use super::refusals::Subject;
use super::{Facts, Tally, refusal};
use crate::interleave::found::Kind;
use crate::interleave::plans::TENANTS;

impl Tally {
    pub(super) fn on_publish(&mut self, publish: &PublishPlan, answer: &Answer) {
        let published = self.family.plans.iter().find(|known| Arc::ptr_eq(&known.plan, &publish.plan));
        let Some(published) = published else { return };
        self.on_plan("publish", &published.facts, publish.expected_generation, publish.force, answer);
    }

    pub(super) fn on_roll_back(&mut self, roll_back: &RollBack, answer: &Answer) {
        let target = self.plans.iter().rev().find(|(generation, _)| *generation <= roll_back.to);
        let Some((_, facts)) = target.filter(|_| roll_back.to <= self.generation).cloned() else {
            if !matches!(refusal(answer), Some(Refusal::Invalid { .. })) {
                self.find(Kind::Lifecycle, || format!("roll back to {}: {answer:?}", roll_back.to));
            }
            return;
        };
        self.on_plan("roll back", &facts, roll_back.expected_generation, true, answer);
    }

    /// A plan that may come into force: the one that is changes nothing, whatever was expected.
    fn on_plan(
        &mut self,
        word: &str,
        facts: &Arc<Facts>,
        expected: Option<u64>,
        force: bool,
        answer: &Answer,
    ) {
        let in_force = self.plan.as_ref().is_some_and(|plan| Arc::ptr_eq(plan, facts));
        let generation = self.generation;
        let right = match answer {
            Answer::Published { generation: said, changed: false } => in_force && *said == generation,
            Answer::Published { generation: said, changed: true } => {
                let foreseen = expected.is_none_or(|expected| expected == generation);
                !in_force && foreseen && *said == generation + 1
            }
            Answer::Refused(Refusal::GenerationMismatch { generation: said }) => {
                *said == generation && expected.is_some_and(|expected| expected != generation)
            }
            Answer::Refused(Refusal::Destructive { losses }) => !force && !losses.is_empty(),
            _ => false,
        };
        if !right {
            self.find(Kind::Lifecycle, || {
                format!("{word} over generation {generation}, in force already: {in_force}: {answer:?}")
            });
        }
        if let Answer::Published { changed: true, .. } = answer {
            self.generation += 1;
            self.plans.push((self.generation, Arc::clone(facts)));
            self.plan = Some(Arc::clone(facts));
            self.raise_floor();
            for tenant in [None].into_iter().chain((0..TENANTS.len()).map(Some)) {
                self.apply_rules(tenant);
            }
        }
    }

    pub(super) fn on_set_tenant(&mut self, set: &SetTenant, answer: &Answer) {
        let Answer::Published { generation, changed: true } = answer else { return };
        let Some(tenant) = TENANTS.iter().position(|name| *name == set.tenant.as_str()) else { return };
        let said = set
            .record
            .as_ref()
            .and_then(|record| self.family.records.iter().find(|known| Arc::ptr_eq(&known.parsed, record)));
        self.generation += 1;
        if *generation != self.generation {
            let counted = self.generation;
            self.find(Kind::Lifecycle, || {
                format!("record of generation {generation}, counted were {counted}")
            });
        }
        self.records[tenant] = said.map(|settable| settable.record.clone());
        self.apply_rules(Some(tenant));
    }

    /// Rules of a tenant's lineages, or of the global ones, as they are from now on.
    fn apply_rules(&mut self, tenant: Option<usize>) {
        let Some(plan) = &self.plan else { return };
        let record = tenant.and_then(|tenant| self.records[tenant].as_ref());
        self.lineages.apply_rules(tenant, plan, record, self.clock_ms);
    }

    pub(super) fn on_freeze(&mut self, freeze: &Freeze, answer: &Answer) {
        let subject = Subject::of_freeze(&freeze.scope);
        let Some(key) = subject.map(|subject| subject.key()) else { return };
        let changed = !self.frozen.contains(&key);
        if changed {
            self.frozen.push(key);
        }
        if *answer != (Answer::Frozen { changed }) {
            self.find(Kind::Lifecycle, || format!("freeze: {answer:?}, expected changed {changed}"));
        }
    }

    pub(super) fn on_unfreeze(&mut self, unfreeze: &Unfreeze, answer: &Answer) {
        let subject = Subject::of_freeze(&unfreeze.scope);
        let Some(key) = subject.map(|subject| subject.key()) else { return };
        let changed = self.frozen.contains(&key);
        self.frozen.retain(|frozen| *frozen != key);
        if *answer != (Answer::Unfrozen { changed }) {
            self.find(Kind::Lifecycle, || format!("unfreeze: {answer:?}, expected changed {changed}"));
        }
    }
}
