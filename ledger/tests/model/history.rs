//! What the model works out from everything that ever happened: rules, balances, reservations at a time.

use std::sync::Arc;

use holdfast_ledger::ReservationId;
use holdfast_ledger::ids::{TenantId, UserId};
use holdfast_ledger::plan::{Level, Limit, Rule, Shape};
use holdfast_ledger::record::{Lane, LineageKey};

use crate::decide::hit;
use crate::lineage::{Balance, Fact};
use crate::naive::Model;
use crate::rows::{Era, Happening};
use crate::verdict::{Sketch, Verdict};

/// Whether a limit may have such a lineage: the values that its scope asks for, and no others.
pub fn suits(limit: Option<&Limit>, key: &LineageKey) -> bool {
    let Some(scope) = limit.map(|limit| limit.scope) else { return false };
    let level = match (key.tenant.is_some(), key.user.is_some()) {
        (false, _) => Level::Global,
        (true, false) => Level::Tenant,
        (true, true) => Level::User,
    };
    // A request may leave its model and region out, but a route it has always.
    let extra = (key.model.is_some() && !scope.model) || (key.region.is_some() && !scope.region);
    scope.level == level && scope.route == key.route.is_some() && !extra
}

impl Model {
    /// Whether amounts that did not fit would fit at a later time, if nothing else happened until then.
    pub fn fits(&self, asks: &[(LineageKey, u64)], at_ms: u64) -> bool {
        asks.iter().all(|(key, amount)| hit(&self.balance(key, at_ms), *amount).is_none())
    }

    /// The rule of a lineage in an era.
    fn rule_in(&self, era: &Era, key: &LineageKey) -> Option<Rule> {
        let limit = era.plan.limit(&key.limit).filter(|limit| suits(Some(limit), key))?;
        let set = key.tenant.as_ref().and_then(|tenant| era.records.get(tenant)).map(Arc::as_ref);
        let record = key.tenant.as_ref().and_then(|tenant| era.plan.record_for(tenant, set));
        Some(era.plan.effective_rule(limit, record, key.user.as_ref()))
    }

    /// The generation in which a lineage's rule last changed.
    pub fn rule_generation(&self, key: &LineageKey) -> u64 {
        let mut last = (0, None);
        for era in &self.eras {
            let rule = self.rule_in(era, key);
            if rule != last.1 {
                last = (era.generation, rule);
            }
        }
        last.0
    }

    /// A lineage at a time, from everything that ever happened to it.
    pub fn balance(&self, key: &LineageKey, at_ms: u64) -> Balance {
        Balance::of(&self.facts(key), at_ms)
    }

    /// Every lineage that anything happened to.
    pub fn keys(&self) -> Vec<LineageKey> {
        self.units.keys().cloned().collect()
    }

    /// The legs of reservations that hold: lineage and amount.
    pub fn open_legs(&self) -> Vec<(LineageKey, u64)> {
        let open = self.reservations.iter().filter(|reservation| reservation.receipt.ended_at_ms.is_none());
        open.flat_map(|reservation| reservation.legs.iter().cloned()).collect()
    }

    /// A reservation as it stands at a time.
    pub fn reservation(&self, id: ReservationId, at_ms: u64) -> Option<Sketch> {
        let found = self.reservations.iter().find(|reservation| reservation.id == id)?;
        match found.sketch(at_ms.max(self.clock_ms)) {
            Verdict::Receipt(sketch) => Some(*sketch),
            _ => None,
        }
    }

    /// Everything that happened to a lineage, changes of its rule included.
    pub fn facts(&self, key: &LineageKey) -> Vec<(u64, Fact)> {
        let mut facts = Vec::new();
        let mut last = None;
        for (when, happening) in &self.log {
            match happening {
                Happening::Era(at) => {
                    let rule = self.rule_in(&self.eras[*at], key);
                    if rule != last {
                        let era = &self.eras[*at];
                        let shape = era.plan.limit(&key.limit).map(|limit| &limit.shape);
                        let is_bucket = matches!(shape, Some(Shape::Bucket { .. }));
                        facts.push((*when, Fact::Rule(rule.clone(), is_bucket)));
                        last = rule;
                    }
                }
                Happening::Leg(of, fact) if of == key => facts.push((*when, fact.clone())),
                Happening::Leg(..) => {}
            }
        }
        facts
    }

    /// The tenant's and the user's lineages that the plan in force gives without further keys, for comparing quotas.
    pub fn lineages_of(&self, tenant: &TenantId, user: Option<&UserId>) -> Vec<(Limit, LineageKey)> {
        let Some(plan) = self.plan() else { return Vec::new() };
        let plain = |limit: &&Limit| !limit.scope.route && !limit.scope.model && !limit.scope.region;
        let mut found = Vec::new();
        for limit in plan.limits.iter().filter(plain) {
            let (tenant, user) = match (limit.scope.level, user) {
                (Level::Global, _) => (None, None),
                (Level::Tenant, _) => (Some(tenant.clone()), None),
                (Level::User, Some(user)) => (Some(tenant.clone()), Some(user.clone())),
                (Level::User, None) => continue,
            };
            for lane in [Lane::Enforced, Lane::Shadow] {
                let (tenant, user) = (tenant.clone(), user.clone());
                let limit_id = limit.id.clone();
                let key = LineageKey {
                    limit: limit_id,
                    tenant,
                    user,
                    route: None,
                    model: None,
                    region: None,
                    lane,
                };
                found.push((limit.clone(), key));
            }
        }
        found
    }
}
