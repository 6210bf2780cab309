//! What the model remembers, as plain lists of these.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_ledger::ReservationId;
use holdfast_ledger::answer::State;
use holdfast_ledger::command::Request;
use holdfast_ledger::ids::{IdempotencyKey, TenantId};
use holdfast_ledger::plan::{Plan, Route, TenantRecord};
use holdfast_ledger::record::LineageKey;

use crate::lineage::Fact;
use crate::verdict::{Sketch, Verdict};

/// A reservation, open or remembered.
#[derive(Clone, Debug)]
pub struct Reservation {
    pub id: ReservationId,
    pub digest: [u8; 32],
    pub key: Option<IdempotencyKey>,
    pub request: Request,
    pub route: Route,
    pub grace_ms: u64,
    pub legs: Vec<(LineageKey, u64)>,
    /// Its state is as it was set; what time makes of it is worked out.
    pub receipt: Sketch,
    pub forget_at_ms: Option<u64>,
}

impl Reservation {
    pub fn state_at(&self, now: u64) -> State {
        let expiry = self.receipt.expires_at_ms;
        match self.receipt.state {
            State::Reserved if now >= expiry + self.grace_ms => State::Expired,
            State::Reserved if now >= expiry => State::Expiring,
            State::Started if now >= expiry => State::UsageUnknown,
            state => state,
        }
    }

    pub fn sketch(&self, now: u64) -> Verdict {
        let mut receipt = self.receipt.clone();
        receipt.state = self.state_at(now);
        Verdict::Receipt(Box::new(receipt))
    }
}

/// Something that concerns balances.
#[derive(Clone, Debug)]
pub enum Happening {
    /// An era begins, by its place in the list.
    Era(usize),
    /// A reservation took or gave back.
    Leg(LineageKey, Fact),
}

/// What holds from one publish to the next.
#[derive(Clone, Debug)]
pub struct Era {
    pub generation: u64,
    pub plan: Arc<Plan>,
    pub records: BTreeMap<TenantId, Arc<TenantRecord>>,
    /// The generation restored and the first one rolled back, if it came by a roll-back.
    pub rolled_back: Option<(u64, u64)>,
}
