//! Roll-backs that are kept, and how far their generations have drained.

use crate::answer::State;
use crate::book::Book;
use crate::query::Drain;
use crate::record::{Lane, Lineage};
use crate::unit::Unit;

impl Drain {
    fn covers(&self, generation: u64) -> bool {
        (self.rolled_back.first..self.generation).contains(&generation)
    }
}

impl Book {
    /// Every roll-back that is kept, oldest first, and what is still open of the generations it rolled back, at
    /// max(book time, `at_ms`). Costs a look at every reservation, and at every lineage if some are in debt.
    pub fn drains(&self, at_ms: u64) -> Vec<Drain> {
        let now_ms = at_ms.max(self.header.clock_ms);
        let mut drains: Vec<Drain> = self.plans().filter_map(drain_of).collect();
        if drains.is_empty() {
            return drains;
        }
        for (_, row) in self.reservations.iter().filter(|(_, row)| row.ended.is_none()) {
            for drain in drains.iter_mut().filter(|drain| drain.covers(row.generation)) {
                match row.state_at(now_ms) {
                    State::Reserved | State::Expiring => drain.reserved += 1,
                    State::Started => drain.started += 1,
                    State::UsageUnknown => drain.usage_unknown += 1,
                    State::Expired | State::Released | State::Settled | State::SettledWithDebt => continue,
                }
                for (unit, amount) in row.reserved.iter() {
                    drain.held[unit as usize] += u128::from(amount);
                }
            }
        }
        if self.derived.tally.indebted > 0 {
            self.add_debts(&mut drains, now_ms);
        }
        drains
    }

    fn add_debts(&self, drains: &mut [Drain], now_ms: u64) {
        for (_, row) in self.lineages.iter().filter(|(_, row)| row.debt > 0 && row.key.lane == Lane::Enforced)
        {
            for drain in drains.iter_mut().filter(|drain| drain.covers(row.debt_generation)) {
                let debt = self.debt_at(row, now_ms);
                if debt > 0 {
                    let known = drain.debts.entry(row.key.limit.clone()).or_default();
                    known.lineages += 1;
                    known.debt += debt;
                }
            }
        }
    }

    /// A lineage's debt, with what has been repaid since it was touched. Where bounds of epochs are missing:
    /// as it was.
    pub(crate) fn debt_at(&self, row: &Lineage, now_ms: u64) -> u128 {
        let projected = self.project(&row.key, row.unit, now_ms);
        projected.ok().flatten().map_or(row.debt, |(lineage, _)| lineage.debt)
    }
}

fn drain_of(plan: &crate::query::PublishedPlan) -> Option<Drain> {
    Some(Drain {
        generation: plan.generation,
        rolled_back: plan.roll_back?,
        at_ms: plan.published_at_ms,
        actor: plan.actor.clone(),
        reserved: 0,
        started: 0,
        usage_unknown: 0,
        held: [0; Unit::ALL.len()],
        debts: Default::default(),
    })
}
