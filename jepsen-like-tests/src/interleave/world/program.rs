//! What the programs do: callers that ask, executors that report, operators that publish.

use holdfast_client::core::{CommandCall, End, Life, Stage};
use holdfast_client::limits::CALL_DEADLINE;
use holdfast_ledger::command::{Command, Release, Request, Reserve, Settle, Start};
use holdfast_ledger::ids::OperationId;
use holdfast_ledger::{Amounts, ReservationId, Unit};

use super::actors::{Driver, Due, of_call, of_life};
use super::network::words;
use super::{Truth, World};
use crate::interleave::plans::{ROUTES, TENANT_IDS, USER_IDS, named};

/// How long a call of a patient and of an impatient gateway may take, ms.
const CALL_MS: [u64; 2] = [CALL_DEADLINE.as_millis() as u64, 3_000];

/// Tokens that requests ask for: together often more than a limit gives.
const TOKENS: [u64; 8] = [250, 400, 100, 600, 50, 300, 1, 900];

impl World<'_> {
    /// Somebody asks a gateway for capacity.
    pub fn arrive(&mut self) {
        self.requests_left -= 1;
        self.ended.counts.requests += 1;
        let gateway = self.choices.index(self.routes.len());
        let request = self.draw_request();
        let id = self.draw_id();
        let request_digest = request.digest();
        let reserve = Reserve { id, attempt: 0, key: None, request, request_digest };
        let call_ms = CALL_MS[self.choices.index(2)];
        let (life, step) = Life::begin(reserve, call_ms, self.now_ms);
        let due = of_life(&life, step);
        self.enter(gateway, Driver::Life(Box::new(life)), due);
    }

    fn draw_request(&mut self) -> Request {
        let choices = &mut *self.choices;
        let tenant = TENANT_IDS[usize::from(choices.chance(25))].clone();
        let user = [Some(0), Some(1), None][choices.index(3)].map(|user: usize| USER_IDS[user].clone());
        let route = named(ROUTES[usize::from(choices.chance(25))]);
        let mut amounts = Amounts::NONE.with(Unit::Tokens, TOKENS[choices.index(TOKENS.len())]);
        if choices.chance(8) {
            amounts = Amounts::NONE;
        }
        if choices.chance(15) {
            amounts.set(Unit::Requests, Some(2));
        }
        if choices.chance(10) {
            amounts.set(Unit::Slots, Some(2));
        }
        let minimum = match amounts.get(Unit::Tokens).filter(|_| choices.chance(15)) {
            Some(tokens) => Amounts::NONE.with(Unit::Tokens, tokens.div_ceil(4)),
            None => Amounts::NONE,
        };
        let hold_ttl_ms = choices.chance(15).then_some(2_000);
        Request { tenant, user, route, model: None, region: None, amounts, minimum, hold_ttl_ms }
    }

    /// A fresh id most of the time; one that somebody else uses, a very old one, or one from the future.
    fn draw_id(&mut self) -> ReservationId {
        let number = self.ended.counts.requests as u128;
        let random = number << 64 | u128::from(self.choices.below(1 << 16));
        let fresh = |time_ms| ReservationId::from_parts(time_ms, random);
        match self.choices.below(32) {
            28 => fresh(self.now_ms.saturating_sub(25_000)),
            29 => fresh(self.now_ms + 8_000),
            30 | 31 => {
                let lives: Vec<_> = self.actors.iter().filter_map(|actor| actor.life()).collect();
                if lives.is_empty() {
                    return fresh(self.now_ms);
                }
                let id = lives[self.choices.index(lives.len())].id();
                self.shared.push(id);
                id
            }
            _ => fresh(self.now_ms),
        }
    }

    /// The program of a life that waits for it does something.
    pub fn act(&mut self, place: usize) {
        let drawn = self.choices.below(100);
        let now_ms = self.now_ms;
        let gateway = self.actors[place].gateway;
        let Some(life) = self.actors[place].idle_life() else { return };
        let id = life.id();
        match life.stage() {
            Stage::Held => match drawn {
                0..70 => {
                    let operation = operation_of(id);
                    let step = life.start(operation, now_ms);
                    let due = step.map_or(Due::Idle, |step| of_life(life, step));
                    self.follow(place, due);
                }
                70..85 => {
                    let step = life.abandon(now_ms);
                    let due = of_life(life, step);
                    self.follow(place, due);
                }
                85..93 => {
                    let renew = life.held().map(|hold| hold.renew(12_000));
                    if let Some(renew) = renew {
                        self.call(gateway, renew, 0);
                    }
                    if self.healed {
                        self.actors[place].is_gone = true;
                    }
                }
                _ => self.lose(place),
            },
            Stage::Running => self.end_work(place, drawn),
            _ => {}
        }
    }

    /// The work of a running life ends, one way or another.
    fn end_work(&mut self, place: usize, drawn: u32) {
        let Some((id, held)) = self.actors[place].life().map(|life| {
            let held = life.held().and_then(|hold| hold.receipt().reserved.get(Unit::Tokens));
            (life.id(), held.unwrap_or(0))
        }) else {
            return;
        };
        let tokens = self.draw_usage(held);
        let actual = Amounts::NONE.with(Unit::Tokens, tokens);
        let actual = if held == 0 { Amounts::NONE } else { actual };
        self.truths.push(Truth { id, tokens: if held == 0 { 0 } else { tokens } });
        if (90..93).contains(&drawn) {
            return self.lose(place);
        }
        if (72..80).contains(&drawn) {
            // The executor saw the end and not what was used: it says what it knows, and perhaps more later.
            self.ended.counts.estimates += 1;
            let known = if self.choices.chance(30) { actual } else { Amounts::NONE };
            let settle = Settle { id, operation: operation_of(id), actual: known, estimated: true };
            self.call(self.actors[place].gateway, Command::Settle(settle), 0);
            return self.lose(place);
        }
        if drawn >= 93 {
            // The executor reports by itself, sometimes something else than the gateway will.
            self.shared.push(id);
            let other = Amounts::NONE.with(Unit::Tokens, self.draw_usage(held));
            let settle = Settle {
                id,
                operation: operation_of(id),
                actual: if held == 0 { Amounts::NONE } else { other },
                estimated: false,
            };
            let gateway = self.choices.index(self.routes.len());
            self.call(gateway, Command::Settle(settle), 0);
        }
        let now_ms = self.now_ms;
        let Some(life) = self.actors[place].idle_life() else { return };
        let step = match drawn {
            80..90 => life.report_unknown(now_ms),
            _ => life.settle(actual, now_ms),
        };
        match step {
            Ok(step) => {
                let due = of_life(life, step);
                self.follow(place, due);
            }
            // Somebody else had started what this life found under its id: it is theirs to end.
            Err(_) => self.lose(place),
        }
    }

    fn draw_usage(&mut self, held: u64) -> u64 {
        match self.choices.below(12) {
            part @ 0..8 => held * u64::from(8 - part) / 8,
            8 => 0,
            9 => held + 50,
            10 => held + 300,
            _ => held + 700,
        }
    }

    /// The gateway forgets a life: its hold expires, or an operator finds out what it used.
    fn lose(&mut self, place: usize) {
        let gateway = self.actors[place].gateway;
        let id = self.actors[place].life().map(|life| life.id());
        self.tell(|| format!("gateway {gateway} loses sight of {id:?}"));
        self.actors[place].is_gone = true;
    }

    /// A single call, by whoever it is.
    pub fn call(&mut self, gateway: usize, command: Command, attempts: u32) {
        let mut call = CommandCall::new(command, self.now_ms + CALL_MS[0], attempts);
        let due = of_call(call.resume(self.now_ms));
        self.enter(gateway, Driver::Call(Box::new(call)), due);
    }

    /// Something that was sent before comes again, perhaps with other content, perhaps much later.
    pub fn repeat_late(&mut self) {
        self.late_left -= 1;
        if self.sent.is_empty() {
            return;
        }
        self.ended.counts.late += 1;
        let which = self.choices.index(self.sent.len());
        let mut command = self.sent[which].clone();
        let other = self.choices.chance(50);
        let mut attempts = 0;
        match &mut command {
            Command::Reserve(reserve) => {
                attempts = reserve.attempt;
                self.shared.push(reserve.id);
                if other && self.choices.chance(50) {
                    command = Command::Release(Release { id: reserve.id });
                } else if other {
                    reserve.request.amounts.set(Unit::Tokens, Some(77));
                    reserve.request_digest = reserve.request.digest();
                }
            }
            Command::Start(start) => {
                self.shared.push(start.id);
                if other {
                    start.operation = named("another-operation");
                }
            }
            Command::Settle(settle) => {
                self.shared.push(settle.id);
                if other {
                    settle.actual = Amounts::NONE.with(Unit::Tokens, 33);
                }
            }
            Command::Release(Release { id }) => {
                let id = *id;
                self.shared.push(id);
                if other {
                    command = Command::Start(Start { id, operation: operation_of(id) });
                }
            }
            _ => {}
        }
        let gateway = self.choices.index(self.routes.len());
        self.tell(|| format!("late: {}", words(&command)));
        self.call(gateway, command, attempts);
    }

    /// The first plan is in force before anybody asks for anything.
    pub fn publish_first(&mut self) {
        let command = self.publish_command(0);
        self.propose_own(command);
        self.cluster.propose(0, 1, self.now_ms);
        self.cluster.commit();
        self.cluster.apply(0);
    }

    /// An actor is done.
    pub fn on_over(&mut self, place: usize) {
        match self.actors[place].life().map(|life| life.stage()) {
            Some(Stage::Over(End::Settled)) => self.ended.counts.settled += 1,
            Some(Stage::Over(End::Refused(_))) => self.ended.counts.refused += 1,
            _ => {}
        }
    }
}

/// The operation of a reservation that a life starts.
pub fn operation_of(id: ReservationId) -> OperationId {
    named(&format!("op-{:x}", id.0 as u64))
}
