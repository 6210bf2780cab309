//! Who calls: the lives of a gateway's requests, and single calls of executors and operators. Both are the
//! client crate's own state machines.

use holdfast_client::core::{CommandCall, Life, LifeStep, Next, Reply, Stage};
use holdfast_ledger::Command;
use holdfast_proto::answers::Decided;

/// What an actor runs.
pub enum Driver {
    Life(Box<Life>),
    Call(Box<CommandCall>),
}

/// What the world owes an actor next.
pub enum Due {
    /// Its command is to be sent.
    Send,
    /// It pauses, ms.
    Pause(u64),
    /// It waits for its program.
    Idle,
    /// It is done.
    Over,
}

/// One of them.
pub struct Actor {
    pub gateway: usize,
    pub driver: Driver,
    pub serial: u32,
    /// The attempt that is under way and the member that it was sent to.
    pub waiting: Option<(u32, usize)>,
    /// When it must be woken, ms.
    pub due_ms: Option<u64>,
    /// When it was done, ms.
    pub over_ms: Option<u64>,
    /// Its gateway has died: nobody listens.
    pub is_gone: bool,
}

impl Actor {
    pub fn new(gateway: usize, driver: Driver) -> Self {
        Actor { gateway, driver, serial: 0, waiting: None, due_ms: None, over_ms: None, is_gone: false }
    }

    /// Whether anything may still happen to it.
    pub fn is_alive(&self) -> bool {
        self.over_ms.is_none() && !self.is_gone
    }

    /// Whether nothing of it is under way and nothing wakes it.
    pub fn waits_for_program(&self) -> bool {
        self.is_alive() && self.waiting.is_none() && self.due_ms.is_none()
    }

    /// The life, if it is one that waits for its program.
    pub fn idle_life(&mut self) -> Option<&mut Life> {
        let idle = self.waits_for_program();
        match &mut self.driver {
            Driver::Life(life) if idle => Some(life),
            _ => None,
        }
    }

    pub fn life(&self) -> Option<&Life> {
        match &self.driver {
            Driver::Life(life) => Some(life),
            Driver::Call(_) => None,
        }
    }

    /// Its gateway has died.
    pub fn die(&mut self) {
        self.is_gone = true;
        (self.waiting, self.due_ms) = (None, None);
    }

    /// What is to be sent.
    pub fn outgoing(&self) -> Option<Command> {
        match &self.driver {
            Driver::Life(life) => life.outgoing().map(|command| command.into_owned()),
            Driver::Call(call) => Some(call.outgoing().into_owned()),
        }
    }

    /// The attempt under way has ended.
    pub fn on_reply(&mut self, now_ms: u64, reply: Reply, decided: Option<Decided>, random: u64) -> Due {
        (self.waiting, self.due_ms) = (None, None);
        match &mut self.driver {
            Driver::Life(life) => {
                let step = life.on_reply(now_ms, reply, decided, random);
                of_life(life, step)
            }
            Driver::Call(call) => of_call(call.on_reply(now_ms, reply, decided, random)),
        }
    }

    /// A pause is over.
    pub fn resume(&mut self, now_ms: u64) -> Due {
        self.due_ms = None;
        match &mut self.driver {
            Driver::Life(life) => {
                let step = life.resume(now_ms);
                of_life(life, step)
            }
            Driver::Call(call) => of_call(call.resume(now_ms)),
        }
    }
}

/// What a life's step asks of the world.
pub fn of_life(life: &Life, step: LifeStep) -> Due {
    match step {
        LifeStep::Send => Due::Send,
        LifeStep::Pause { ms } => Due::Pause(ms),
        LifeStep::Idle if matches!(life.stage(), Stage::Over(_)) => Due::Over,
        LifeStep::Idle => Due::Idle,
    }
}

/// What a call's step asks of the world.
pub fn of_call(next: Next) -> Due {
    match next {
        Next::Send => Due::Send,
        Next::Pause { ms } => Due::Pause(ms),
        Next::End(_) => Due::Over,
    }
}
