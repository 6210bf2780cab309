//! What a publish would destroy: limits whose balances it would cut off while something is held on them or
//! owed to them. Worked out in the book, so that it is exact at its place in the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::book::Book;
use crate::book::generations::{PlanVersion, find_limit, fits, kind_of};
use crate::ids::LimitId;
use crate::loss::{LimitLoss, LossyChange};
use crate::plan::{Limit, Plan};
use crate::record::{Lane, Lineage};
use crate::unit::Unit;

/// Losses so far, by limit.
type Losses = BTreeMap<LimitId, LimitLoss>;

impl Book {
    /// What publishing a plan now would destroy, by limit id. Only the enforced lane counts: what a shadow lane
    /// holds never mattered to anybody. Costs a look at every row, but only if the plan changes a limit so.
    pub fn losses(&self, plan: &Plan) -> Vec<LimitLoss> {
        let mut losses = self.changes_of_unit(plan);
        for (limit, change) in self.lossy_changes(plan) {
            losses.entry(limit.id.clone()).or_insert_with(|| loss(&limit.id, limit.unit, change));
        }
        if losses.is_empty() {
            return Vec::new();
        }
        let remembered = self.add_lineages(plan, &mut losses);
        if remembered {
            self.add_reservations(plan, &mut losses);
        }
        let counts = |loss: &LimitLoss| loss.reservations > 0 || loss.debt > 0 || !loss.change.is_forceable();
        losses.into_values().filter(counts).collect()
    }

    /// Limits in force that the plan removes or changes so that balances are cut off.
    fn lossy_changes<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = (&'a Limit, LossyChange)> {
        let in_force = self.generations.plan().map(|known| known.published.plan.limits.as_slice());
        in_force.unwrap_or_default().iter().filter_map(|limit| {
            let change = match find_limit(plan, &limit.id) {
                None => LossyChange::Removed,
                Some(next) if kind_of(next) != kind_of(limit) => LossyChange::KindChanged,
                Some(next) if next.scope != limit.scope => LossyChange::Rescoped,
                Some(_) => return None,
            };
            Some((limit, change))
        })
    }

    /// Limits that would count another unit than they ever did: amounts of two units cannot stand in one lineage.
    fn changes_of_unit(&self, plan: &Plan) -> Losses {
        let mut found = Losses::new();
        let mut unseen = Vec::new();
        for limit in &plan.limits {
            let known = |kept: &Arc<PlanVersion>| {
                let kept = &kept.published.plan;
                find_limit(kept, &limit.id).map(|known| (known.unit, kept.currency.clone()))
            };
            match self.generations.plans.iter().rev().find_map(known) {
                Some((unit, _)) if unit != limit.unit => {
                    found.insert(limit.id.clone(), unit_changed(limit, unit));
                }
                Some((Unit::Micros, currency)) if currency != plan.currency => {
                    let changed = loss(&limit.id, Unit::Micros, LossyChange::CurrencyChanged);
                    found.insert(limit.id.clone(), changed);
                }
                Some(_) => {}
                None => unseen.push(limit),
            }
        }
        if unseen.is_empty() {
            return found;
        }
        // A lineage may outlive the plans that are kept.
        for (_, row) in self.lineages.iter() {
            let Ok(place) = unseen.binary_search_by(|limit| limit.id.cmp(&row.key.limit)) else { continue };
            if unseen[place].unit != row.unit {
                let limit = unseen[place];
                found.entry(limit.id.clone()).or_insert_with(|| unit_changed(limit, row.unit));
            }
        }
        found
    }

    /// Adds what lost lineages hold and owe. True: reservations may be held on some of them.
    fn add_lineages(&self, plan: &Plan, losses: &mut Losses) -> bool {
        let mut remembered = false;
        for (_, row) in self.lineages.iter() {
            let Some(loss) = loss_of(row, plan, losses) else { continue };
            loss.held += row.current.columns.reserved;
            remembered |= row.legs > 0;
            if row.debt > 0 {
                loss.debt += self.debt_at(row, self.header.clock_ms);
            }
        }
        for (_, closed) in self.closed.iter() {
            if let Some(loss) = loss_of(self.lineages.get(closed.lineage), plan, losses) {
                loss.held += closed.account.columns.reserved;
            }
        }
        remembered
    }

    fn add_reservations(&self, plan: &Plan, losses: &mut Losses) {
        let mut met: Vec<LimitId> = Vec::new();
        for (_, row) in self.reservations.iter().filter(|(_, row)| row.ended.is_none()) {
            met.clear();
            for leg in row.legs().iter() {
                let lineage = self.lineages.get(leg.lineage);
                if let Some(loss) = loss_of(lineage, plan, losses)
                    && !met.contains(&loss.limit)
                {
                    loss.reservations += 1;
                    met.push(loss.limit.clone());
                }
            }
        }
    }
}

/// The loss that a lineage is part of.
fn loss_of<'a>(row: &Lineage, plan: &Plan, losses: &'a mut Losses) -> Option<&'a mut LimitLoss> {
    let loss = losses.get_mut(&row.key.limit).filter(|_| row.key.lane == Lane::Enforced)?;
    // Of a limit with another scope, some lineages may fit still.
    let stays = loss.change == LossyChange::Rescoped
        && find_limit(plan, &row.key.limit).is_some_and(|limit| fits(limit, &row.key));
    (!stays).then_some(loss)
}

fn loss(limit: &LimitId, unit: Unit, change: LossyChange) -> LimitLoss {
    LimitLoss { limit: limit.clone(), unit, change, reservations: 0, held: 0, debt: 0 }
}

fn unit_changed(limit: &Limit, unit: Unit) -> LimitLoss {
    loss(&limit.id, unit, LossyChange::UnitChanged { to: limit.unit })
}
