//! Statements of accounting epochs that have ended: kept for a while as accounts are archived, and asked for
//! together with closed accounts that are not archived yet.

use std::collections::BTreeMap;
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
use crate::record::{Account, Columns, Lane, LineageKey};
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
            let oldest = self.statements.front();
            if oldest.is_none_or(|oldest| oldest.at_ms.saturating_add(STATEMENTS_KEPT_MS) > now_ms) {
                return;
            }
            self.forget_oldest_statement();
        }
    }

    /// Ended accounting epochs of the tenant-level limits of a tenant, and of the user-level ones of a user,
    /// at max(book time, `at_ms`): those of limits in the plan in force, by limit and start.
    pub fn statements(&self, tenant: &TenantId, user: Option<&UserId>, at_ms: u64) -> Vec<EpochStatement> {
        let now_ms = at_ms.max(self.header.clock_ms);
        let Some(published) = self.plan() else { return Vec::new() };
        let shown = |limit: &&Limit| match limit.scope.level {
            Level::Global => false,
            Level::Tenant => true,
            Level::User => user.is_some(),
        };
        let mut found = Found::new();
        for limit in published.plan.limits.iter().filter(shown) {
            let base = LineageKey {
                limit: limit.id.clone(),
                tenant: Some(tenant.clone()),
                user: user.cloned().filter(|_| limit.scope.level == Level::User),
                route: None,
                model: None,
                region: None,
                lane: Lane::Enforced,
            };
            for key in self.keys_of(limit, base) {
                self.closed_of(&key, now_ms, &mut found);
            }
        }
        for statement in &self.statements {
            let key = &statement.lineage;
            let of_subject =
                key.tenant.as_ref() == Some(tenant) && (key.user.is_none() || key.user.as_ref() == user);
            if of_subject {
                add(
                    &mut found,
                    key,
                    statement.unit,
                    statement.epoch_start_ms,
                    statement.generation,
                    &statement.columns,
                );
            }
        }
        self.drop_running(&mut found, now_ms);
        found.into_values().collect()
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
        for statement in &sink.statements {
            add(found, key, row.unit, statement.epoch_start_ms, statement.generation, &statement.columns);
        }
    }

    /// Leaves out what belongs to an epoch that still runs.
    fn drop_running(&self, found: &mut Found, now_ms: u64) {
        found.retain(|(key, epoch_start_ms), statement| {
            let running = self.project(key, statement.unit, now_ms).ok().flatten();
            running.is_none_or(|(lineage, _)| lineage.current.epoch_start_ms != Some(*epoch_start_ms))
        });
    }
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
