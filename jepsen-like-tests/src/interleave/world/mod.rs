//! One world: gateways, members and a network, driven by choices.
//!
//! First comes trouble: requests arrive while messages are lost and repeated, leaders change, members and
//! gateways are cut off, clocks step, plans are published. Then everything heals, and whatever is open or
//! unknown must come to its end. At the end all accounts are compared.

mod actors;
mod cluster;
mod converge;
mod network;
mod operators;
mod program;
mod trouble;

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_client::core::Routes;
use holdfast_ledger::{Command, ReservationId};

use super::choices::Choices;
use super::found::{Found, Kind};
use super::plans::{FAMILIES, Family};
use super::tally::Tally;
use actors::Actor;
use cluster::Cluster;
use network::Message;

/// When every world begins, ms: shortly before a day ends, so that days end in short worlds too.
const BEGIN_MS: u64 = 1_800_000_000_000 / 86_400_000 * 86_400_000 + 86_400_000 - 45_000;

/// Steps of a world's troubled part, at most.
const STEPS_MAX: u32 = 400;

/// How a world ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// What was found, most of the time nothing.
    pub found: Vec<Found>,
    /// What happened, counted.
    pub counts: Counts,
    /// How long outcomes were unknown to their gateways, ms of the world's time.
    pub unknown_ms: Vec<u64>,
}

/// What happens in a world, in words, line by line; it outlives a thread that panics.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Mutex<Vec<String>>>);

impl Script {
    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// What happened in worlds, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Steps of all kinds.
    pub steps: u64,
    /// Commands applied by the first member that applied them.
    pub commands: u64,
    /// Requests that came.
    pub requests: u64,
    /// Reserves refused without a log entry.
    pub refused_fast: u64,
    /// Lives that ended settled.
    pub settled: u64,
    /// Lives that ended refused.
    pub refused: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// Messages that were delivered twice.
    pub repeated: u64,
    /// Calls repeated late, some of them with other content.
    pub late: u64,
    /// Changes of leader.
    pub leaders: u64,
    /// Members or gateways cut off.
    pub cuts: u64,
    /// Gateways that died.
    pub gateways_lost: u64,
    /// Clocks that stepped.
    pub clock_steps: u64,
    /// Books restored from a snapshot.
    pub restores: u64,
    /// Plans and tenant records sent.
    pub publishes: u64,
    /// Receipts given by operators.
    pub receipts: u64,
    /// Settlements estimated.
    pub estimates: u64,
    /// Corrections of estimates.
    pub corrections: u64,
    /// Adjustments by operators.
    pub adjustments: u64,
}

impl Counts {
    /// Adds another world's.
    pub fn add(&mut self, other: &Counts) {
        let Counts {
            steps, commands, requests, refused_fast, settled, refused, lost, repeated, late, ..
        } = other;
        self.steps += steps;
        self.commands += commands;
        self.requests += requests;
        self.refused_fast += refused_fast;
        self.settled += settled;
        self.refused += refused;
        self.lost += lost;
        self.repeated += repeated;
        self.late += late;
        self.leaders += other.leaders;
        self.cuts += other.cuts;
        self.gateways_lost += other.gateways_lost;
        self.clock_steps += other.clock_steps;
        self.restores += other.restores;
        self.publishes += other.publishes;
        self.receipts += other.receipts;
        self.estimates += other.estimates;
        self.corrections += other.corrections;
        self.adjustments += other.adjustments;
    }
}

/// How much trouble a world has, each drawn at its start.
struct Trouble {
    loss_percent: u32,
    repeat_percent: u32,
    leaders: bool,
    cuts: bool,
    clocks: bool,
    publishes: bool,
    restores: bool,
    deaths: bool,
}

/// What was truly used by an operation that ran.
struct Truth {
    id: ReservationId,
    tokens: u64,
}

struct World<'a> {
    choices: &'a mut Choices,
    now_ms: u64,
    family: &'static Family,
    trouble: Trouble,
    cluster: Cluster,
    routes: Vec<Routes>,
    /// Which gateway cannot reach which member.
    cut: Vec<Vec<bool>>,
    actors: Vec<Actor>,
    messages: Vec<Message>,
    /// Messages that are held up, with the times at which they go on, ms.
    held_up: Vec<(u64, Message)>,
    /// Commands that were sent, for late repeats.
    sent: Vec<Command>,
    /// Ids that more than one caller has used: what one of them was told does not bind the others.
    shared: Vec<ReservationId>,
    truths: Vec<Truth>,
    /// Adjustments that were sent, for repeats.
    adjustments: Vec<Command>,
    requests_left: u32,
    late_left: u32,
    operator_left: u32,
    healed: bool,
    ended: Ended,
    script: Option<Script>,
}

/// Plays the world that these choices make, and writes down what happens if there is a script.
pub fn play(choices: &mut Choices, script: Option<Script>) -> Ended {
    let mut world = World::new(choices, script);
    world.publish_first();
    while world.ended.counts.steps < u64::from(STEPS_MAX) && world.has_work() && !world.has_found() {
        world.step();
    }
    if !world.has_found() {
        world.converge();
    }
    world.end()
}

impl<'a> World<'a> {
    fn new(choices: &'a mut Choices, script: Option<Script>) -> Self {
        let family = &FAMILIES[choices.index(FAMILIES.len())];
        let members = 1 + choices.index(3);
        let gateways = 1 + choices.index(3);
        let trouble = Trouble {
            loss_percent: [0, 2, 8, 20][choices.index(4)],
            repeat_percent: [0, 3, 15][choices.index(3)],
            leaders: choices.chance(60),
            cuts: choices.chance(40),
            clocks: choices.chance(40),
            publishes: choices.chance(60),
            restores: choices.chance(50),
            deaths: choices.chance(15),
        };
        let names = || (0..members).map(|member| format!("m{member}:1"));
        let routes = (0..gateways).map(|_| Routes::new(names().collect(), choices.spread())).collect();
        let requests_left = 2 + choices.below(6);
        let world = World {
            choices,
            now_ms: BEGIN_MS,
            family,
            trouble,
            cluster: Cluster::new(members, Tally::new(family)),
            routes,
            cut: vec![vec![false; members]; gateways],
            actors: Vec::new(),
            messages: Vec::new(),
            held_up: Vec::new(),
            sent: Vec::new(),
            shared: Vec::new(),
            truths: Vec::new(),
            adjustments: Vec::new(),
            requests_left,
            late_left: 3,
            operator_left: 3,
            healed: false,
            ended: Ended::default(),
            script,
        };
        let (gateways, members) = (world.routes.len(), world.cluster.members.len());
        world.tell(|| format!("{gateways} gateways, {members} members"));
        world
    }

    /// Writes down what happens.
    fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(script) = &self.script {
            script.push(format!("{:>8} ms  {}", self.now_ms - BEGIN_MS, what()));
        }
    }

    fn find(&mut self, kind: Kind, detail: String) {
        self.ended.found.push(Found::new(kind, detail));
    }

    fn has_found(&self) -> bool {
        !(self.ended.found.is_empty()
            && self.cluster.found.is_empty()
            && self.cluster.tally.found().is_empty())
    }

    /// Whether the troubled part has anything left to do.
    fn has_work(&self) -> bool {
        self.requests_left > 0 || self.late_left > 0 || self.actors.iter().any(Actor::is_alive)
    }

    fn end(mut self) -> Ended {
        self.ended.found.append(&mut self.cluster.found);
        self.ended.found.extend(self.cluster.tally.found().iter().cloned());
        self.ended
    }
}
