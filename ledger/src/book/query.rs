//! Reads of single reservations, previews of refusals, counts: all by the projection to a time, changing nothing.

use crate::answer::{Receipt, Refusal, State};
use crate::apply::reserve::{check_form, check_legs, check_request, no_plan, no_route};
use crate::book::lineage::Sink;
use crate::book::{Ask, Book, Found, Path, Uncovered, judge, open_lineage};
use crate::command::Reserve;
use crate::ids::ReservationId;
use crate::query::Counts;
use crate::record::{Lane, Lineage, LineageKey};
use crate::unit::Unit;
use std::sync::Arc;

impl Book {
    /// A reservation as it stands at max(book time, `at_ms`).
    pub fn reservation(&self, id: ReservationId, at_ms: u64) -> Option<Receipt> {
        match self.find(id)? {
            Found::Reservation(slot) => {
                Some(self.reservations.get(slot).receipt(at_ms.max(self.header.clock_ms)))
            }
            Found::Tombstone(_) => None,
        }
    }

    /// Whether an id was released before it was seen, and is still remembered for that.
    pub fn is_tombstone(&self, id: ReservationId) -> bool {
        matches!(self.find(id), Some(Found::Tombstone(_)))
    }

    /// What a reserve would be refused with at max(book time, `at_ms`). Changes nothing.
    pub fn preview(&self, reserve: &Reserve, at_ms: u64) -> Option<Refusal> {
        self.try_preview(reserve, at_ms.max(self.header.clock_ms)).err()
    }

    fn try_preview(&self, reserve: &Reserve, now_ms: u64) -> Result<(), Refusal> {
        if let Some(found) = self.find_reserved(reserve) {
            return match found {
                Found::Tombstone(_) => Err(Refusal::WrongState { state: State::Released }),
                Found::Reservation(slot) => {
                    let row = self.reservations.get(slot);
                    match row.request_digest == reserve.request_digest {
                        true => Ok(()),
                        false => Err(Refusal::Conflict { state: row.state_at(now_ms) }),
                    }
                }
            };
        }
        self.check_fresh_at(reserve.id, now_ms)?;
        let plan = self.generations.plan().ok_or_else(no_plan)?;
        let path = Path::of(plan, &reserve.request).ok_or_else(|| no_route(&reserve.request))?;
        let route = &plan.published.plan.routes[path.route];
        if path.lane == Lane::Shadow {
            return check_form(&reserve.request, route).map(|_| ());
        }
        check_request(&reserve.request, route)?;
        check_legs(&path)?;
        let amounts = reserve.request.amounts_least();
        let mut projected = Vec::with_capacity(path.legs.len());
        for leg in &path.legs {
            if let Some((lineage, held_before)) = self.project(&leg.key, leg.unit, now_ms)? {
                projected.push((lineage, amounts.get(leg.unit), held_before));
            }
        }
        let asks = projected.iter().map(|(lineage, amount, held_before)| Ask {
            lineage,
            amount: *amount,
            held_before: *held_before,
        });
        judge(asks, self.freeze_on(&path), now_ms, self.header.generation, &self.calendars)
            .map(|_| ())
            .map_err(Refusal::Rejected)
    }

    /// A lineage as it stands at a time, whether the book has it or not, and what open reservations of its
    /// epoch hold on earlier accounts. `None`: its limit never existed.
    pub(crate) fn project(
        &self,
        key: &Arc<LineageKey>,
        unit: Unit,
        now_ms: u64,
    ) -> Result<Option<(Lineage, u128)>, Uncovered> {
        let generation = self.header.generation;
        let Some(slot) = self.derived.find_lineage(&self.lineages, key) else {
            let opened = open_lineage(key, unit, now_ms, generation, &self.generations, &self.calendars)?;
            return Ok(opened.map(|lineage| (lineage, 0)));
        };
        let mut copy = self.lineages.get(slot).clone();
        let mut sink = Sink::default();
        copy.replay(now_ms, generation, &self.generations, &self.calendars, &mut sink)?;
        let closed_now = sink.closed.iter().filter(|account| copy.is_of_epoch(account.number));
        let held: u128 = closed_now.map(|account| account.columns.reserved).sum();
        let held_before = held + self.held_before(slot, &copy);
        Ok(Some((copy, held_before)))
    }

    /// How many of everything the book holds.
    pub fn counts(&self) -> Counts {
        let tally = &self.derived.tally;
        Counts {
            reserved: tally.reserved,
            started: tally.started,
            usage_unknown: tally.unknown,
            remembered: tally.ended,
            tombstones: self.tombstones.len() as u64,
            accounts: (self.lineages.len() + self.closed.len()) as u64,
            lineages: self.lineages.len() as u64,
            indebted: tally.indebted,
            frozen: self.freezes.len() as u64,
            oldest_unknown_ms: self.derived.unknown.first().map(|(since_ms, _)| *since_ms),
        }
    }
}
