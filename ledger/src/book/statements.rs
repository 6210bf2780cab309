//! Statements of accounting epochs that have ended: kept for a while as accounts are archived, and asked for
//! together with closed accounts that are not archived yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use crate::book::Book;
use crate::book::bytes::RowBytes;
use crate::book::lineage::{Sink, write_columns, write_key};
use crate::event::Statement;
use crate::ids::{TenantId, UserId};
use crate::limits::{CLOSED_LOOKED_AT_MAX, STATEMENTS_KEPT_MAX, STATEMENTS_KEPT_MS, TIMERS_PER_ENTRY_MAX};
use crate::plan::{Level, Limit};
use crate::query::EpochStatement;
use crate::record::{Account, Columns, Lane, Lineage, LineageKey};
use crate::unit::Unit;

/// Statements by lineage and start of the epoch.
type Found = BTreeMap<(Arc<LineageKey>, u64), EpochStatement>;

impl Book {
    pub(crate) fn keep_statement(&mut self, statement: Arc<Statement>) {
        // An account without epochs is never asked for; nor is one of the shadow lane, which must push out none
        // of the enforced one.
        if statement.epoch_start_ms.is_none() || statement.lineage.lane == Lane::Shadow {
            return;
        }
        self.small_sum = self.small_sum.wrapping_add(hash_statement(&statement));
        self.statements.push_back(statement);
        if self.statements.len() > STATEMENTS_KEPT_MAX {
            self.forget_oldest_statement();
        }
    }

    fn forget_oldest_statement(&mut self) {
        if let Some(oldest) = self.statements.pop_front() {
            self.small_sum = self.small_sum.wrapping_sub(hash_statement(&oldest));
        }
    }

    /// Forgets statements that have been kept for their time.
    pub(crate) fn forget_statements(&mut self, now_ms: u64) {
        for _ in 0..TIMERS_PER_ENTRY_MAX {
            if self.oldest_statement_due_ms().is_none_or(|due_ms| due_ms > now_ms) {
                return;
            }
            self.forget_oldest_statement();
        }
    }

    /// When the oldest statement has been kept for its time, ms.
    pub(crate) fn oldest_statement_due_ms(&self) -> Option<u64> {
        self.statements.front().map(|oldest| oldest.at_ms.saturating_add(STATEMENTS_KEPT_MS))
    }

    /// Ended accounting epochs of the tenant-level limits of a tenant, and of the user-level ones of a user,
    /// at max(book time, `at_ms`), by limit and start; of limits that are withdrawn too.
    pub fn statements(&self, tenant: &TenantId, user: Option<&UserId>, at_ms: u64) -> Vec<EpochStatement> {
        let now_ms = at_ms.max(self.header.clock_ms);
        let of_subject = |key: &LineageKey| {
            let of_user = key.user.is_none() || key.user.as_ref() == user;
            key.tenant.as_ref() == Some(tenant) && of_user && key.lane == Lane::Enforced
        };
        let mut found = Found::new();
        let mut keys = self.keys_of_subject(tenant, user, of_subject);
        for statement in self.statements.iter().filter(|statement| of_subject(&statement.lineage)) {
            let Statement { lineage, unit, generation, epoch_start_ms, columns, .. } = statement.as_ref();
            add(&mut found, lineage, *unit, *epoch_start_ms, *generation, columns);
            keys.insert(Arc::clone(lineage));
        }
        for key in &keys {
            self.closed_of(key, now_ms, &mut found);
        }
        self.drop_running(&mut found, now_ms);
        found.into_values().collect()
    }

    /// The lineages that a subject may have by the plans that are kept.
    fn keys_of_subject(
        &self,
        tenant: &TenantId,
        user: Option<&UserId>,
        of_subject: impl Fn(&LineageKey) -> bool,
    ) -> BTreeSet<Arc<LineageKey>> {
        let plans = self.generations.plans.iter().map(|version| &version.published.plan);
        let limits: Vec<&Limit> = plans.flat_map(|plan| &plan.limits).collect();
        if limits.iter().any(|limit| limit.scope.route || limit.scope.model || limit.scope.region) {
            // One look at every lineage finds those of all of them.
            let rows = self.lineages.iter().map(|(_, row)| &row.key);
            return rows.filter(|key| of_subject(key)).cloned().collect();
        }
        let plain = |limit: &Limit, user: Option<&UserId>| LineageKey {
            limit: limit.id.clone(),
            tenant: Some(tenant.clone()),
            user: user.cloned(),
            route: None,
            model: None,
            region: None,
            lane: Lane::Enforced,
        };
        let keys = limits.into_iter().filter_map(|limit| match limit.scope.level {
            Level::Global => None,
            Level::Tenant => Some(plain(limit, None)),
            Level::User => user.map(|user| plain(limit, Some(user))),
        });
        keys.map(Arc::new).collect()
    }

