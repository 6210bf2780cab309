//! Quotas as they are shown.

use std::sync::Arc;

use crate::answer::Tier;
use crate::book::Book;
use crate::book::judge::{accrued_at, ratio, tier_with};
use crate::ids::{TenantId, UserId};
use crate::plan::{Level, Limit, Rule};
use crate::query::QuotaLine;
use crate::record::{FreezeScope, Lane, LimitKind, Lineage, LineageKey};

/// What is shown of a ratio per million when there is nothing to divide by.
const FULL_PPM: u64 = 1_000_000;

impl Book {
    /// Every tenant-level quota of a tenant, and the user-level ones of a user, by limit id, at max(book time,
    /// `at_ms`). The global level is not shown: it would show what other tenants use.
    pub fn quota(&self, tenant: &TenantId, user: Option<&UserId>, at_ms: u64) -> Vec<QuotaLine> {
        self.quota_lines(Some(tenant), user, Lane::Enforced, at_ms)
    }

    /// The same of the shadow lane, as far as anything was booked there.
    pub fn quota_in_shadow(&self, tenant: &TenantId, user: Option<&UserId>, at_ms: u64) -> Vec<QuotaLine> {
        self.quota_lines(Some(tenant), user, Lane::Shadow, at_ms)
    }

    /// The quotas of the global level in a lane, for operators, at max(book time, `at_ms`).
    pub fn quota_global(&self, lane: Lane, at_ms: u64) -> Vec<QuotaLine> {
        self.quota_lines(None, None, lane, at_ms)
    }

    fn quota_lines(
        &self,
        tenant: Option<&TenantId>,
        user: Option<&UserId>,
        lane: Lane,
        at_ms: u64,
    ) -> Vec<QuotaLine> {
        let now_ms = at_ms.max(self.header.clock_ms);
        let Some(published) = self.plan() else { return Vec::new() };
        let shown = |limit: &&Limit| match limit.scope.level {
            Level::Global => tenant.is_none(),
            Level::Tenant => tenant.is_some(),
            Level::User => tenant.is_some() && user.is_some(),
        };
        let mut lines = Vec::new();
        for limit in published.plan.limits.iter().filter(shown) {
            let base = LineageKey {
                limit: limit.id.clone(),
                tenant: tenant.cloned(),
                user: user.cloned().filter(|_| limit.scope.level == Level::User),
                route: None,
                model: None,
                region: None,
                lane,
            };
            for key in self.keys_of(limit, base) {
                // Bounds that are not known yet leave the line out, as they would refuse a reserve.
                if let Ok(Some((lineage, held_before))) = self.project(&key, limit.unit, now_ms) {
                    lines.push(self.quota_line(&lineage, held_before, now_ms));
                }
            }
        }
        lines
    }

    /// The lineages of a limit for a subject. Where route, model or region make more than one: those in the book, in order.
    fn keys_of(&self, limit: &Limit, base: LineageKey) -> Vec<Arc<LineageKey>> {
        if !(limit.scope.route || limit.scope.model || limit.scope.region) {
            let is_known = || self.derived.find_lineage(&self.lineages, &base).is_some();
            let shown = base.lane == Lane::Enforced || is_known();
            return if shown { vec![Arc::new(base)] } else { Vec::new() };
        }
        let of_subject = |key: &LineageKey| {
            let (subject, wanted) = ((&key.tenant, &key.user), (&base.tenant, &base.user));
            key.limit == base.limit && subject == wanted && key.lane == base.lane
        };
        let mut keys: Vec<_> =
            self.lineages.iter().map(|(_, row)| &row.key).filter(|key| of_subject(key)).cloned().collect();
        keys.sort();
        keys
    }

    fn quota_line(&self, lineage: &Lineage, held_before: u128, now_ms: u64) -> QuotaLine {
        let key = &lineage.key;
        let available = lineage.current.columns.available;
        let (used, held, limit_amount) = lineage.figures(held_before);
        QuotaLine {
            limit: key.limit.clone(),
            level: key.level(),
            unit: lineage.unit,
            user: key.user.clone(),
            route: key.route.clone(),
            model: key.model.clone(),
            region: key.region.clone(),
            lane: key.lane,
            used: clamp(used),
            held: clamp(held),
            limit_amount: limit_amount.map(clamp),
            remaining: limit_amount.map(|_| clamp(available)),
            ratio_ppm: limit_amount.map_or(0, |_| ratio(lineage, 0).map_or(FULL_PPM, ppm)),
            tier: if limit_amount.is_some() { tier_with(lineage, 0) } else { Tier::Normal },
            debt: clamp(lineage.debt),
            suspended: lineage.debt > 0,
            frozen: self.is_frozen(key),
            reset_at_ms: reset_at(lineage, now_ms),
            generation: lineage.current.generation,
            epoch_start_ms: lineage.current.epoch_start_ms,
        }
    }

    /// Whether something is frozen that the lineage counts: on whichever route, or of one model of several.
    fn is_frozen(&self, key: &LineageKey) -> bool {
        let fits = |scope: &FreezeScope| {
            key.tenant.as_ref() == Some(&scope.tenant)
                && (scope.user.is_none() || scope.user == key.user)
                && (scope.model.is_none() || key.model.is_none() || scope.model == key.model)
                && (scope.region.is_none() || key.region.is_none() || scope.region == key.region)
        };
        self.freezes.keys().any(fits)
    }
}

impl Lineage {
    /// Used and held in the running epoch, and what the limit gives; `None`: unlimited.
    pub(crate) fn figures(&self, held_before: u128) -> (u128, u128, Option<u128>) {
        let held = self.held() + held_before;
        if let Some(bucket) = self.bucket() {
            let burst = u128::from(bucket.burst);
            let missing = burst.saturating_sub(self.current.columns.available).saturating_sub(held);
            return (missing, held, Some(burst));
        }
        match self.kind {
            LimitKind::Concurrency => (0, held, self.allowance()),
            _ => (u128::try_from(self.settled_usage(held_before)).unwrap_or(0), held, self.allowance()),
        }
    }
}

fn clamp(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

fn ppm((used, allowance): (u128, u128)) -> u64 {
    clamp(used.saturating_mul(u128::from(FULL_PPM)) / allowance)
}

/// When the epoch ends or the bucket is full again.
fn reset_at(lineage: &Lineage, now_ms: u64) -> Option<u64> {
    match lineage.rule {
        Some(Rule::Bucket { burst, .. }) => accrued_at(lineage, u128::from(burst), now_ms),
        Some(Rule::Period { .. } | Rule::Unlimited { .. }) => lineage.epoch_end_ms,
        Some(Rule::Concurrency { .. }) | None => None,
    }
}
