//! Every lineage that a world can have, by its place: limit, tenant, user.

use holdfast_ledger::plan::Level;

use super::Balance;
use crate::interleave::facts::{Plan, Record};
use crate::interleave::plans::{TENANTS, USERS};

/// Where a lineage stands.
pub type Place = usize;

/// One lineage: whose it is, and its balance once its limit has come into force.
#[derive(Clone)]
pub struct Lineage {
    /// Its limit.
    pub limit: &'static str,
    /// Its tenant; `None`: the global one.
    pub tenant: Option<usize>,
    /// Its user; `None`: the tenant's.
    pub user: Option<usize>,
    /// `None`: its limit was in no plan yet.
    pub balance: Option<Balance>,
}

/// All of them.
#[derive(Clone)]
pub struct Lineages {
    rows: Vec<Lineage>,
}

impl Lineages {
    /// The lineages of these limits, none of them in force.
    pub fn new(limits: &[(&'static str, Level)]) -> Self {
        let mut rows = Vec::new();
        for (limit, level) in limits {
            let tenants: Vec<_> = match level {
                Level::Global => vec![None],
                _ => (0..TENANTS.len()).map(Some).collect(),
            };
            for tenant in tenants {
                let users: Vec<_> = match level {
                    Level::User => (0..USERS.len()).map(Some).collect(),
                    _ => vec![None],
                };
                rows.extend(users.into_iter().map(|user| Lineage { limit, tenant, user, balance: None }));
            }
        }
        Lineages { rows }
    }

    /// Each with its place.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &Lineage)> {
        self.rows.iter().enumerate()
    }

    /// The balance at a place that a hold was made on.
    pub fn balance(&mut self, place: Place) -> Option<&mut Balance> {
        self.rows.get_mut(place)?.balance.as_mut()
    }

    /// The lineage at a place.
    pub fn at(&self, place: Place) -> &Lineage {
        &self.rows[place]
    }

    /// Lets time pass on all of them.
    pub fn advance(&mut self, until_ms: u64) {
        for balance in self.rows.iter_mut().filter_map(|row| row.balance.as_mut()) {
            balance.advance(until_ms);
        }
    }

    /// The rules of a tenant's lineages (`None`: of the global ones) under a plan and a record.
    pub fn apply_rules(&mut self, tenant: Option<usize>, plan: &Plan, record: Option<&Record>, at_ms: u64) {
        for row in self.rows.iter_mut().filter(|row| row.tenant == tenant) {
            let limit = plan.limits.iter().find(|limit| limit.id == row.limit);
            let rule = plan.rule_for(row.limit, record);
            match (&mut row.balance, limit.zip(rule)) {
                (Some(balance), found) => balance.change(found.map(|(_, rule)| rule), at_ms),
                (empty, Some((limit, rule))) => *empty = Some(Balance::open(&limit.rule, rule, at_ms)),
                (None, None) => {}
            }
        }
    }

    /// The lineages that a request of this subject falls under.
    pub fn of_subject(&self, tenant: usize, user: Option<usize>) -> impl Iterator<Item = (Place, &Lineage)> {
        self.iter().filter(move |(_, row)| {
            (row.tenant.is_none() || row.tenant == Some(tenant))
                && (row.user.is_none() || (row.user.is_some() && row.user == user))
                && row.balance.as_ref().is_some_and(|balance| balance.rule.is_some())
        })
    }
}
