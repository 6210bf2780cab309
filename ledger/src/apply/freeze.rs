//! Freeze: an operator stops admissions for a subject and route, until one lifts it.

use std::sync::Arc;

use crate::answer::{Answer, Refusal};
use crate::apply::invalid;
use crate::apply::reserve::no_plan;
use crate::book::{Book, hash_freeze};
use crate::command::Freeze;
use crate::event::EventKind;
use crate::mutants;
use crate::record::{self, FreezeCause};

impl Book {
    pub(super) fn apply_freeze(&mut self, freeze: &Freeze) -> Result<Answer, Refusal> {
        let plan = self.plan().ok_or_else(no_plan)?;
        if plan.plan.route(&freeze.scope.route).is_none() {
            // A misspelt name would freeze nothing, and nobody would see.
            return Err(invalid("route", format!("the plan in force has no route {:?}", freeze.scope.route)));
        }
        let Freeze { scope, actor, reason } = freeze.clone();
        let changed = mutants::on("freeze-by-word-only")
            || self.insert_freeze(record::Freeze {
                scope: scope.clone(),
                at_ms: self.header.clock_ms,
                cause: FreezeCause::Operator { actor: actor.clone(), reason: reason.clone() },
            });
        if changed {
            self.push_event(EventKind::Frozen { scope, actor, reason });
        }
        Ok(Answer::Frozen { changed })
    }

    /// False if there is one already: it stays as it is, with its cause.
    pub(super) fn insert_freeze(&mut self, freeze: record::Freeze) -> bool {
        if self.freezes.contains_key(&freeze.scope) {
            return false;
        }
        self.small_sum = self.small_sum.wrapping_add(hash_freeze(&freeze));
        Arc::make_mut(&mut self.freezes).insert(freeze.scope.clone(), freeze);
        true
    }
}