    /// The closed accounts of a lineage that are not archived, and those that close on the way to now.
    fn closed_of(&self, key: &Arc<LineageKey>, now_ms: u64, found: &mut Found) {
        let Some(slot) = self.derived.find_lineage(&self.lineages, key) else { return };
        let row = self.lineages.get(slot);
        let mut take = |account: &Account| {
            let Account { generation, epoch_start_ms, columns, .. } = account;
            if columns.is_active() {
                add(found, key, row.unit, *epoch_start_ms, *generation, columns);
            }
        };
        let mut legs_left = row.legs - row.current.legs;
        for number in (0..row.current.number).rev().take(CLOSED_LOOKED_AT_MAX as usize) {
            if legs_left == 0 {
                break;
            }
            if let Some(closed) = self.derived.closed_slot(&self.closed, slot, number) {
                let account = &self.closed.get(closed).account;
                legs_left = legs_left.saturating_sub(account.legs);
                take(account);
            }
        }
        let (mut copy, mut sink) = (row.clone(), Sink::default());
        let generation = self.header.generation;
        // Bounds that are not known yet: what is known is told.
        let _ = copy.replay(now_ms, generation, &self.generations, &self.calendars, &mut sink);
        sink.closed.iter().for_each(&mut take);
        if is_over(&copy, now_ms) {
            take(&copy.current);
        }
        for statement in &sink.statements {
            add(found, key, row.unit, statement.epoch_start_ms, statement.generation, &statement.columns);
        }
    }

    /// Leaves out what belongs to an epoch that still runs.
    fn drop_running(&self, found: &mut Found, now_ms: u64) {
        let lineages: BTreeMap<_, _> =
            found.iter().map(|((key, _), found)| (Arc::clone(key), found.unit)).collect();
        for (key, unit) in lineages {
            if let Ok(Some((lineage, _))) = self.project(&key, unit, now_ms)
                && let Some(start_ms) = lineage.current.epoch_start_ms
                && !is_over(&lineage, now_ms)
            {
                found.remove(&(key, start_ms));
            }
        }
    }
}

/// Whether the current account's epoch has ended: no other follows that of a limit that is withdrawn.
fn is_over(lineage: &Lineage, now_ms: u64) -> bool {
    lineage.epoch_end_ms.is_some_and(|end| end <= now_ms)
}

fn add(
    found: &mut Found,
    key: &Arc<LineageKey>,
    unit: Unit,
    epoch_start_ms: Option<u64>,
    generation: u64,
    columns: &Columns,
) {
    let Some(epoch_start_ms) = epoch_start_ms else { return };
    let known = found.entry((Arc::clone(key), epoch_start_ms)).or_insert_with(|| EpochStatement {
        lineage: Arc::clone(key),
        unit,
        epoch_start_ms,
        generation,
        used: 0,
        held: 0,
        columns: Columns::default(),
    });
    known.generation = known.generation.max(generation);
    known.columns.add(columns);
    let clamp = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
    let settled = known.columns.used() - known.columns.reserved as i128;
    known.used = clamp(u128::try_from(settled).unwrap_or(0));
    known.held = clamp(known.columns.reserved);
}

pub(crate) fn hash_statement(statement: &Statement) -> u128 {
    let Statement { lineage, unit, generation, epoch_start_ms, columns, at_ms } = statement;
    let mut out = RowBytes::default();
    out.put_u8(12);
    write_key(lineage, &mut out);
    out.put_u8(*unit as u8);
    out.put_u64(*generation);
    out.put_option(*epoch_start_ms);
    write_columns(columns, &mut out);
    out.put_u64(*at_ms);
    xxh3_128(out.as_slice())
}
