//! What operators have put on top of a lineage's rule, and the rule with its boosts.
//!
//! A boost is an operator grant that comes with every epoch and is taken back at its end. It never changes
//! the generation: reservations made under it look like any other.

use std::sync::Arc;

use crate::adjust::Operated;
use crate::book::bytes::RowBytes;
use crate::book::lineage::Sink;
use crate::event::EventKind;
use crate::plan::Rule;
use crate::record::Lineage;

/// A bucket's figures, boosts included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    pub(crate) amount: u64,
    pub(crate) per_ms: u64,
    pub(crate) burst: u64,
}

impl Lineage {
    /// What operators granted less what they took in the running epoch, without boosts.
    pub(crate) fn net_grants(&self) -> i128 {
        self.operated.as_ref().map_or(0, |operated| operated.net)
    }

    /// The sum of the boosts that run.
    pub(crate) fn boost(&self) -> u128 {
        self.operated
            .as_ref()
            .map_or(0, |operated| operated.boosts.iter().map(|boost| u128::from(boost.amount)).sum())
    }

    /// What an epoch gives or a cap is, boosts included; `None`: a bucket, unlimited, or withdrawn.
    pub(crate) fn limit(&self) -> Option<u128> {
        match &self.rule {
            Some(Rule::Period { limit, .. }) | Some(Rule::Concurrency { limit }) => {
                Some(u128::from(*limit) + self.boost())
            }
            Some(Rule::Bucket { .. } | Rule::Unlimited { .. }) | None => None,
        }
    }

    /// The figures of a bucket, boosts included.
    pub(crate) fn bucket(&self) -> Option<Bucket> {
        let Some(Rule::Bucket { amount, per_ms, burst }) = self.rule else { return None };
        let boost = if self.operated.is_none() { 0 } else { u64::try_from(self.boost()).unwrap_or(u64::MAX) };
        let (amount, burst) = (amount.saturating_add(boost), burst.saturating_add(boost));
        Some(Bucket { amount, per_ms, burst })
    }

    /// When the next boost ends, ms.
    pub(crate) fn next_boost_end_ms(&self) -> Option<u64> {
        self.operated.as_ref()?.boosts.iter().map(|boost| boost.until_ms).min()
    }

    /// Changes what operators have put on top; keeps nothing if nothing is left.
    pub(crate) fn operate(&mut self, change: impl FnOnce(&mut Operated)) {
        let mut operated = self.operated.take().unwrap_or_default();
        change(&mut operated);
        self.operated = (*operated != Operated::default()).then_some(operated);
    }

    /// Takes back the boosts that end by an instant. What was used of them stays used: nothing is available
    /// then, and no debt is made of it.
    pub(crate) fn end_boosts(&mut self, at_ms: u64, sink: &mut Sink) {
        self.forget_boosts(at_ms, sink);
        self.shed();
    }

    /// Drops the boosts that end by an instant, where the account that they were granted on ends with them.
    pub(crate) fn forget_boosts(&mut self, at_ms: u64, sink: &mut Sink) {
        let Some(operated) = &self.operated else { return };
        let ended = operated.boosts.iter().filter(|boost| boost.until_ms <= at_ms).map(|boost| boost.id);
        let told = |boost| EventKind::BoostEnded { lineage: Arc::clone(&self.key), boost };
        sink.events.extend(ended.map(told));
        self.operate(|operated| operated.boosts.retain(|boost| boost.until_ms > at_ms));
    }

    /// Forfeits what is available beyond what the rule gives now.
    pub(crate) fn shed(&mut self) {
        let most = match self.bucket() {
            Some(bucket) => u128::from(bucket.burst),
            None => self.target().unwrap_or(0),
        };
        let columns = &mut self.current.columns;
        let excess = columns.available.saturating_sub(most);
        columns.forfeited += excess;
        columns.available -= excess;
    }
}

pub(crate) fn write(operated: Option<&Operated>, out: &mut RowBytes) {
    let Some(Operated { net, boosts }) = operated else {
        out.put_u8(0);
        return;
    };
    out.put_u8(1);
    out.put_u128(*net as u128);
    out.put_u32(boosts.len() as u32);
    for boost in boosts {
        out.put_u128(boost.id.0);
        out.put_u64(boost.amount);
        out.put_u64(boost.until_ms);
    }
}
