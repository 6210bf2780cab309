//! What goes on anyway, and the end of a world: everything heals and must come to its end.

use std::collections::BTreeSet;

use holdfast_client::core::{End, Stage};
use holdfast_ledger::answer::State;
use holdfast_ledger::command::{Command, Settle};
use holdfast_ledger::{Amounts, ReservationId, Unit};

use super::World;
use super::actors::Actor;
use super::cluster::Proposal;
use crate::interleave::found::Kind;
use crate::interleave::plans::named;

/// Steps within which a healed world must have come to its end.
const CONVERGE_STEPS_MAX: u32 = 4_000;

/// How far a leader's clock may be from the world's, and a little, ms.
const CLOCKS_APART_MS: u64 = 1_000;

/// What goes on without anybody's doing.
#[derive(Clone, Copy)]
pub enum Routine {
    Deliver,
    Apply,
    Commit,
    Propose,
    Wake,
    Act,
}

impl World<'_> {
    /// What can go on now, with its weight.
    pub fn routines(&self) -> [(Routine, u32); 6] {
        let due = self.due_actors().next().is_some();
        let idle = self.actors.iter().any(is_idle);
        let queued = self.cluster.members.iter().any(|member| member.leads && !member.queue.is_empty());
        [
            (Routine::Deliver, (6 * self.messages.len() as u32).min(24)),
            (Routine::Apply, 6 * u32::from(self.cluster.lagging().next().is_some())),
            (Routine::Commit, 6 * u32::from(self.cluster.can_commit())),
            (Routine::Propose, 6 * u32::from(queued)),
            (Routine::Wake, 5 * u32::from(due)),
            (Routine::Act, 5 * u32::from(idle)),
        ]
    }

    fn due_actors(&self) -> impl Iterator<Item = usize> + '_ {
        let now_ms = self.now_ms;
        let is_due =
            move |actor: &Actor| actor.is_alive() && actor.due_ms.is_some_and(|due_ms| due_ms <= now_ms);
        self.actors.iter().enumerate().filter(move |(_, actor)| is_due(actor)).map(|(place, _)| place)
    }

    /// One step of it.
    pub fn go_on(&mut self, routine: Routine) {
        match routine {
            Routine::Deliver => {
                let which = self.choices.index(self.messages.len());
                self.deliver(which);
            }
            Routine::Apply => {
                let which = self.choices.index(self.cluster.lagging().count());
                let Some(member) = self.cluster.lagging().nth(which) else { return };
                let owed = self.cluster.apply(member);
                self.settle_owed(member, owed);
            }
            Routine::Commit => self.cluster.commit(),
            Routine::Propose => {
                let waits = |member: &super::cluster::Member| member.leads && !member.queue.is_empty();
                let most = 1 + self.choices.index(4);
                let which = self.choices.index(self.cluster.members.iter().filter(|m| waits(m)).count());
                let members = self.cluster.members.iter().enumerate().filter(|(_, m)| waits(m));
                if let Some(place) = members.map(|(place, _)| place).nth(which) {
                    self.cluster.propose(place, most, self.now_ms);
                }
            }
            Routine::Wake => {
                let which = self.choices.index(self.due_actors().count());
                let due = self.due_actors().nth(which);
                if let Some(place) = due {
                    self.wake(place);
                }
            }
            Routine::Act => {
                let which = self.choices.index(self.actors.iter().filter(|actor| is_idle(actor)).count());
                let mut places = (0..self.actors.len()).filter(|place| is_idle(&self.actors[*place]));
                let found = places.nth(which);
                if let Some(place) = found {
                    self.act(place);
                }
            }
        }
    }

    /// Time passes to the next thing that waits for it.
    pub fn pass_to_next(&mut self) {
        let leader = self.cluster.leader.map(|leader| &self.cluster.members[leader]);
        let timer = leader.and_then(|leader| {
            let timer_ms = leader.book.next_timer_ms()?;
            Some(timer_ms.saturating_add_signed(-leader.offset_ms))
        });
        let dues = self.actors.iter().filter(|actor| actor.is_alive()).filter_map(|actor| actor.due_ms);
        let held_up = self.held_up.iter().map(|(until_ms, _)| *until_ms);
        let next_ms = dues.chain(timer).chain(held_up).filter(|due_ms| *due_ms > self.now_ms).min();
        self.now_ms = next_ms.unwrap_or(self.now_ms + 1);
        self.tick();
    }

    /// Some time has passed: messages go on, and the leader sees to timers that are due.
    pub fn tick(&mut self) {
        self.go_on_with_held_up();
        let Some(leader) = self.cluster.leader else { return };
        let leader = &mut self.cluster.members[leader];
        let due = leader.book.next_timer_ms().is_some_and(|due_ms| due_ms <= leader.clock_ms(self.now_ms));
        if due && leader.is_idle() {
            leader.queue.push(Proposal { command: Command::Tick, origin: None });
        }
    }

    /// Everything heals; whatever is open or unknown comes to its end, and all is compared.
    pub fn converge(&mut self) {
        self.heal();
        let mut resolved = BTreeSet::new();
        for _ in 0..CONVERGE_STEPS_MAX {
            self.ended.counts.steps += 1;
            if self.has_found() {
                return;
            }
            let routines = self.routines();
            let total = routines.iter().map(|(_, weight)| weight).sum();
            if total > 0 {
                let mut drawn = self.choices.below(total);
                for (routine, weight) in routines {
                    if drawn < weight {
                        self.go_on(routine);
                        break;
                    }
                    drawn -= weight;
                }
            } else if self.resolve(&mut resolved) {
                return self.judge_end();
            }
        }
        let open: Vec<_> = self.cluster.tally.open().map(|(id, state, _)| (id, state)).collect();
        let alive: Vec<_> = self
            .actors
            .iter()
            .filter(|actor| actor.is_alive())
            .map(|actor| actor.life().map(|life| life.stage().clone()))
            .collect();
        self.find(Kind::UnknownStays, format!("still open: {open:?}, still running: {alive:?}"));
    }

    fn heal(&mut self) {
        self.healed = true;
        self.tell(|| "everything heals".to_owned());
        for member in 0..self.cluster.members.len() {
            if self.cluster.members[member].cut {
                self.reconnect(member);
            }
            self.cluster.members[member].offset_ms = 0;
        }
        for row in &mut self.cut {
            row.fill(false);
        }
        self.messages.extend(self.held_up.drain(..).map(|(_, message)| message));
    }

    /// Nothing goes on by itself. Operators end what nobody answers for; else time passes. True: all is over.
    fn resolve(&mut self, resolved: &mut BTreeSet<ReservationId>) -> bool {
        let unowned: Vec<_> =
            self.cluster
                .tally
                .open()
                .filter(|(id, state, _)| {
                    matches!(state, State::Started | State::UsageUnknown)
                        && !self.actors.iter().any(|actor| {
                            actor.is_alive() && actor.life().is_some_and(|life| life.id() == *id)
                        })
                })
                .map(|(id, _, operation)| (id, operation.map(str::to_owned)))
                .collect();
        for (id, operation) in unowned {
            let (Some(operation), true) = (operation, resolved.insert(id)) else { continue };
            let tokens = self.truths.iter().find(|truth| truth.id == id).map_or(0, |truth| truth.tokens);
            let actual = match tokens {
                0 => Amounts::NONE,
                tokens => Amounts::NONE.with(Unit::Tokens, tokens),
            };
            self.ended.counts.receipts += 1;
            let settle = Settle { id, operation: named(&operation), actual, estimated: false };
            self.call(0, Command::Settle(settle), 0);
            return false;
        }
        let over = self.cluster.tally.open().next().is_none()
            && !self.actors.iter().any(Actor::is_alive)
            && self.cluster.is_level();
        if !over {
            self.pass_to_next();
        }
        over
    }

    fn judge_end(&mut self) {
        self.compare();
        for member in 0..self.cluster.members.len() {
            let audit = self.cluster.members[member].book.audit();
            let spent = self.cluster.archived_spent;
            self.cluster.tally.compare_sums(&audit, &spent);
        }
        for member in 0..self.cluster.members.len() {
            self.ended.counts.commands =
                self.ended.counts.commands.max(self.cluster.members[member].book.revision());
        }
        for place in 0..self.actors.len() {
            self.judge_told(place);
        }
    }

    /// What a life concluded must be so, unless somebody else used its id too.
    fn judge_told(&mut self, place: usize) {
        let actor = &self.actors[place];
        let Some(life) = actor.life() else { return };
        let (id, Stage::Over(end), Some(over_ms)) = (life.id(), life.stage(), actor.over_ms) else { return };
        if self.shared.contains(&id) {
            return;
        }
        let tally = &self.cluster.tally;
        let state = tally.state(id);
        let settled = matches!(state, Some(State::Settled | State::SettledWithDebt));
        let held_later = tally.ended_at_ms(id).is_some_and(|ended_ms| ended_ms > over_ms + CLOCKS_APART_MS);
        let right = match end {
            End::Unavailable(_) | End::Invalid(_) => state.is_none(),
            // From then on nothing is held, and nothing will be.
            End::Refused(_) | End::Released => !settled && !held_later,
            End::NotStarted(_) => !settled,
            End::Settled | End::Unknown | End::Forgotten => settled,
            End::EndRefused(_) => false,
        };
        if !right {
            let detail = format!("{id}: its gateway concluded {end:?}, the book has {state:?}");
            self.find(Kind::Told, detail);
        }
    }
}

/// Whether an actor is a life that waits for its program.
fn is_idle(actor: &Actor) -> bool {
    actor.waits_for_program() && actor.life().is_some()
}
