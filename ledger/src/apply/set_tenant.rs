//! Set or remove a tenant's record: the next generation, unless it says what is in force already.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::apply::invalid;
use crate::apply::reserve::no_plan;
use crate::book::{Book, hash_tenant};
use crate::command::SetTenant;
use crate::event::EventKind;
use crate::limits::TENANTS_MAX;
use crate::plan::{Plan, TenantRecord};
use crate::query::TenantVersion;

impl Book {
    pub(super) fn apply_set_tenant(&mut self, set: &SetTenant) -> Result<Answer, Refusal> {
        let generation = self.header.generation;
        let plan = self.plan().ok_or_else(no_plan)?;
        let standing = self.tenant(&set.tenant).and_then(|version| version.record.as_ref());
        if standing == set.record.as_ref() {
            return Ok(Answer::Published { generation, changed: false });
        }
        if set.expected_generation.is_some_and(|expected| expected != generation) {
            return Err(Refusal::GenerationMismatch { generation });
        }
        if let Some(record) = &set.record {
            check_record(record, &plan.plan)?;
        }
        let known = self.generations.tenants.contains_key(&set.tenant);
        if !known && self.generations.tenants.len() >= TENANTS_MAX {
            return Err(Refusal::Overloaded { ceiling: "TENANTS_MAX" });
        }
        let generation = generation + 1;
        self.header.generation = generation;
        let version = TenantVersion {
            tenant: set.tenant.clone(),
            generation,
            record: set.record.as_ref().map(Arc::clone),
            set_at_ms: self.header.clock_ms,
            actor: set.actor.clone(),
        };
        self.small_sum = self.small_sum.wrapping_add(hash_tenant(&version));
        self.generations.push_tenant(version);
        let (tenant, actor) = (set.tenant.clone(), set.actor.clone());
        self.push_event(EventKind::TenantSet { generation, tenant, actor });
        self.schedule_wakes_anew();
        self.trim_generations();
        Ok(Answer::Published { generation, changed: true })
    }
}

/// What a record names must be in the plan in force, and be something that a record may change.
fn check_record(record: &TenantRecord, plan: &Plan) -> Result<(), Refusal> {
    let problems = plan.check_record(record);
    if problems.is_empty() {
        return Ok(());
    }
    let text: Vec<_> =
        problems.iter().map(|problem| format!("{} {}", problem.path, problem.problem)).collect();
    Err(invalid("record", text.join("; ")))
}
