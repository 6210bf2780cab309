//! The trace of a run as one number: what was scheduled when, what was applied, what clients saw.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::applied::NodeApplied;
use crate::history::Operation;

/// Hashes a run. `schedule` is the runtime's own trace, empty when it was not recorded.
pub(super) fn hash(schedule: &[String], operations: &[Operation], applied: &[NodeApplied]) -> u64 {
    // SipHash with fixed keys: the same in every process.
    let mut hasher = DefaultHasher::new();
    schedule.hash(&mut hasher);
    for operation in operations {
        format!("{operation:?}").hash(&mut hasher);
    }
    for node in applied {
        node.node.hash(&mut hasher);
        for entry in &node.entries {
            (entry.header.index, entry.header.term, entry.header.stamp_ms, entry.digest).hash(&mut hasher);
        }
    }
    hasher.finish()
}
