//! Settle: end a started reservation with its actual amounts.

use std::sync::Arc;

use crate::answer::{Answer, Estimate, Refusal, State};
use crate::apply::invalid;
use crate::book::{Book, Kept};
use crate::command::Settle;
use crate::event::EventKind;
use crate::ids::LimitId;
use crate::mutants;
use crate::plan::{Level, Route};
use crate::record::{Freeze, FreezeCause, FreezeScope, Lane, Leg};
use crate::unit::{Amounts, Unit};

/// A breach: the unit, and the leg past whose debt it went; `None`: the execution hard cap.
struct Breach {
    unit: Unit,
    leg: Option<Leg>,
}

impl Book {
    pub(super) fn apply_settle(&mut self, settle: &Settle) -> Result<Answer, Refusal> {
        let slot = self.known(settle.id)?;
        self.check_operation(slot, &settle.operation)?;
        let state = self.state(slot);
        let row = self.reservations.get(slot);
        let actual = actual_amounts(row, &settle.actual, settle.estimated)?;
        if let Some(ended) = &row.ended {
            let same = ended.actual == actual && row.estimate().is_some() == settle.estimated;
            return match same || mutants::on("settle-any-content") {
                true if mutants::on("settle-twice") => self.settle_twice(slot, actual),
                true => Ok(self.answer_with(slot)),
                false => Err(Refusal::Conflict { state }),
            };
        }
        if settle.estimated && state == State::UsageUnknown {
            // Only an operation's receipt ends it, and a guess is none.
            return Err(Refusal::WrongState { state });
        }
        let legs = self.touch_legs(slot)?;
        let booked = if mutants::on("overrun-is-free") { row_at_most(self, slot, actual) } else { actual };
        let debts = self.end_legs(settle.id, &legs, &booked);
        if settle.estimated {
            self.extras_mut(slot).estimate = Some(Estimate::default());
        }
        let receipt = self.end(slot, settled_with(&debts), actual, debts);
        self.freeze_at_breach(slot, &actual, None);
        Ok(Answer::Reservation(receipt))
    }

    /// Freezes what a settlement's or correction's breach says. `before`: what was booked until then, where it
    /// was not what was held.
    pub(super) fn freeze_at_breach(&mut self, slot: u32, actual: &Amounts, before: Option<&Amounts>) {
        let breach = self.find_breach(slot, actual, before);
        if let Some(breach) = breach.filter(|_| !mutants::on("no-freeze")) {
            self.freeze(slot, &breach);
        }
    }

    /// The mutant `settle-twice`: a repeated settlement gives back once more what was not used.
    fn settle_twice(&mut self, slot: u32, actual: Amounts) -> Result<Answer, Refusal> {
        for leg in self.touch_legs(slot)? {
            let row = self.lineages.get_mut(leg.lineage);
            let unused = leg.amount.saturating_sub(actual.get(row.unit).unwrap_or(0));
            row.refund_again(unused);
        }
        Ok(self.answer_with(slot))
    }

    /// The terms of the route that a reservation was admitted under.
    pub(crate) fn route_of(&self, slot: u32) -> Option<&Route> {
        let row = self.reservations.get(slot);
        self.generations.plan_at(row.generation)?.route(&row.hold.subject.route)
    }

    /// Whether a settlement went past the execution hard cap or the maximum debt of one of its lineages.
    fn find_breach(&self, slot: u32, actual: &Amounts, before: Option<&Amounts>) -> Option<Breach> {
        let row = self.reservations.get(slot);
        let route = self.route_of(slot)?;
        let grew = |unit: Unit, amount: u64| {
            before.is_none_or(|before| before.get(unit).is_none_or(|before| amount > before))
        };
        let over_cap = actual.iter().find(|(unit, amount)| {
            grew(*unit, *amount) && route.execution_max.get(*unit).is_some_and(|cap| *amount > cap)
        });
        if let Some((unit, _)) = over_cap {
            return Some(Breach { unit, leg: None });
        }
        row.legs().iter().find_map(|leg| {
            let lineage = self.lineages.get(leg.lineage);
            let unit = lineage.unit;
            let debt_max = lineage.overdraft_max.or(route.debt_max.get(unit))?;
            let booked = before.map_or(Some(leg.amount), |before| before.get(unit)).unwrap_or(0);
            let overran = actual.get(unit).is_some_and(|actual| actual > booked);
            (overran && lineage.debt > u128::from(debt_max)).then_some(Breach { unit, leg: Some(*leg) })
        })
    }

