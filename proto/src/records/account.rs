//! Accounts and their columns.

use holdfast_ledger::record::{Account, ClosedAccount, Columns};

use super::wide::{number, wide};
use crate::field::{FieldError, InField, required};
use crate::v1;

macro_rules! columns {
    ($($column:ident)*) => {
        impl From<&Columns> for v1::StoredColumns {
            fn from(Columns { $($column,)* }: &Columns) -> Self {
                v1::StoredColumns { $($column: wide(*$column),)* }
            }
        }

        impl From<v1::StoredColumns> for Columns {
            fn from(v1::StoredColumns { $($column,)* }: v1::StoredColumns) -> Self {
                Columns { $($column: number($column),)* }
            }
        }

        /// Each column with its name, in the order of the account equation.
        pub(crate) fn named_columns(Columns { $($column,)* }: &Columns) -> Vec<(&'static str, u128)> {
            vec![$((stringify!($column), *$column),)*]
        }
    };
}

columns! {
    opening refilled granted corrected shards_back moved_in rule_raise forgiven overdraft_issued
    available reserved spent to_shards carried_forward forfeited overdraft_repaid
}

impl From<&Account> for v1::StoredAccount {
    fn from(Account { number, generation, epoch_start_ms, columns, legs }: &Account) -> Self {
        v1::StoredAccount {
            number: *number,
            generation: *generation,
            epoch_start_ms: *epoch_start_ms,
            columns: Some(columns.into()),
            legs: *legs,
        }
    }
}

impl TryFrom<v1::StoredAccount> for Account {
    type Error = FieldError;

    fn try_from(wire: v1::StoredAccount) -> Result<Self, FieldError> {
        Ok(Account {
            number: wire.number,
            generation: wire.generation,
            epoch_start_ms: wire.epoch_start_ms,
            columns: required("columns", wire.columns)?.into(),
            legs: wire.legs,
        })
    }
}

pub(super) fn decode_closed(wire: v1::StoredClosedAccount) -> Result<ClosedAccount, FieldError> {
    let account = required("account", wire.account)?.try_into().in_field("account")?;
    Ok(ClosedAccount { lineage: wire.lineage, account })
}
