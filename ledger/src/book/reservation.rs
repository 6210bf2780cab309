//! Reservations: their rows, what a time makes of their state, and their receipts.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::answer::{Correction, Estimate, Extras, Hold, LegReceipt, Receipt, State, Tier};
use crate::book::Book;
use crate::book::bytes::{RowBytes, pair};
use crate::book::table::Row;
use crate::ids::{ActorName, IdempotencyKey, OperationId, ReservationId, UserId};
use crate::record::{Account, Ended, Lane, Leg, ReservationRow, Subject, Tombstone};
use crate::shadow::ShadowDecision;
use crate::unit::Amounts;

/// A reservation in the book: its record, but for the subject and the legs, which it shares with its receipts.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) id: ReservationId,
    pub(crate) request_digest: [u8; 32],
    /// Its subject, its legs, and what its receipts say of them. That follows from the legs; it is at hand because
    /// every receipt needs it, and shared because most are alike.
    pub(crate) hold: Arc<Hold>,
    pub(crate) generation: u64,
    pub(crate) tier: Tier,
    pub(crate) state: State,
    pub(crate) reserved: Amounts,
    pub(crate) reserved_at_ms: u64,
    pub(crate) reserved_revision: u64,
    pub(crate) expires_at_ms: u64,
    pub(crate) grace_ms: u64,
    pub(crate) operation: Option<OperationId>,
    pub(crate) started_at_ms: u64,
    pub(crate) unknown_at_ms: u64,
    pub(crate) shadow: Option<Arc<ShadowDecision>>,
    pub(crate) ended: Option<Box<Ended>>,
    /// What most have nothing of.
    pub(crate) extras: Option<Arc<Extras>>,
}

impl Kept {
    /// The reservation of a record, with the hold that it shares with others.
    pub(crate) fn of(record: ReservationRow, hold: Arc<Hold>) -> Kept {
        Kept {
            id: record.id,
            request_digest: record.request_digest,
            hold,
            generation: record.generation,
            tier: record.tier,
            state: record.state,
            reserved: record.reserved,
            reserved_at_ms: record.reserved_at_ms,
            reserved_revision: record.reserved_revision,
            expires_at_ms: record.expires_at_ms,
            grace_ms: record.grace_ms,
            operation: record.operation,
            started_at_ms: record.started_at_ms,
            unknown_at_ms: record.unknown_at_ms,
            shadow: record.shadow,
            ended: record.ended,
            extras: record.extras,
        }
    }

    pub(crate) fn legs(&self) -> &[Leg] {
        &self.hold.places
    }

    pub(crate) fn record(&self) -> ReservationRow {
        ReservationRow {
            id: self.id,
            request_digest: self.request_digest,
            subject: Arc::clone(&self.hold.subject),
            generation: self.generation,
            tier: self.tier,
            state: self.state,
            reserved: self.reserved,
            legs: self.legs().into(),
            reserved_at_ms: self.reserved_at_ms,
            reserved_revision: self.reserved_revision,
            expires_at_ms: self.expires_at_ms,
            grace_ms: self.grace_ms,
            operation: self.operation.clone(),
            started_at_ms: self.started_at_ms,
            unknown_at_ms: self.unknown_at_ms,
            shadow: self.shadow.clone(),
            ended: self.ended.clone(),
            extras: self.extras.clone(),
        }
    }

    /// The receipt of a reservation, with its state at an instant.
    pub(crate) fn receipt(&self, at_ms: u64) -> Receipt {
        let ended = self.ended.as_deref();
        Receipt {
            id: self.id,
            state: self.state_at(at_ms),
            hold: Arc::clone(&self.hold),
            request_digest: self.request_digest,
            generation: self.generation,
            tier: self.tier,
            reserved: self.reserved,
            reserved_at_ms: self.reserved_at_ms,
            reserved_revision: self.reserved_revision,
            expires_at_ms: self.expires_at_ms,
            operation: self.operation.clone(),
            started_at_ms: (self.started_at_ms != 0).then_some(self.started_at_ms),
            actual: ended.filter(|ended| !ended.actual.is_empty()).map(|ended| ended.actual),
            ended_at_ms: ended.map(|ended| ended.at_ms),
            ended_revision: ended.map(|ended| ended.revision),
            debt: ended.map(|ended| ended.debt).unwrap_or_default(),
            shadow: self.shadow.clone(),
            extras: self.extras.clone(),
        }
    }

