//! The troubled part: one step after the other, each drawn from what is possible.

use super::World;
use crate::interleave::facts::DAY_MS;

/// What may go wrong, or be done wrong.
#[derive(Clone, Copy)]
enum Mishap {
    Compare,
    Late,
    Operate,
    HeldUp,
    Correct,
    Leader,
    Cut,
    Clock,
    Restore,
    GatewayDies,
}

impl World<'_> {
    /// One step: most of the time something goes on, now and then something comes, passes or goes wrong.
    pub fn step(&mut self) {
        self.ended.counts.steps += 1;
        let routines = self.routines();
        let going_on: u32 = routines.iter().map(|(_, weight)| weight).sum();
        let arrives = 4 * u32::from(self.requests_left > 0);
        let time = if going_on > 0 { 1 } else { 4 };
        let mishaps = 1;
        let mut drawn = self.choices.below(going_on + arrives + time + mishaps);
        for (routine, weight) in routines {
            if drawn < weight {
                return self.go_on(routine);
            }
            drawn -= weight;
        }
        if drawn < arrives {
            self.arrive();
        } else if drawn < arrives + time {
            self.pass_time();
        } else {
            self.go_wrong();
        }
    }

    fn go_wrong(&mut self) {
        let several = self.cluster.members.len() > 1;
        let trouble = &self.trouble;
        let possible = [
            (Mishap::Compare, true),
            (Mishap::Late, self.late_left > 0 && !self.sent.is_empty()),
            (Mishap::Operate, trouble.publishes && self.operator_left > 0),
            (Mishap::HeldUp, !self.messages.is_empty()),
            (Mishap::Correct, self.cluster.tally.estimated().next().is_some()),
            (Mishap::Leader, trouble.leaders && several),
            (Mishap::Cut, trouble.cuts),
            (Mishap::Clock, trouble.clocks),
            (Mishap::Restore, trouble.restores),
            (Mishap::GatewayDies, trouble.deaths),
        ];
        let possible = || possible.iter().filter(|(_, possible)| *possible).map(|(mishap, _)| *mishap);
        let which = self.choices.index(possible().count());
        match possible().nth(which).unwrap_or(Mishap::Compare) {
            Mishap::Compare => self.compare(),
            Mishap::Late => self.repeat_late(),
            Mishap::Operate => self.operate(),
            Mishap::HeldUp => self.hold_up(),
            Mishap::Correct => self.correct(),
            Mishap::Leader => self.change_leader(),
            Mishap::Cut => self.cut_or_mend(),
            Mishap::Clock => self.step_clock(),
            Mishap::Restore => self.restore(),
            Mishap::GatewayDies => self.lose_gateway(),
        }
    }

    fn pass_time(&mut self) {
        let ms = match self.choices.below(60) {
            0..36 => return self.pass_to_next(),
            36..52 => u64::from(self.choices.below(60)) + 1,
            52..55 => 1_000,
            55 | 56 => 3_000,
            57 => 9_000,
            58 => 31_000,
            _ if self.choices.chance(50) => 65_000,
            _ => DAY_MS,
        };
        self.now_ms += ms;
        self.tick();
    }

    fn change_leader(&mut self) {
        let to = self.choices.index(self.cluster.members.len());
        if Some(to) == self.cluster.leader || self.cluster.members[to].cut {
            return;
        }
        let kept = self.choices.index(self.cluster.under_way() + 1);
        let old = self.cluster.leader;
        self.ended.counts.leaders += 1;
        self.tell(|| format!("member {to} leads instead of {old:?}, {kept} entries under way survive"));
        let fate = self.cluster.change_leader(to, kept);
        self.tell_fate(old.unwrap_or(to), fate);
    }

    /// A member or a way to it is cut off, or mended.
    fn cut_or_mend(&mut self) {
        let member = self.choices.index(self.cluster.members.len());
        self.ended.counts.cuts += 1;
        if self.choices.chance(50) && self.cluster.members.len() > 2 {
            if self.cluster.members[member].cut {
                return self.reconnect(member);
            }
            // At most one at a time, so that a quorum is left.
            if self.cluster.members.iter().all(|member| !member.cut) {
                self.cluster.members[member].cut = true;
                self.tell(|| format!("member {member} is cut off"));
            }
            return;
        }
        let gateway = self.choices.index(self.routes.len());
        let cut = !self.cut[gateway][member];
        self.cut[gateway][member] = cut;
        self.tell(|| format!("gateway {gateway} {} member {member}", if cut { "loses" } else { "finds" }));
    }

    /// A member is back among the others.
    pub fn reconnect(&mut self, member: usize) {
        self.tell(|| format!("member {member} is back"));
        let fate = self.cluster.reconnect(member);
        self.tell_fate(member, fate);
    }

    fn step_clock(&mut self) {
        let member = self.choices.index(self.cluster.members.len());
        let offset_ms = i64::from(self.choices.below(801)) - 400;
        self.ended.counts.clock_steps += 1;
        self.tell(|| format!("the clock of member {member} is off by {offset_ms} ms"));
        self.cluster.members[member].offset_ms = offset_ms;
    }

    fn restore(&mut self) {
        let member = self.choices.index(self.cluster.members.len());
        self.ended.counts.restores += 1;
        if self.choices.chance(25) {
            let from = self.choices.index(self.cluster.members.len());
            if from != member && !self.cluster.members[from].cut && !self.cluster.members[member].leads {
                self.tell(|| format!("member {member} is sent the snapshot of member {from}"));
                self.cluster.install(from, member);
            }
            return;
        }
        self.tell(|| format!("member {member} starts again from its snapshot"));
        self.cluster.restore(member);
    }

    /// A gateway dies with all it knew; another one takes its place.
    fn lose_gateway(&mut self) {
        let gateway = self.choices.index(self.routes.len());
        self.ended.counts.gateways_lost += 1;
        self.tell(|| format!("gateway {gateway} dies"));
        for actor in self.actors.iter_mut().filter(|actor| actor.gateway == gateway && actor.is_alive()) {
            actor.die();
        }
    }

    /// Compares balances, if a member has applied everything that was answered.
    pub fn compare(&mut self) {
        if let Some(member) = self.cluster.foremost() {
            self.cluster.tally.compare_quotas(&self.cluster.members[member].book);
        }
    }
}
