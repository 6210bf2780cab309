//! Statements of archived accounts.

use std::sync::Arc;

use holdfast_ledger::event::Statement;

use super::lineage::decode_key;
use crate::field::{FieldError, required};
use crate::v1;
use crate::words::{Word, word};

impl From<&Statement> for v1::StoredStatement {
    fn from(Statement { lineage, unit, generation, epoch_start_ms, columns, at_ms }: &Statement) -> Self {
        v1::StoredStatement {
            lineage: Some(lineage.as_ref().into()),
            unit: unit.number(),
            generation: *generation,
            epoch_start_ms: *epoch_start_ms,
            columns: Some(columns.into()),
            at_ms: *at_ms,
        }
    }
}

pub(super) fn decode(wire: v1::StoredStatement) -> Result<Arc<Statement>, FieldError> {
    Ok(Arc::new(Statement {
        lineage: decode_key("lineage", wire.lineage)?,
        unit: word("unit", wire.unit)?,
        generation: wire.generation,
        epoch_start_ms: wire.epoch_start_ms,
        columns: required("columns", wire.columns)?.into(),
        at_ms: wire.at_ms,
    }))
}
