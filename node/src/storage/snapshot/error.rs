//! Why a snapshot cannot be used.

use std::io;

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The disk failed.
    #[error("snapshot: {0}")]
    Io(#[from] io::Error),
    /// It is not what was written.
    #[error(
        "{file} is damaged at byte {offset}: {what}. Nothing was changed. The log before a snapshot is gone, so an older \
         snapshot does not replace it: add a new member under a new id in this node's place, or restore the file"
    )]
    Damaged {
        /// The snapshot's file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A program newer than this one wrote it.
    #[error(
        "{file} has snapshot format version {found}; this program reads up to version {supported}. Nothing was changed: \
         start a program at least as new as the one that wrote it"
    )]
    NewerFormat {
        /// The snapshot's file.
        file: String,
        /// The version found.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },
    /// What was to be written or received does not fit the format or the announcement.
    #[error("snapshot: {what}")]
    Invalid {
        /// What does not fit.
        what: String,
    },
}

impl SnapshotError {
    pub(super) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid { what: what.into() }
    }
}
