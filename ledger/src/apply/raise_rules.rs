//! Raise the rules version, once all members announce support.

use crate::answer::Answer;
use crate::book::Book;
use crate::limits::RULES_VERSION_MAX;

impl Book {
    /// # Panics
    /// If this version of the ledger does not know the rules: it must not go on by others than its peers.
    pub(super) fn apply_raise_rules(&mut self, rules_version: u32) -> Answer {
        assert!(
            rules_version <= RULES_VERSION_MAX,
            "rules version {rules_version} was committed, this ledger knows up to {RULES_VERSION_MAX}"
        );
        self.header.rules_version = self.header.rules_version.max(rules_version);
        Answer::Rules { rules_version: self.header.rules_version }
    }
}
