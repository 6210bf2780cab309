//! A client's way into the simulated cluster: the client crate's decisions over a lossy network.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use holdfast_client::core::{self, Advice, Kind, Reply, Routes, Step, Verdict};
use holdfast_ledger::answer::{Answer, Refusal};
use holdfast_ledger::command::{Command, PublishPlan};
use holdfast_ledger::ids::ActorName;
use holdfast_ledger::{Plan, ReservationId};
use holdfast_node::propose::Decision;
use holdfast_node::raft::memory::Delivery;
use holdfast_proto::{ErrorReason, Failure};
use openraft_rt::{AsyncRuntime, Instant};
use openraft_rt_sim::SimInstant;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::Sim;
use super::convert::{failure_of, failure_of_read};
use super::world::{World, address, node_at};
use crate::convert::command_of;
use crate::drive::{Door, Ended};
use crate::history::{Answered, Call, Outcome, ReceiptFacts, RefusalFacts};

/// An attempt gets no answer after this long.
const ATTEMPT: Duration = Duration::from_millis(800);

/// What one call was answered.
#[derive(Clone, Debug)]
struct Payload {
    revision: u64,
    answered: Answered,
}

/// Clients have ids of their own on the network, above those of the nodes.
pub const CLIENTS_FROM: u64 = 100;

/// A client of the simulated cluster.
pub struct SimDoor {
    world: World,
    client: u64,
    routes: Routes,
    rng: ChaCha8Rng,
    patience_ms: u64,
}

enum Request {
    Command(Box<Command>),
    Read(Option<ReservationId>),
}

impl SimDoor {
    /// A client that gives a call, with its retries, `patience_ms`.
    pub fn new(world: World, client: u32, mut rng: ChaCha8Rng, patience_ms: u64) -> Self {
        let members = world.nodes().into_iter().map(address).collect();
        let routes = Routes::new(members, rng.random());
        SimDoor { world, client: CLIENTS_FROM + u64::from(client), routes, rng, patience_ms }
    }

    /// A client that knows one certain member, unless that names another.
    pub fn at(world: World, client: u32, rng: ChaCha8Rng, patience_ms: u64, node: u64) -> Self {
        SimDoor {
            routes: Routes::new(vec![address(node)], 0),
            ..SimDoor::new(world, client, rng, patience_ms)
        }
    }

    fn request(id: &str, call: &Call, attempt: u32) -> Result<Request, Failure> {
        let invalid = |problem: String| Failure::new(ErrorReason::Invalid, problem);
        match call {
            Call::Get => Ok(Request::Read(id.parse().ok())),
            Call::Publish { document } => {
                let plan = Plan::parse(document).map_err(|problems| invalid(format!("{problems:?}")))?;
                let actor = ActorName::new("harness").map_err(|error| invalid(error.to_string()))?;
                let (expected_generation, document) = (None, document.as_str().into());
                let publish =
                    PublishPlan { expected_generation, force: false, document, plan: Arc::new(plan), actor };
                Ok(Request::Command(Box::new(Command::PublishPlan(publish))))
            }
            _ => match command_of(id, call, attempt).map_err(|error| invalid(error.to_string()))? {
                Some(command) => Ok(Request::Command(Box::new(command))),
                None => Err(invalid("not a command".into())),
            },
        }
    }

    /// One attempt at one member.
    async fn attempt(&mut self, request: Request, asked: &str) -> (Reply, Option<Payload>) {
        let Some(node) = node_at(asked) else {
            return (Reply::NotSent(Failure::not_leader(None)), None);
        };
        let deadline = SimInstant::now() + ATTEMPT;
        let Some((life, handle)) = self.world.handle(node) else {
            // Nobody listens there: the connection is refused.
            Sim::sleep(Duration::from_millis(1)).await;
            return (Reply::NotSent(Failure::new(ErrorReason::NoLeader, "connection refused")), None);
        };
        let there = self.world.links().draw(self.client, node);
        let back = self.world.links().draw(node, self.client);
        let (Delivery::After(there) | Delivery::Twice(there, _)) = there else {
            Sim::sleep(ATTEMPT).await;
            return (Reply::Lost("no answer in time".into()), None);
        };
        let world = self.world.clone();
        let handler = Sim::spawn(async move {
            Sim::sleep(there).await;
            if world.life(node) != Some(life) {
                return None;
            }
            let result = match request {
                Request::Command(command) => propose(&handle, *command, deadline).await,
                Request::Read(id) => read(&handle, id, deadline).await,
            };
            // A dead node says nothing.
            (world.life(node) == Some(life)).then_some(result)
        });
        let (Delivery::After(back) | Delivery::Twice(back, _)) = back else {
            Sim::sleep(ATTEMPT).await;
            return (Reply::Lost("no answer in time".into()), None);
        };
        match Sim::timeout_at(deadline, handler).await {
            Ok(Ok(Some(result))) => {
                Sim::sleep(back).await;
                match result {
                    Ok(payload) => (Reply::Done, Some(payload)),
                    Err(failure) => (Reply::Failed(failure), None),
                }
            }
            Ok(Ok(None)) => {
                // The connection broke with the node.
                (Reply::Lost("the connection broke".into()), None)
            }
            Ok(Err(_)) | Err(_) => (Reply::Lost("no answer in time".into()), None),
        }
    }