    /// The receipt that it ended with, before a correction if there was one since.
    pub(crate) fn receipt_at_end(&self) -> Receipt {
        let mut receipt = self.receipt(0);
        if receipt.correction().is_some() {
            receipt.state = if receipt.debt.is_empty() { State::Settled } else { State::SettledWithDebt };
            let extras = receipt.extras.get_or_insert_default();
            Arc::make_mut(extras).estimate = Some(Estimate::default());
        }
        receipt
    }

    /// The lane that it was admitted in.
    pub(crate) fn lane(&self) -> Lane {
        if self.shadow.is_some() { Lane::Shadow } else { Lane::Enforced }
    }

    /// The state at an instant, whether or not a timer has come first.
    pub(crate) fn state_at(&self, at_ms: u64) -> State {
        match self.state {
            State::Reserved if at_ms >= self.expires_at_ms.saturating_add(self.grace_ms) => State::Expired,
            State::Reserved if at_ms >= self.expires_at_ms => State::Expiring,
            State::Started if at_ms >= self.expires_at_ms => State::UsageUnknown,
            state => state,
        }
    }

    /// Whether something may still be booked on it under the terms it was admitted with.
    pub(crate) fn needs_terms(&self) -> bool {
        let corrected = |estimate: &Estimate| estimate.correction.is_some();
        self.ended.is_none() || self.estimate().is_some_and(|estimate| !corrected(estimate))
    }

    /// What is known of its estimated settlement, if it was one.
    pub(crate) fn estimate(&self) -> Option<&Estimate> {
        self.extras.as_ref()?.estimate.as_ref()
    }

    /// The idempotency key it was made with.
    pub(crate) fn key(&self) -> Option<&IdempotencyKey> {
        self.extras.as_ref()?.key.as_ref()
    }

    /// When timer work is due on it.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        match (&self.ended, self.state) {
            (Some(ended), _) => Some(ended.forget_at_ms),
            (None, State::Reserved) => Some(self.expires_at_ms.saturating_add(self.grace_ms)),
            (None, State::Started) => Some(self.expires_at_ms),
            (None, _) => None,
        }
    }
}

impl Book {
    /// The account of a leg, open or closed.
    pub(crate) fn account(&self, leg: &Leg) -> &Account {
        let lineage = self.lineages.get(leg.lineage);
        if lineage.current.number == leg.account {
            return &lineage.current;
        }
        match self.derived.closed_slot(&self.closed, leg.lineage, leg.account) {
            Some(slot) => &self.closed.get(slot).account,
            None => panic!("{} has no account {}", lineage.key, leg.account),
        }
    }

    /// What a receipt says of a leg.
    fn leg_receipt(&self, leg: &Leg) -> LegReceipt {
        let lineage = self.lineages.get(leg.lineage);
        let account = self.account(leg);
        LegReceipt {
            limit: lineage.key.limit.clone(),
            level: lineage.key.level(),
            unit: lineage.unit,
            amount: leg.amount,
            generation: account.generation,
            epoch_start_ms: account.epoch_start_ms,
        }
    }

    /// The extras of a reservation for writing.
    pub(crate) fn extras_mut(&mut self, slot: u32) -> &mut Extras {
        Arc::make_mut(self.reservations.get_mut(slot).extras.get_or_insert_default())
    }

    /// What receipts say of legs.
    pub(crate) fn hold(&self, subject: &Arc<Subject>, places: SmallVec<[Leg; 8]>) -> Hold {
        let legs = places.iter().map(|leg| self.leg_receipt(leg)).collect();
        Hold { subject: Arc::clone(subject), legs, places }
    }

    pub(crate) fn receipt_of(&self, slot: u32) -> Arc<Receipt> {
        Arc::new(self.reservations.get(slot).receipt(self.header.clock_ms))
    }
}

