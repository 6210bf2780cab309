//! Roll back: the content of an earlier generation becomes that of a new one.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::apply::invalid;
use crate::apply::publish_plan::Successor;
use crate::apply::reserve::no_plan;
use crate::book::Book;
use crate::command::RollBack;
use crate::mutants;
use crate::query::RolledBack;

impl Book {
    /// What the generations in between admitted goes on: it settles where it is held. That is what a roll-back
    /// is for, so nothing has to be forced, whatever it is held on.
    pub(super) fn apply_roll_back(&mut self, roll_back: &RollBack) -> Result<Answer, Refusal> {
        let generation = self.header.generation;
        let in_force = self.plan().ok_or_else(no_plan)?;
        let known = self.plan_at(roll_back.to).filter(|_| roll_back.to <= generation);
        let Some(target) = known else {
            return Err(invalid(
                "generation",
                format!("the plan of generation {} is not kept", roll_back.to),
            ));
        };
        if target.plan == in_force.plan {
            return Ok(Answer::Published { generation, changed: false });
        }
        if roll_back.expected_generation.is_some_and(|expected| expected != generation) {
            return Err(Refusal::GenerationMismatch { generation });
        }
        if mutants::on("roll-back-to-nothing") {
            return Ok(Answer::Published { generation: generation + 1, changed: true });
        }
        let restored = target.generation;
        let after = self.plans().find(|plan| plan.generation > restored);
        let first = after.map_or(generation, |plan| plan.generation);
        let (document, plan) = (Arc::clone(&target.document), Arc::clone(&target.plan));
        let losses = self.losses(&plan);
        if losses.iter().any(|loss| !loss.change.is_forceable()) {
            return Err(Refusal::Destructive { losses });
        }
        let (forced, actor) = (!losses.is_empty(), roll_back.actor.clone());
        let roll_back = Some(RolledBack { restored, first });
        Ok(self.open_generation(Successor { document, plan, actor, forced, roll_back }))
    }
}
