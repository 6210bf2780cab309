//! The harness's own count of what was granted, held, spent and owed: it hears every committed command
//! with its answer, predicts the answer, and says where they differ.

mod adjustments;
mod balance;
mod generations;
mod lineages;
mod lives;
mod refusals;
mod settlements;
mod sums;

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_ledger::adjust::Adjust;
use holdfast_ledger::answer::{Answer, Receipt, Refusal, State};
use holdfast_ledger::command::{Command, Reserve};
use holdfast_ledger::ids::AdjustmentId;
use holdfast_ledger::{Amounts, ReservationId};

pub use balance::Balance;
pub use lineages::{Lineages, Place};

use super::facts::{Plan as Facts, Record};
use super::found::{Found, Kind};
use super::plans::{Family, TENANTS};

/// How far ahead of the book's clock an id may lie, ms (spec §4).
const AHEAD_MS: u64 = 5_000;

/// What is known of one id that was ever admitted or closed.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// `None`: a tombstone.
    life: Option<Life>,
    ended_at_ms: Option<u64>,
}

/// An admission.
#[derive(Clone, Debug)]
struct Life {
    tenant: usize,
    user: Option<usize>,
    route: &'static str,
    facts: Arc<Facts>,
    digest: [u8; 32],
    amounts: Amounts,
    legs: Vec<Leg>,
    revision: u64,
    state: State,
    expires_at_ms: u64,
    operation: Option<String>,
    actual: Amounts,
    /// What of each unit was booked as spent: more than `actual` where an estimate was corrected upward.
    spent: Amounts,
    estimate: Estimate,
    ended_revision: Option<u64>,
}

/// Whether a settlement was estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Estimate {
    No,
    Open,
    Corrected(Amounts),
}

/// A hold on one lineage.
#[derive(Clone, Copy, Debug)]
struct Leg {
    place: Place,
    amount: u64,
    stretch: u32,
}

/// The count.
#[derive(Clone)]
pub struct Tally {
    family: &'static Family,
    clock_ms: u64,
    floor_ms: u64,
    plan: Option<Arc<Facts>>,
    records: [Option<Record>; TENANTS.len()],
    lineages: Lineages,
    known: BTreeMap<ReservationId, Known>,
    /// Frozen: tenant, user or all of them, route.
    frozen: Vec<(usize, Option<usize>, &'static str)>,
    generation: u64,
    /// The plans by the generation that each came with.
    plans: Vec<(u64, Arc<Facts>)>,
    adjusted: BTreeMap<AdjustmentId, Adjust>,
    /// What operators charged, by unit.
    charged: [u128; 4],
    found: Vec<Found>,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(family: &'static Family) -> Self {
        Tally {
            family,
            clock_ms: 0,
            floor_ms: 0,
            plan: None,
            records: Default::default(),
            lineages: Lineages::new(&family.limits),
            known: BTreeMap::new(),
            frozen: Vec::new(),
            generation: 0,
            plans: Vec::new(),
            adjusted: BTreeMap::new(),
            charged: [0; 4],
            found: Vec::new(),
        }
    }

    /// What was found so far.
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    fn find(&mut self, kind: Kind, detail: impl FnOnce() -> String) {
        self.found.push(Found::new(kind, detail()));
    }

    /// An entry begins: time passes up to its stamp.
    pub fn begin_entry(&mut self, stamp_ms: u64) {
        self.clock_ms = self.clock_ms.max(stamp_ms);
        self.raise_floor();
        self.lineages.advance(self.clock_ms);
        self.expire();
    }

    fn raise_floor(&mut self) {
        if let Some(plan) = &self.plan {
            self.floor_ms = self.floor_ms.max(self.clock_ms.saturating_sub(plan.id_window_ms));
        }
    }

    /// A command was applied as this revision, with this answer.
    pub fn observe(&mut self, command: &Command, answer: &Answer, revision: u64) {
        match command {
            Command::Reserve(reserve) => self.on_reserve(reserve, answer, revision),
            Command::Start(start) => self.on_start(start, answer),
            Command::Settle(settle) => self.on_settle(settle, answer, revision),
            Command::Release(release) => self.on_release(release, answer, revision),
            Command::Renew(renew) => self.on_renew(renew, answer),
            Command::ReportUnknown(report) => self.on_report_unknown(report, answer),
            Command::PublishPlan(publish) => self.on_publish(publish, answer),
            Command::SetTenant(set) => self.on_set_tenant(set, answer),
            Command::Unfreeze(unfreeze) => self.on_unfreeze(unfreeze, answer),
            Command::Correct(correct) => self.on_correct(correct, answer),
            Command::ResolveUnknown(resolve) => self.on_resolve(resolve, answer, revision),
            Command::Freeze(freeze) => self.on_freeze(freeze, answer),
            Command::Adjust(adjust) => self.on_adjust(adjust, answer),
            Command::RollBack(roll_back) => self.on_roll_back(roll_back, answer),
            // The worlds send no webhooks, which change no balance.
            Command::SetWebhook(_)
            | Command::AdvanceWebhook(_)
            | Command::Tick
            | Command::RaiseRules { .. }
            | Command::UnreadablePlan(_) => {}
        }
    }

    /// Whether an id was ever admitted.
    pub fn was_admitted(&self, id: ReservationId) -> bool {
        self.known.get(&id).is_some_and(|known| known.life.is_some())
    }

    /// The state of an id; `None`: never admitted.
    pub fn state(&self, id: ReservationId) -> Option<State> {
        self.known.get(&id)?.life.as_ref().map(|life| life.state)
    }

    /// Book time at which an id that was admitted ended, ms.
    pub fn ended_at_ms(&self, id: ReservationId) -> Option<u64> {
        self.known.get(&id).filter(|known| known.life.is_some())?.ended_at_ms
    }

    /// What a settled reservation used.
    pub fn actual(&self, id: ReservationId) -> Option<Amounts> {
        self.known.get(&id)?.life.as_ref().filter(|life| is_settled(life.state)).map(|life| life.actual)
    }

    /// Every reservation that is open: its id, whether it was started, and the operation that was bound.
    pub fn open(&self) -> impl Iterator<Item = (ReservationId, State, Option<&str>)> {
        self.known.iter().filter_map(|(id, known)| {
            let life = known.life.as_ref().filter(|life| life.state.is_open())?;
            Some((*id, life.state, life.operation.as_deref()))
        })
    }

    /// What was estimated at its settlement and may still be corrected.
    pub fn estimated(&self) -> impl Iterator<Item = ReservationId> {
        let open = |known: &Known| known.life.as_ref().is_some_and(|life| life.estimate == Estimate::Open);
        self.known.iter().filter(move |(_, known)| open(known)).map(|(id, _)| *id)
    }

    /// Every freeze: tenant, user and route by their places and name.
    pub fn frozen(&self) -> &[(usize, Option<usize>, &'static str)] {
        &self.frozen
    }

    /// The tally's clock: that of the book.
    pub fn clock_ms(&self) -> u64 {
        self.clock_ms
    }

    fn asked(reserve: &Reserve) -> Amounts {
        reserve.request.amounts_asked()
    }
}

fn is_settled(state: State) -> bool {
    matches!(state, State::Settled | State::SettledWithDebt)
}

/// The receipt of an answer.
fn receipt(answer: &Answer) -> Option<&Receipt> {
    match answer {
        Answer::Reservation(receipt) => Some(receipt),
        _ => None,
    }
}

fn refusal(answer: &Answer) -> Option<&Refusal> {
    match answer {
        Answer::Refused(refusal) => Some(refusal),
        _ => None,
    }
}
