//! The commands, one file each.

use crate::answer::{Answer, Refusal, State};
use crate::book::{Book, Found, Uncovered};
use crate::command::Command;
use crate::ids::{OperationId, ReservationId};
use crate::limits::ID_AHEAD_MS;
use crate::mutants;

mod adjust;
mod advance_webhook;
mod correct;
mod freeze;
mod publish_plan;
mod raise_rules;
mod release;
mod renew;
mod report_unknown;
pub(crate) mod reserve;
mod resolve_unknown;
mod roll_back;
mod set_tenant;
mod set_webhook;
mod settle;
mod shadow;
mod start;
mod tick;
mod trim;
mod unfreeze;

impl Book {
    pub(crate) fn apply_command(&mut self, command: &Command) -> Answer {
        let answer = match command {
            Command::Reserve(reserve) => self.apply_reserve(reserve),
            Command::Start(start) => self.apply_start(start),
            Command::Settle(settle) => self.apply_settle(settle),
            Command::Correct(correct) => self.apply_correct(correct),
            Command::Release(release) => self.apply_release(release),
            Command::Renew(renew) => self.apply_renew(renew),
            Command::ReportUnknown(report) => self.apply_report_unknown(report),
            Command::ResolveUnknown(resolve) => self.apply_resolve_unknown(resolve),
            Command::PublishPlan(publish) => self.apply_publish_plan(publish),
            Command::UnreadablePlan(unreadable) => Err(invalid("document", unreadable.problem.clone())),
            Command::RollBack(roll_back) => self.apply_roll_back(roll_back),
            Command::SetTenant(set) => self.apply_set_tenant(set),
            Command::Freeze(freeze) => self.apply_freeze(freeze),
            Command::Unfreeze(unfreeze) => Ok(self.apply_unfreeze(unfreeze)),
            Command::Adjust(adjust) => self.apply_adjust(adjust),
            Command::SetWebhook(set) => self.apply_set_webhook(set),
            Command::AdvanceWebhook(advance) => Ok(self.apply_advance_webhook(advance)),
            Command::Tick => Ok(self.apply_tick()),
            Command::RaiseRules { rules_version } => Ok(self.apply_raise_rules(*rules_version)),
        };
        answer.unwrap_or_else(Answer::Refused)
    }

    /// The slot of a reservation that a command names.
    fn known(&self, id: ReservationId) -> Result<u32, Refusal> {
        match self.find(id) {
            Some(Found::Reservation(slot)) => Ok(slot),
            Some(Found::Tombstone(_)) => Err(Refusal::WrongState { state: State::Released }),
            None => Err(Refusal::NotFound),
        }
    }

    /// A reservation's state now.
    fn state(&self, slot: u32) -> State {
        self.reservations.get(slot).state_at(self.header.clock_ms)
    }

    /// Whether a command names the operation that a reservation is bound to.
    fn check_operation(&self, slot: u32, named: &OperationId) -> Result<(), Refusal> {
        let state = self.state(slot);
        match &self.reservations.get(slot).operation {
            None => Err(Refusal::WrongState { state }),
            Some(bound) if bound != named => Err(Refusal::Conflict { state }),
            Some(_) => Ok(()),
        }
    }

    /// The repeated or unchanged answer; anything where nobody reads it.
    fn answer_with(&self, slot: u32) -> Answer {
        if self.derived.unread {
            return Answer::Tombstone { id: self.reservations.get(slot).id };
        }
        Answer::Reservation(self.receipt_of(slot))
    }

    /// Whether an id that is not known may be new.
    fn check_fresh(&self, id: ReservationId) -> Result<(), Refusal> {
        self.check_fresh_at(id, self.header.clock_ms)
    }

    /// The same as it will be at a time that is not before the book's.
    pub(crate) fn check_fresh_at(&self, id: ReservationId, now_ms: u64) -> Result<(), Refusal> {
        self.check_fresh_time(id.time_ms(), now_ms)
    }

    /// The same of the time in an id of any kind.
    fn check_fresh_time(&self, time_ms: u64, now_ms: u64) -> Result<(), Refusal> {
        let floor_ms = self.header.id_floor_ms.max(now_ms.saturating_sub(self.id_window_ms()));
        if time_ms < floor_ms && !mutants::on("old-ids-are-new") {
            return Err(Refusal::IdTooOld { floor_ms });
        }
        let latest_ms = now_ms.saturating_add(ID_AHEAD_MS);
        if time_ms > latest_ms && !mutants::on("ids-from-any-future") {
            return Err(Refusal::IdInFuture { latest_ms });
        }
        Ok(())
    }
}

impl From<Uncovered> for Refusal {
    fn from(_: Uncovered) -> Self {
        Refusal::Overloaded { ceiling: "epoch_bounds" }
    }
}

/// A refusal of a field's content.
pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Refusal {
    Refusal::Invalid { field, problem: problem.into() }
}
