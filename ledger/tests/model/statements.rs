//! Statements of ended epochs, side by side.

use std::collections::BTreeMap;

use holdfast_ledger::Book;
use holdfast_ledger::ids::{TenantId, UserId};
use holdfast_ledger::record::{Lane, LineageKey};

use crate::naive::Model;

/// By lineage and start of the epoch: used and held.
type Ended = BTreeMap<(LineageKey, u64), (i128, i128)>;

/// Every ended epoch of a tenant and user, at a time, in book and model.
pub fn compare_statements(
    book: &Book,
    model: &mut Model,
    tenant: &TenantId,
    user: Option<&UserId>,
    at_ms: u64,
) -> Result<(), String> {
    let shown = book.statements(tenant, user, at_ms);
    let shown: Ended = shown
        .iter()
        .map(|of| {
            let key = (of.lineage.as_ref().clone(), of.epoch_start_ms);
            (key, (i128::from(of.used), i128::from(of.held)))
        })
        .filter(|(_, figures)| *figures != (0, 0))
        .collect();
    // Statements are 64 bits wide and saturate.
    let cut = |amount: i128| amount.min(i128::from(u64::MAX));
    let mut wanted = Ended::new();
    for key in model.keys() {
        let of_subject = key.lane == Lane::Enforced
            && key.tenant.as_ref() == Some(tenant)
            && (key.user.is_none() || key.user.as_ref() == user);
        if of_subject {
            let ended = model.balance(&key, at_ms).ended(at_ms).into_iter();
            wanted.extend(ended.map(|(start, used, held)| ((key.clone(), start), (cut(used), cut(held)))));
        }
    }
    if !wanted.is_empty() {
        model.seen.insert("ended epoch");
    }
    if shown == wanted {
        return Ok(());
    }
    Err(format!("at {at_ms} the book's ended epochs are\n{shown:#?}\nand the model's\n{wanted:#?}"))
}
