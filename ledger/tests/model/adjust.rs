//! Operators' adjustments in the model.

use holdfast_ledger::limits::ID_AHEAD_MS;
use holdfast_ledger::plan::{Level, Rule, Shape};
use holdfast_ledger::record::{Lane, LineageKey};
use holdfast_ledger::{Adjust, Adjustment, Unit};

use crate::lineage::{Balance, Fact};
use crate::naive::Model;
use crate::rows::Happening;
use crate::verdict::{Booked, Verdict, figures_of};

impl Model {
    pub fn adjust(&mut self, adjust: &Adjust) -> Verdict {
        if let Some((known, verdict, _)) = self.adjustments.iter().find(|(known, ..)| known.id == adjust.id) {
            return if known == adjust { verdict.clone() } else { Verdict::AdjustmentConflict };
        }
        let (time, now) = (adjust.id.time_ms(), self.clock_ms);
        if time < self.floor_ms {
            return Verdict::IdTooOld(self.floor_ms);
        }
        if time > now + ID_AHEAD_MS {
            return Verdict::IdInFuture(now + ID_AHEAD_MS);
        }
        let Some(unit) = self.unit_of(&adjust.lineage) else { return Verdict::Invalid };
        let key = adjust.lineage.as_ref().clone();
        let before = self.balance(&key, now);
        let epoch_start_ms = before.epoch.map(|(start, _)| start);
        if adjust.epoch_start_ms.is_some_and(|meant| Some(meant) != epoch_start_ms) {
            return Verdict::EpochClosed(epoch_start_ms);
        }
        let Some(facts) = self.facts_of(adjust, unit, &before) else { return Verdict::Invalid };
        self.units.insert(key.clone(), unit);
        self.log.extend(facts.into_iter().map(|fact| (now, Happening::Leg(key.clone(), fact))));
        let after = self.balance(&key, now);
        let booked = Booked {
            generation: self.rule_generation(&key),
            epoch_start_ms,
            before: figures_of(&before),
            after: figures_of(&after),
        };
        let verdict = Verdict::Adjusted(Box::new(booked));
        let forget_at_ms = now.max(time) + self.window_ms() + ID_AHEAD_MS;
        self.adjustments.push((adjust.clone(), verdict.clone(), forget_at_ms));
        verdict
    }

    /// The unit of a lineage that the plan in force has.
    fn unit_of(&self, key: &LineageKey) -> Option<Unit> {
        let limit = self.plan()?.limit(&key.limit)?;
        let scope = limit.scope;
        let keyed = key.tenant.is_some() == (scope.level != Level::Global)
            && key.user.is_some() == (scope.level == Level::User)
            && key.route.is_some() == scope.route
            && (scope.model || key.model.is_none())
            && (scope.region || key.region.is_none())
            && key.lane == Lane::Enforced;
        keyed.then_some(limit.unit)
    }

    /// What it comes to; `None`: it makes no sense.
    fn facts_of(&self, adjust: &Adjust, unit: Unit, before: &Balance) -> Option<Vec<Fact>> {
        let limit = self.plan()?.limit(&adjust.lineage.limit)?;
        let is_bucket = matches!(limit.shape, Shape::Bucket { .. });
        let capped = !matches!(before.rule, Some(Rule::Unlimited { .. }));
        let now = self.clock_ms;
        let generation = self.generation();
        let used = |amount: i128| (unit != Unit::Slots).then(|| vec![Fact::Usage(amount, generation)]);
        match adjust.what {
            Adjustment::Grant(0) | Adjustment::Take(0) | Adjustment::Charge(0) | Adjustment::Correct(0) => {
                None
            }
            Adjustment::Grant(amount) => capped.then(|| vec![Fact::Capacity(i128::from(amount))]),
            Adjustment::Take(amount) => {
                let fits = is_bucket || i128::from(amount) <= before.gives;
                (capped && fits).then(|| vec![Fact::Capacity(-i128::from(amount))])
            }
            Adjustment::Charge(amount) => used(i128::from(amount)),
            Adjustment::Correct(amount) if !is_bucket && i128::from(amount) <= before.spent => {
                used(-i128::from(amount))
            }
            Adjustment::SetUsed(wanted) if !is_bucket => used(i128::from(wanted) - before.spent),
            Adjustment::Boost { amount, until_ms } => {
                let fits = amount > 0 && until_ms > now && until_ms <= now + 366 * 86_400_000;
                (capped && fits).then(|| vec![Fact::Boost(adjust.id, amount, until_ms)])
            }
            Adjustment::EndBoost { boost } if before.has_boost(boost) => Some(vec![Fact::EndBoost(boost)]),
            _ => None,
        }
    }

    /// Forgets adjustments as it forgets reservations.
    pub fn forget_adjustments(&mut self) {
        let (now, floor, window) = (self.clock_ms, self.floor_ms, self.window_ms());
        self.adjustments.retain_mut(|(adjust, _, forget_at_ms)| {
            let due = now >= *forget_at_ms;
            if due && adjust.id.time_ms() >= floor {
                *forget_at_ms = (adjust.id.time_ms() + window + ID_AHEAD_MS).max(now + 1);
                return true;
            }
            !due
        });
    }
}
