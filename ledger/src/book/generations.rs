//! The generations: which plan and which tenant records were in force when.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::book::lineage::Terms;
use crate::book::lineage::change::Change;
use crate::ids::{LimitId, RouteName, TenantId};
use crate::plan::{Level, Limit, Plan, Route, Shape, TenantRecord};
use crate::query::{PublishedPlan, TenantVersion};
use crate::record::{LimitKind, LineageKey};

/// A published plan with an index of its routes.
#[derive(Clone, Debug)]
pub(crate) struct PlanVersion {
    pub(crate) published: PublishedPlan,
    routes: BTreeMap<RouteName, usize>,
}

impl PlanVersion {
    pub(crate) fn new(published: PublishedPlan) -> Self {
        let routes = published.plan.routes.iter().enumerate();
        let routes = routes.map(|(place, route)| (route.name.clone(), place)).collect();
        PlanVersion { published, routes }
    }

    pub(crate) fn route(&self, name: &RouteName) -> Option<&Route> {
        self.published.plan.routes.get(*self.routes.get(name)?)
    }
}

/// Everything that was published and is still needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generations {
    /// By generation.
    pub(crate) plans: Vec<Arc<PlanVersion>>,
    /// Each tenant's records, by generation.
    pub(crate) tenants: Arc<BTreeMap<TenantId, Vec<TenantVersion>>>,
    /// Derived: how many records `tenants` holds in all.
    pub(crate) versions: usize,
}

impl Generations {
    pub(crate) fn plan(&self) -> Option<&Arc<PlanVersion>> {
        self.plans.last()
    }

    /// The plan in force at a generation, if it is kept.
    pub(crate) fn plan_at(&self, generation: u64) -> Option<&Arc<PlanVersion>> {
        let next = self.plans.partition_point(|plan| plan.published.generation <= generation);
        self.plans.get(next.checked_sub(1)?)
    }

    /// The record set by command that was in force for a tenant at a generation.
    pub(crate) fn record_at(&self, tenant: &TenantId, generation: u64) -> Option<&Arc<TenantRecord>> {
        let versions = self.tenants.get(tenant)?;
        let next = versions.partition_point(|version| version.generation <= generation);
        versions.get(next.checked_sub(1)?)?.record.as_ref()
    }

    pub(crate) fn push_plan(&mut self, published: PublishedPlan) {
        self.plans.push(Arc::new(PlanVersion::new(published)));
    }

    pub(crate) fn push_tenant(&mut self, version: TenantVersion) {
        self.versions += 1;
        Arc::make_mut(&mut self.tenants).entry(version.tenant.clone()).or_default().push(version);
    }

    /// What the generations after one set for a lineage, in order. Those that cannot concern it are left out.
    pub(crate) fn changes_after(&self, key: &LineageKey, generation: u64) -> SmallVec<[Change; 2]> {
        let first = self.plans.partition_point(|plan| plan.published.generation <= generation);
        let plans = self.plans[first..].iter().map(|plan| &plan.published);
        let mut points: SmallVec<[(u64, u64); 4]> =
            plans.map(|plan| (plan.generation, plan.published_at_ms)).collect();
        if let Some(versions) = key.tenant.as_ref().and_then(|tenant| self.tenants.get(tenant)) {
            let later = versions.iter().filter(|version| version.generation > generation);
            points.extend(later.map(|version| (version.generation, version.set_at_ms)));
            points.sort_unstable();
        }
        let change =
            |(generation, at_ms)| Change { generation, at_ms, terms: self.terms_at(key, generation) };
        points.into_iter().map(change).collect()
    }

    /// What holds for a lineage at a generation; `None`: its limit does not exist then.
    pub(crate) fn terms_at(&self, key: &LineageKey, generation: u64) -> Option<Terms> {
        let plan = &self.plan_at(generation)?.published.plan;
        let limit = find_limit(plan, &key.limit)?;
        if !fits(limit, key) {
            return None;
        }
        let record = key.tenant.as_ref().and_then(|tenant| {
            let set = self.record_at(tenant, generation).map(|record| record.as_ref());
            plan.record_for(tenant, set)
        });
        Some(Terms {
            rule: plan.effective_rule(limit, record, key.user.as_ref()),
            kind: kind_of(limit),
            ladder: limit.ladder,
            overdraft_max: limit.overdraft_max,
        })
    }
}

/// A plan's limit by its id.
pub(crate) fn find_limit<'a>(plan: &'a Plan, id: &LimitId) -> Option<&'a Limit> {
    let place = plan.limits.binary_search_by(|limit| limit.id.cmp(id)).ok()?;
    plan.limits.get(place)
}

/// The kind of a limit, whatever its rule is for some subject.
pub(crate) fn kind_of(limit: &Limit) -> LimitKind {
    match limit.shape {
        Shape::Bucket { .. } => LimitKind::Bucket,
        Shape::Concurrency => LimitKind::Concurrency,
        Shape::Period { .. } => LimitKind::Total,
    }
}

/// Whether a limit is keyed by just the values that a lineage has. "No model" and "no region" are values too.
pub(crate) fn fits(limit: &Limit, key: &LineageKey) -> bool {
    let scope = limit.scope;
    key.tenant.is_some() == (scope.level >= Level::Tenant)
        && key.user.is_some() == (scope.level == Level::User)
        && key.route.is_some() == scope.route
        && (key.model.is_none() || scope.model)
        && (key.region.is_none() || scope.region)
}
