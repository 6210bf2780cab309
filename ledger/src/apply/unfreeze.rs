//! Unfreeze: an operator lifts a freeze.

use std::sync::Arc;

use crate::answer::Answer;
use crate::book::{Book, hash_freeze};
use crate::command::Unfreeze;
use crate::event::EventKind;

impl Book {
    pub(super) fn apply_unfreeze(&mut self, unfreeze: &Unfreeze) -> Answer {
        if !self.freezes.contains_key(&unfreeze.scope) {
            return Answer::Unfrozen { changed: false };
        }
        if let Some(freeze) = Arc::make_mut(&mut self.freezes).remove(&unfreeze.scope) {
            self.small_sum = self.small_sum.wrapping_sub(hash_freeze(&freeze));
        }
        self.push_event(EventKind::Unfrozen {
            scope: unfreeze.scope.clone(),
            actor: unfreeze.actor.clone(),
            reason: unfreeze.reason.clone(),
        });
        Answer::Unfrozen { changed: true }
    }
}
