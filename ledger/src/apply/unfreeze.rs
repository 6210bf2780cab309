//! Unfreeze: an operator lifts a freeze.

use std::sync::Arc;

use crate::answer::Answer;
use crate::book::{Book, hash_freeze};
use crate::command::Unfreeze;
use crate::event::EventKind;

impl Book {
    pub(super) fn apply_unfreeze(&mut self, unfreeze: &Unfreeze) -> Answer {
        let key = (unfreeze.tenant.clone(), unfreeze.user.clone(), unfreeze.route.clone());
        if !self.freezes.contains_key(&key) {
            return Answer::Unfrozen { changed: false };
        }
        if let Some(freeze) = Arc::make_mut(&mut self.freezes).remove(&key) {
            self.small_sum = self.small_sum.wrapping_sub(hash_freeze(&freeze));
        }
        self.push_event(EventKind::Unfrozen {
            tenant: unfreeze.tenant.clone(),
            user: unfreeze.user.clone(),
            route: unfreeze.route.clone(),
            actor: unfreeze.actor.clone(),
            reason: unfreeze.reason.clone(),
        });
        Answer::Unfrozen { changed: true }
    }
}
