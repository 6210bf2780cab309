//! What the nodes applied: every entry with its commands, as each node saw it, and the one
//! committed order that follows.
//!
//! In the simulator the entries are tapped at each replica. In torment each node appends
//! them to a file before it answers (`holdfast serve --applied-log`), so that an answer that
//! reached a client is in at least one of the files whatever was killed since.

mod file;

use std::collections::BTreeMap;

use holdfast_ledger::command::{Command, EntryHeader};

pub use file::{AppliedLogError, read_applied_log};

/// One log entry as one node applied it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedEntry {
    /// The entry's header.
    pub header: EntryHeader,
    /// The book's revision before it.
    pub revision_before: u64,
    /// Its commands, in order.
    pub commands: Vec<Command>,
    /// The book's digest after it.
    pub digest: u128,
}

impl AppliedEntry {
    /// The book's revision after it.
    pub fn revision_after(&self) -> u64 {
        self.revision_before + self.commands.len() as u64
    }
}

/// Everything that one node applied over all of its lives, in the order it did so. Entries that
/// it applied again after a restart stand there again; those it got by snapshot do not.
#[derive(Clone, Debug, Default)]
pub struct NodeApplied {
    /// The node.
    pub node: u64,
    /// Its entries.
    pub entries: Vec<AppliedEntry>,
}

/// The entries of all nodes in one order, each once, by the revision before it and its log index.
/// Where nodes disagree the first one seen stands here; [`crate::check::same_command`] reports it.
#[derive(Clone, Debug, Default)]
pub struct CommittedOrder {
    entries: BTreeMap<(u64, u64), AppliedEntry>,
}

impl CommittedOrder {
    /// Merges what the nodes applied.
    pub fn merge(nodes: &[NodeApplied]) -> CommittedOrder {
        let mut entries = BTreeMap::new();
        for entry in nodes.iter().flat_map(|node| &node.entries) {
            entries.entry((entry.revision_before, entry.header.index)).or_insert_with(|| entry.clone());
        }
        CommittedOrder { entries }
    }

    /// The entries in order.
    pub fn entries(&self) -> impl Iterator<Item = &AppliedEntry> {
        self.entries.values()
    }

    /// The last revision there is.
    pub fn last_revision(&self) -> u64 {
        self.entries.values().map(AppliedEntry::revision_after).max().unwrap_or(0)
    }
}
