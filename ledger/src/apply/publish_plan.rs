//! Publish a plan: the next generation, unless it says what is in force already.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::book::{Book, hash_plan};
use crate::command::PublishPlan;
use crate::event::EventKind;
use crate::query::PublishedPlan;

impl Book {
    pub(super) fn apply_publish_plan(&mut self, publish: &PublishPlan) -> Result<Answer, Refusal> {
        let generation = self.header.generation;
        if self.plan().is_some_and(|published| published.plan == publish.plan) {
            return Ok(Answer::Published { generation, changed: false });
        }
        if publish.expected_generation.is_some_and(|expected| expected != generation) {
            return Err(Refusal::GenerationMismatch { generation });
        }
        let losses = self.losses(&publish.plan);
        let forced = !losses.is_empty();
        let allowed = publish.force && losses.iter().all(|loss| loss.change.is_forceable());
        if forced && !allowed {
            return Err(Refusal::Destructive { losses });
        }
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
        self.push_event(EventKind::PlanPublished { generation, forced, actor: publish.actor.clone() });
        self.raise_floor();
        self.trim_generations();
        Ok(Answer::Published { generation, changed: true })
    }
}