    fn learn(&mut self, asked: &str, reply: &Reply) {
        match core::advice(reply) {
            Advice::Keep => self.routes.keep(asked),
            Advice::Leader(leader) => self.routes.follow(asked, &leader.address),
            Advice::Leave => self.routes.leave(asked),
        }
    }

    fn now_ms(&self) -> u64 {
        self.world.now_us() / 1000
    }
}

type Handle = holdfast_node::raft::NodeHandle<Sim>;

async fn propose(handle: &Handle, command: Command, deadline: SimInstant) -> Result<Payload, Failure> {
    let Decision { refused, proposed } = handle.decide(&[command], deadline).await;
    if let Some((_, refused)) = refused.first() {
        let failure = Failure::from(&refused.refusal).at_revision(refused.revision);
        return Err(failure.unlogged_at(refused.at_ms));
    }
    let nothing = || Failure::new(ErrorReason::NodeFailed, "neither refused nor proposed");
    let answered = proposed.ok_or_else(nothing)?.map_err(|error| failure_of(&error))?;
    let revision = answered.first_revision;
    let answer = &answered.answers[0];
    if let Answer::Refused(refusal) = answer {
        return Err(Failure::from(refusal).at_revision(revision));
    }
    match Answered::of(answer) {
        Some(answered) => Ok(Payload { revision, answered }),
        None => Err(Failure::new(ErrorReason::Unsupported, format!("{answer:?}"))),
    }
}

async fn read(handle: &Handle, id: Option<ReservationId>, deadline: SimInstant) -> Result<Payload, Failure> {
    let at_ms = handle.now_ms();
    let (revision, receipt) = handle
        .read(deadline, |book| (book.revision(), id.and_then(|id| book.reservation(id, at_ms))))
        .await
        .map_err(|error| failure_of_read(&error))?;
    match receipt {
        Some(receipt) => {
            Ok(Payload { revision, answered: Answered::Receipt(Box::new(ReceiptFacts::of(&receipt))) })
        }
        None => Err(Failure::from(&Refusal::NotFound).at_revision(revision)),
    }
}

impl Door for SimDoor {
    async fn call(&mut self, id: &str, call: &Call) -> Ended {
        let kind = match call {
            Call::Reserve { .. } => Kind::Reserve,
            Call::Get => Kind::Read,
            Call::Publish { .. } => Kind::Once,
            _ => Kind::Repeatable,
        };
        let mut state = core::Call::new(kind, self.now_ms() + self.patience_ms);
        let mut step = state.resume(self.now_ms());
        let mut payload = None;
        loop {
            let request = match &step {
                Step::Send { attempt } => Self::request(id, call, *attempt),
                Step::Close => Self::request(id, &Call::Release, 1),
                Step::Pause { ms } => {
                    Sim::sleep(Duration::from_millis(*ms)).await;
                    step = state.resume(self.now_ms());
                    continue;
                }
                Step::End(verdict) => return ended(verdict.clone(), payload),
            };
            let asked = self.routes.pick().to_owned();
            let (reply, answer) = match request {
                Ok(request) => self.attempt(request, &asked).await,
                Err(failure) => (Reply::Failed(failure), None),
            };
            self.learn(&asked, &reply);
            payload = answer;
            step = state.on_reply(self.now_ms(), reply, self.rng.random());
        }
    }

    fn pause(&mut self) -> impl Future<Output = ()> {
        Sim::sleep(Duration::from_millis(self.rng.random_range(5..50)))
    }

    /// Faults are what takes virtual time, calls are what takes real time: a few hundred calls a second
    /// are enough to have some under way at every moment.
    fn think(&mut self) -> impl Future<Output = ()> {
        Sim::sleep(Duration::from_millis(self.rng.random_range(2..40)))
    }

    fn now_us(&self) -> u64 {
        self.world.now_us()
    }

    fn wall_ms(&self) -> u64 {
        self.world.clock(1).true_ms()
    }
}

fn ended(verdict: Verdict, payload: Option<Payload>) -> Ended {
    match (verdict, payload) {
        (Verdict::Done, Some(Payload { revision, answered })) => {
            Ended { outcome: Outcome::Ok, code: None, revision: Some(revision), answered: Some(answered) }
        }
        (Verdict::Rejected(failure) | Verdict::Invalid(failure), _) => Ended {
            outcome: Outcome::Rejected,
            code: Some(failure.reason.to_string()),
            revision: failure.facts.revision,
            answered: Some(Answered::Refused(RefusalFacts::from(&failure))),
        },
        (Verdict::Unavailable(failure), _) => Ended {
            outcome: Outcome::Unavailable,
            code: Some(failure.reason.to_string()),
            revision: None,
            answered: None,
        },
        (Verdict::Unknown(_), _) | (Verdict::Done, None) => Ended {
            outcome: Outcome::Unknown,
            code: Some(crate::codes::LOST.to_owned()),
            revision: None,
            answered: None,
        },
    }
}