fn write_amounts(amounts: &Amounts, out: &mut RowBytes) {
    let mask = amounts.iter().fold(0, |mask, (unit, _)| mask | 1 << unit as u8);
    out.put_u8(mask);
    for (_, amount) in amounts.iter() {
        out.put_u64(amount);
    }
}

/// What tells the fixed part of the extras from a decision of the shadow lane, which may stand in its place.
const FIXED_EXTRAS: u8 = 16;

/// The part of the extras that never changes. Last among the fixed fields: it is nothing where there is nothing
/// to say, since the extras themselves may come later.
fn write_fixed_extras(extras: &Extras, out: &mut RowBytes) {
    let Extras { asked, key, estimate: _, resolved_by: _ } = extras;
    if asked.is_empty() && key.is_none() {
        return;
    }
    out.put_u8(FIXED_EXTRAS);
    write_amounts(asked, out);
    out.put_optional_text(key.as_ref().map(IdempotencyKey::as_str));
}

/// The part of the extras that changes. Last of all fields: an estimate has no length of its own.
fn write_extras(extras: &Extras, out: &mut RowBytes) {
    out.put_optional_text(extras.resolved_by.as_ref().map(ActorName::as_str));
    let Some(Estimate { correction }) = &extras.estimate else { return };
    out.put_u8(1 + u8::from(correction.is_some()));
    if let Some(Correction { at_ms, revision, actual, debt }) = correction {
        out.put_u64(*at_ms);
        out.put_u64(*revision);
        write_amounts(actual, out);
        write_amounts(debt, out);
    }
}

fn write_decision(decision: &ShadowDecision, out: &mut RowBytes) {
    match decision {
        ShadowDecision::Admitted { tier } => {
            out.put_u8(1);
            out.put_u8(*tier as u8);
        }
        ShadowDecision::Rejected(rejection) => {
            out.put_u8(2);
            out.put_u64(rejection.generation);
            out.put_text(rejection.limit.as_str());
            out.put_u8(rejection.level as u8);
            out.put_u8(rejection.unit as u8);
            out.put_u8(rejection.reason as u8);
            out.put_option(rejection.reset_at_ms);
            out.put_option(rejection.retry_after_ms);
        }
        ShadowDecision::Undecided(why) => {
            out.put_u8(3);
            out.put_u8(*why as u8);
        }
    }
}

impl Row for Kept {
    const TAG: u8 = 3;

    fn write_fixed(&self, out: &mut RowBytes) {
        out.put_raw(&self.request_digest);
        write_amounts(&self.reserved, out);
        out.put_words([
            self.id.0 as u64,
            (self.id.0 >> 64) as u64,
            self.generation,
            self.reserved_at_ms,
            self.reserved_revision,
            self.grace_ms,
            pair(self.tier as u32, self.legs().len() as u32),
        ]);
        for leg in self.legs() {
            out.put_words([pair(leg.lineage, leg.account), leg.amount]);
        }
        out.put_text(self.hold.subject.tenant.as_str());
        out.put_optional_text(self.hold.subject.user.as_ref().map(UserId::as_str));
        out.put_text(self.hold.subject.route.as_str());
        if let Some(decision) = &self.shadow {
            write_decision(decision, out);
        }
        if let Some(extras) = self.extras.as_deref() {
            write_fixed_extras(extras, out);
        }
    }

    fn write(&self, out: &mut RowBytes) {
        out.put_words([
            pair(self.state as u32, u32::from(self.ended.is_some())),
            self.expires_at_ms,
            self.started_at_ms,
            self.unknown_at_ms,
        ]);
        if let Some(ended) = &self.ended {
            out.put_words([ended.at_ms, ended.revision, ended.forget_at_ms]);
            write_amounts(&ended.actual, out);
            write_amounts(&ended.debt, out);
        }
        out.put_optional_text(self.operation.as_ref().map(OperationId::as_str));
        if let Some(extras) = self.extras.as_deref() {
            write_extras(extras, out);
        }
    }
}

impl Row for Tombstone {
    const TAG: u8 = 4;

    fn write_fixed(&self, _out: &mut RowBytes) {}

    fn write(&self, out: &mut RowBytes) {
        out.put_u128(self.id.0);
        out.put_words([self.at_ms, self.forget_at_ms]);
    }
}
