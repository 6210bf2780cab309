//! What operators do: they publish and roll back, set records, freeze and lift, resolve, adjust; and what
//! executors put right later.

use std::sync::Arc;

use holdfast_ledger::Command;
use holdfast_ledger::adjust::{Adjust, Adjustment};
use holdfast_ledger::answer::State;
use holdfast_ledger::command::{Correct, Freeze, PublishPlan, ResolveUnknown, RollBack, SetTenant, Unfreeze};
use holdfast_ledger::ids::AdjustmentId;
use holdfast_ledger::plan::Level;
use holdfast_ledger::record::{FreezeScope, Lane, LineageKey};
use holdfast_ledger::{Amounts, Unit};

use super::World;
use super::cluster::Proposal;
use super::network::words;
use super::program::operation_of;
use crate::interleave::plans::{ROUTES, TENANT_IDS, USER_IDS, named};

/// Amounts of adjustments.
const ADJUSTED: [u64; 6] = [1, 100, 250, 400, 900, 3];

impl World<'_> {
    /// An operator does something.
    pub fn operate(&mut self) {
        self.operator_left -= 1;
        self.ended.counts.publishes += 1;
        let command = match self.choices.below(12) {
            0..3 => {
                let which = self.choices.index(self.family.plans.len());
                Some(self.publish_command(which))
            }
            3 | 4 => Some(self.record_command()),
            5 => self.unfreeze_command(),
            6 => Some(self.freeze_command()),
            7 | 8 => self.resolve_command(),
            9 => Some(self.roll_back_command()),
            _ => Some(self.adjust_command()),
        };
        if let Some(command) = command {
            self.propose_own(command);
        }
    }

    fn record_command(&mut self) -> Command {
        let tenant = self.choices.index(TENANT_IDS.len());
        let records = &self.family.records;
        let which = self.choices.index(records.len() + 1);
        let record = records.get(which).map(|settable| Arc::clone(&settable.parsed));
        let (tenant, actor) = (TENANT_IDS[tenant].clone(), named("operator"));
        Command::SetTenant(SetTenant { tenant, record, expected_generation: None, actor })
    }

    fn unfreeze_command(&mut self) -> Option<Command> {
        let (tenant, user, route) = self.cluster.tally.frozen().first().copied()?;
        Some(Command::Unfreeze(Unfreeze {
            scope: FreezeScope::of_route(
                TENANT_IDS[tenant].clone(),
                user.map(|user| USER_IDS[user].clone()),
                named(route),
            ),
            actor: named("operator"),
            reason: "for a test".to_owned(),
        }))
    }

    fn freeze_command(&mut self) -> Command {
        let tenant = self.choices.index(TENANT_IDS.len());
        let user = self.choices.index(USER_IDS.len() + 1);
        let route = self.choices.index(ROUTES.len());
        Command::Freeze(Freeze {
            scope: FreezeScope::of_route(
                TENANT_IDS[tenant].clone(),
                USER_IDS.get(user).cloned(),
                named(ROUTES[route]),
            ),
            actor: named("operator"),
            reason: "for a test".to_owned(),
        })
    }

    /// Says what an operation used that nobody heard of, which its executor may contradict.
    fn resolve_command(&mut self) -> Option<Command> {
        let unknown: Vec<_> = self
            .cluster
            .tally
            .open()
            .filter(|(_, state, _)| matches!(state, State::Started | State::UsageUnknown))
            .map(|(id, _, _)| id)
            .collect();
        if unknown.is_empty() {
            return None;
        }
        let id = unknown[self.choices.index(unknown.len())];
        self.shared.push(id);
        let tokens = self.truths.iter().find(|truth| truth.id == id).map_or(0, |truth| truth.tokens);
        let actual = Amounts::NONE.with(Unit::Tokens, tokens);
        let (actor, reason) = (named("operator"), "for a test".to_owned());
        Some(Command::ResolveUnknown(ResolveUnknown { id, actual, actor, reason }))
    }

    fn roll_back_command(&mut self) -> Command {
        let in_force = self.in_force();
        let back = u64::from(self.choices.below(4));
        let to = in_force.unwrap_or(0).saturating_sub(back).max(1);
        let expected_generation = in_force.filter(|_| self.choices.chance(30));
        Command::RollBack(RollBack { to, expected_generation, actor: named("operator") })
    }

    /// An adjustment of some lineage, or one of the earlier ones again, perhaps with other content.
    fn adjust_command(&mut self) -> Command {
        self.ended.counts.adjustments += 1;
        let amount = ADJUSTED[self.choices.index(ADJUSTED.len())];
        let what = match self.choices.below(4) {
            0 => Adjustment::Grant(amount),
            1 => Adjustment::Take(amount),
            2 => Adjustment::Charge(amount),
            _ => Adjustment::Correct(amount),
        };
        if !self.adjustments.is_empty() && self.choices.chance(30) {
            let which = self.choices.index(self.adjustments.len());
            let mut again = self.adjustments[which].clone();
            if let (Command::Adjust(adjust), true) = (&mut again, self.choices.chance(20)) {
                adjust.what = what;
            }
            return again;
        }
        let (limit, level) = self.family.limits[self.choices.index(self.family.limits.len())];
        let (tenant, user) = (self.choices.index(TENANT_IDS.len()), self.choices.index(USER_IDS.len()));
        let lineage = LineageKey {
            limit: named(limit),
            tenant: Some(TENANT_IDS[tenant].clone()).filter(|_| level > Level::Global),
            user: Some(USER_IDS[user].clone()).filter(|_| level == Level::User),
            route: None,
            model: None,
            region: None,
            lane: Lane::Enforced,
        };
        let number = self.ended.counts.adjustments;
        let id = AdjustmentId::from_parts(self.now_ms, u128::from(number));
        let (lineage, actor) = (Arc::new(lineage), named("operator"));
        let reason = "for a test".to_owned();
        let adjust = Adjust { id, lineage, epoch_start_ms: None, what, actor, reason };
        let command = Command::Adjust(Box::new(adjust));
        self.adjustments.push(command.clone());
        command
    }

    /// An executor puts an estimate right, or wrong once more.
    pub fn correct(&mut self) {
        let estimated: Vec<_> = self.cluster.tally.estimated().collect();
        if estimated.is_empty() {
            return;
        }
        self.ended.counts.corrections += 1;
        let id = estimated[self.choices.index(estimated.len())];
        let tokens = [0, 50, 250, 400, 700, 1_500][self.choices.index(6)];
        let actual = match self.choices.below(4) {
            0 => Amounts::NONE,
            _ => Amounts::NONE.with(Unit::Tokens, tokens),
        };
        let gateway = self.choices.index(self.routes.len());
        self.call(gateway, Command::Correct(Correct { id, operation: operation_of(id), actual }), 0);
    }

    /// The generation that the member which is furthest has in force.
    fn in_force(&self) -> Option<u64> {
        self.cluster.foremost().map(|member| self.cluster.members[member].book.generation())
    }

    pub fn publish_command(&mut self, which: usize) -> Command {
        let publishable = &self.family.plans[which];
        let in_force = self.in_force();
        let force = self.choices.chance(70);
        let expected_generation = in_force.filter(|_| self.choices.chance(30));
        Command::PublishPlan(PublishPlan {
            expected_generation,
            document: Arc::clone(&publishable.document),
            plan: Arc::clone(&publishable.plan),
            actor: named("operator"),
            force,
        })
    }

    /// A command that no gateway's call is about goes to the queue of somebody who believes to lead.
    pub fn propose_own(&mut self, command: Command) {
        self.tell(|| format!("operator: {}", words(&command)));
        let leads = self.cluster.members.iter().position(|member| member.leads);
        if let Some(member) = leads {
            self.cluster.members[member].queue.push(Proposal { command, origin: None });
        }
    }
}
