//! Publish a plan: the next generation, unless it says what is in force already.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::book::{Book, hash_plan};
use crate::command::PublishPlan;
use crate::event::EventKind;
use crate::ids::ActorName;
use crate::plan::Plan;
use crate::query::{PublishedPlan, RolledBack};

/// What a new generation brings.
pub(super) struct Successor {
    pub(super) document: Arc<str>,
    pub(super) plan: Arc<Plan>,
    pub(super) actor: ActorName,
    pub(super) forced: bool,
    pub(super) roll_back: Option<RolledBack>,
}

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
        let (document, plan) = (Arc::clone(&publish.document), Arc::clone(&publish.plan));
        let actor = publish.actor.clone();
        Ok(self.open_generation(Successor { document, plan, actor, forced, roll_back: None }))
    }

    /// Puts a plan in force as the next generation.
    pub(super) fn open_generation(&mut self, successor: Successor) -> Answer {
        let Successor { document, plan, actor, forced, roll_back } = successor;
        let generation = self.header.generation + 1;
        self.header.generation = generation;
        self.trim_shadows(&plan);
        let published_at_ms = self.header.clock_ms;
        let published =
            PublishedPlan { generation, document, plan, published_at_ms, actor: actor.clone(), roll_back };
        self.small_sum = self.small_sum.wrapping_add(hash_plan(&published));
        self.generations.push_plan(published);
        self.push_event(EventKind::PlanPublished { generation, forced, actor: actor.clone() });
        if let Some(RolledBack { restored, first }) = roll_back {
            self.push_event(EventKind::RolledBack { generation, restored, first, actor });
        }
        self.schedule_wakes_anew();
        self.raise_floor();
        self.trim_generations();
        Answer::Published { generation, changed: true }
    }
}
