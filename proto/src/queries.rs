//! What the book shows when it is asked: quota lines and audits.

use std::collections::HashMap;

use holdfast_ledger::event::Statement;
use holdfast_ledger::ids::LimitId;
use holdfast_ledger::query::{
    AuditReport, Drain, DrainDebt, EpochStatement, QuotaLine, RolledBack, Violation,
};
use holdfast_ledger::record::{Columns, Lane};
use holdfast_ledger::unit::Unit;

use crate::answers::encode_digest;
use crate::field::{FieldError, name, optional_name};
use crate::records::named_columns;
use crate::v1;
use crate::words::{Word, word};

impl From<&QuotaLine> for v1::QuotaLine {
    fn from(line: &QuotaLine) -> Self {
        let QuotaLine {
            limit,
            level,
            unit,
            user,
            route,
            model,
            region,
            lane,
            used,
            held,
            limit_amount,
            remaining,
            ratio_ppm,
            tier,
            debt,
            suspended,
            frozen,
            reset_at_ms,
            generation,
            epoch_start_ms,
        } = line;
        v1::QuotaLine {
            limit_id: limit.as_str().to_owned(),
            level: level.number(),
            unit: unit.number(),
            used: *used,
            held: *held,
            limit: *limit_amount,
            remaining: *remaining,
            ratio_ppm: *ratio_ppm,
            tier: tier.number(),
            debt: *debt,
            suspended: *suspended,
            frozen: *frozen,
            reset_at_ms: *reset_at_ms,
            generation: *generation,
            epoch_start_ms: *epoch_start_ms,
            user: user.as_ref().map(|name| name.as_str().to_owned()),
            route: route.as_ref().map(|name| name.as_str().to_owned()),
            model: model.as_ref().map(|name| name.as_str().to_owned()),
            region: region.as_ref().map(|name| name.as_str().to_owned()),
            shadow: *lane == Lane::Shadow,
        }
    }
}

impl From<&EpochStatement> for v1::EpochStatement {
    fn from(statement: &EpochStatement) -> Self {
        let EpochStatement { lineage, unit, epoch_start_ms, generation, used, held, columns } = statement;
        v1::EpochStatement {
            subject: Some(lineage.as_ref().into()),
            unit: unit.number(),
            epoch_start_ms: *epoch_start_ms,
            generation: *generation,
            used: *used,
            held: *held,
            columns: some_columns(columns),
        }
    }
}

impl From<&Statement> for v1::HistoryStatement {
    fn from(statement: &Statement) -> Self {
        let Statement { lineage, unit, generation, epoch_start_ms, columns, at_ms: _ } = statement;
        v1::HistoryStatement {
            subject: Some(lineage.as_ref().into()),
            shadow: lineage.lane == Lane::Shadow,
            unit: unit.number(),
            generation: *generation,
            epoch_start_ms: *epoch_start_ms,
            columns: some_columns(columns),
        }
    }
}

/// The columns that are not 0, by name.
fn some_columns(columns: &Columns) -> HashMap<String, String> {
    let named = named_columns(columns).into_iter().filter(|(_, sum)| *sum != 0);
    named.map(|(name, sum)| (name.to_owned(), sum.to_string())).collect()
}

impl TryFrom<&v1::QuotaLine> for QuotaLine {
    type Error = FieldError;

    fn try_from(wire: &v1::QuotaLine) -> Result<Self, FieldError> {
        Ok(QuotaLine {
            limit: name("limit_id", &wire.limit_id)?,
            level: word("level", wire.level)?,
            unit: word("unit", wire.unit)?,
            user: optional_name("user", wire.user.as_deref())?,
            route: optional_name("route", wire.route.as_deref())?,
            model: optional_name("model", wire.model.as_deref())?,
            region: optional_name("region", wire.region.as_deref())?,
            lane: if wire.shadow { Lane::Shadow } else { Lane::Enforced },
            used: wire.used,
            held: wire.held,
            limit_amount: wire.limit,
            remaining: wire.remaining,
            ratio_ppm: wire.ratio_ppm,
            tier: word("tier", wire.tier)?,
            debt: wire.debt,
            suspended: wire.suspended,
            frozen: wire.frozen,
            reset_at_ms: wire.reset_at_ms,
            generation: wire.generation,
            epoch_start_ms: wire.epoch_start_ms,
        })
    }
}

impl From<&Drain> for v1::RollbackStatus {
    fn from(drain: &Drain) -> Self {
        let Drain {
            generation,
            rolled_back: RolledBack { restored, first },
            at_ms,
            actor,
            reserved,
            started,
            usage_unknown,
            held,
            debts,
        } = drain;
        let held = Unit::ALL.into_iter().zip(held).filter(|(_, held)| **held > 0);
        let debt = |(limit, owed): (&LimitId, &DrainDebt)| v1::DrainDebt {
            limit: limit.as_str().to_owned(),
            lineages: owed.lineages,
            debt: owed.debt.to_string(),
        };
        v1::RollbackStatus {
            generation: *generation,
            restored: *restored,
            first: *first,
            last: generation.saturating_sub(1),
            at_ms: *at_ms,
            actor: actor.as_str().to_owned(),
            drained: drain.is_done(),
            reserved: *reserved,
            started: *started,
            usage_unknown: *usage_unknown,
            held: held
                .map(|(unit, held)| v1::WideAmount { unit: unit.number(), amount: held.to_string() })
                .collect(),
            debts: debts.iter().map(debt).collect(),
        }
    }
}

/// The answer to an audit of one member's book.
pub fn encode_audit(node_id: u64, clock_ms: u64, generation: u64, report: &AuditReport) -> v1::AuditResponse {
    let AuditReport { ok, revision, digest, accounts, open_reservations, sums, violations } = report;
    let mut columns = Vec::new();
    for (unit, sums) in Unit::ALL.into_iter().zip(sums) {
        for (column, sum) in named_columns(sums) {
            columns.push(v1::ColumnSum {
                unit: unit.number(),
                column: column.to_owned(),
                sum: sum.to_string(),
            });
        }
    }
    v1::AuditResponse {
        node_id,
        ok: *ok,
        revision: *revision,
        digest: encode_digest(*digest),
        clock_ms,
        generation,
        accounts: *accounts,
        reservations_open: *open_reservations,
        sums: columns,
        violations: violations.iter().map(encode_violation).collect(),
    }
}

fn encode_violation(Violation { rule, place, detail }: &Violation) -> v1::Violation {
    v1::Violation { invariant: format!("{rule:?}"), text: format!("{place}: {detail}") }
}
