//! Publish a plan: the next generation, unless it says what is in force already.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::apply::invalid;
use crate::book::{Book, find_limit, hash_plan};
use crate::command::PublishPlan;
use crate::event::EventKind;
use crate::plan::{Limit, Plan};
use crate::query::PublishedPlan;
use crate::unit::Unit;

impl Book {
    pub(super) fn apply_publish_plan(&mut self, publish: &PublishPlan) -> Result<Answer, Refusal> {
        let generation = self.header.generation;
        if self.plan().is_some_and(|published| published.plan == publish.plan) {
            return Ok(Answer::Published { generation, changed: false });
        }
        if publish.expected_generation.is_some_and(|expected| expected != generation) {
            return Err(Refusal::GenerationMismatch { generation });
        }
        self.check_units(&publish.plan)?;
        let generation = generation + 1;
        self.header.generation = generation;
        let published = PublishedPlan {
            generation,
            document: Arc::clone(&publish.document),
            plan: Arc::clone(&publish.plan),
            published_at_ms: self.header.clock_ms,
            actor: publish.actor.clone(),
        };
        self.small_sum = self.small_sum.wrapping_add(hash_plan(&published));
        self.generations.push_plan(published);
        self.push_event(EventKind::PlanPublished { generation, actor: publish.actor.clone() });
        self.raise_floor();
        self.trim_generations();
        Ok(Answer::Published { generation, changed: true })
    }

    /// A change of unit needs a new limit id: amounts of two units cannot stand in one lineage.
    fn check_units(&self, plan: &Plan) -> Result<(), Refusal> {
        let mut unseen = Vec::new();
        for limit in &plan.limits {
            let known = self.plans().find_map(|kept| find_limit(&kept.plan, &limit.id));
            match known {
                Some(known) if known.unit != limit.unit => return Err(unit_changed(limit, known.unit)),
                Some(_) => {}
                None => unseen.push(limit),
            }
        }
        if unseen.is_empty() {
            return Ok(());
        }
        // A lineage may outlive the plans that are kept.
        let clash = self.lineages.iter().find_map(|(_, row)| {
            let place = unseen.binary_search_by(|limit| limit.id.cmp(&row.key.limit)).ok()?;
            (unseen[place].unit != row.unit).then(|| unit_changed(unseen[place], row.unit))
        });
        clash.map_or(Ok(()), Err)
    }
}

fn unit_changed(limit: &Limit, known: Unit) -> Refusal {
    let problem =
        format!("limit {} counts {known} and would count {}: give it a new id", limit.id, limit.unit);
    invalid("limits", problem)
}