    /// Freezes the scope of the narrowest lineage, on the reservation's route. The global level is never
    /// frozen by itself: it has its event.
    fn freeze(&mut self, slot: u32, breach: &Breach) {
        let row = self.reservations.get(slot);
        let (id, subject) = (row.id, Arc::clone(&row.hold.subject));
        let lane = row.lane();
        // Nothing is frozen for what the shadow lane books.
        let may_freeze = |_: &&Leg| lane == Lane::Enforced;
        let narrowest = row.legs().iter().filter(may_freeze).max_by_key(|leg| {
            let key = &self.lineages.get(leg.lineage).key;
            // Of equally narrow ones the first by limit id.
            (key.level(), key.narrowings(), std::cmp::Reverse(&key.limit))
        });
        let narrowest = narrowest.map(|leg| Arc::clone(&self.lineages.get(leg.lineage).key));
        let frozen = narrowest.as_ref().map_or(Level::Global, |key| key.level());
        let scope = FreezeScope {
            tenant: subject.tenant.clone(),
            user: subject.user.clone().filter(|_| frozen == Level::User),
            route: subject.route.clone(),
            model: narrowest.as_ref().and_then(|key| key.model.clone()),
            region: narrowest.as_ref().and_then(|key| key.region.clone()),
        };
        let named = breach.leg.or_else(|| self.narrowest_leg(row, breach.unit));
        if let Some(named) = named.filter(|_| frozen > Level::Global) {
            let freeze = Freeze {
                scope: scope.clone(),
                at_ms: self.header.clock_ms,
                cause: FreezeCause::Breach {
                    reservation: id,
                    limit: self.limit_of(&named),
                    level: self.level_of(&named),
                    unit: breach.unit,
                },
            };
            self.insert_freeze(freeze);
        }
        self.push_event(EventKind::Breached {
            reservation: id,
            scope,
            lane,
            unit: breach.unit,
            limit: breach.leg.map(|leg| self.limit_of(&leg)),
            frozen,
        });
    }

    /// The leg that a rejection by a freeze names: of the unit if there is one, the narrowest, by limit id.
    fn narrowest_leg(&self, row: &Kept, unit: Unit) -> Option<Leg> {
        let of_unit = |leg: &&Leg| self.lineages.get(leg.lineage).unit == unit;
        let narrow = |legs: &mut dyn Iterator<Item = &Leg>| {
            legs.min_by_key(|leg| (std::cmp::Reverse(self.level_of(leg)), self.limit_of(leg))).copied()
        };
        narrow(&mut row.legs().iter().filter(of_unit)).or_else(|| narrow(&mut row.legs().iter()))
    }

    fn level_of(&self, leg: &Leg) -> Level {
        self.lineages.get(leg.lineage).key.level()
    }

    fn limit_of(&self, leg: &Leg) -> LimitId {
        self.lineages.get(leg.lineage).key.limit.clone()
    }
}

/// The mutant `overrun-is-free`: nothing past what was held.
fn row_at_most(book: &Book, slot: u32, mut actual: Amounts) -> Amounts {
    for (unit, held) in book.reservations.get(slot).reserved.iter() {
        actual.set(unit, actual.get(unit).map(|amount| amount.min(held)));
    }
    actual
}

/// The state after a settlement or a correction that left these debts.
pub(super) fn settled_with(debts: &Amounts) -> State {
    if debts.is_empty() { State::Settled } else { State::SettledWithDebt }
}

/// What a settlement books, per unit that was reserved: as said; else `requests` as held, the others 0, or
/// all of them as held if it is estimated; slots never.
pub(super) fn actual_amounts(row: &Kept, said: &Amounts, estimated: bool) -> Result<Amounts, Refusal> {
    check_reserved(row, said)?;
    let mut actual = Amounts::NONE;
    for (unit, held) in row.reserved.iter() {
        let amount = match unit {
            Unit::Slots => 0,
            Unit::Requests => said.get(unit).unwrap_or(held),
            Unit::Tokens | Unit::Micros => {
                let guess = estimated && !mutants::on("estimate-is-nothing");
                said.get(unit).unwrap_or(if guess { held } else { 0 })
            }
        };
        actual.set(unit, Some(amount));
    }
    Ok(actual)
}

/// Nothing may be used of a unit that was not reserved.
pub(super) fn check_reserved(row: &Kept, said: &Amounts) -> Result<(), Refusal> {
    match said.iter().find(|(unit, amount)| *amount > 0 && row.reserved.get(*unit).is_none()) {
        Some((unit, _)) => Err(invalid("actual", format!("{unit} was not reserved"))),
        None => Ok(()),
    }
}
