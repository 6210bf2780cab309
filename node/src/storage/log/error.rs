//! Why a log does not open.

use std::io;

/// Why a log does not open. Nothing was changed on the disk in any of these cases but [`LogOpenError::Io`].
#[derive(Debug, thiserror::Error)]
pub enum LogOpenError {
    /// The disk failed.
    #[error("the log does not open: {0}")]
    Io(#[from] io::Error),

    /// Something that had been synced is not readable any more.
    #[error(
        "{file} is damaged at byte {offset} (frame {seq}, which had been synced): {what}. Nothing was changed. \
         This node must not take part with a log that lost something: add a new member under a new \
         id in its place, or restore the file from the same disk"
    )]
    Damaged {
        /// The segment.
        file: String,
        /// Where in it.
        offset: u64,
        /// The sequence number of the frame expected there.
        seq: u64,
        /// What was found.
        what: String,
    },

    /// A program newer than this one wrote it.
    #[error(
        "{file} has a frame of log format version {found} at byte {offset}; this program reads up to version \
         {supported}. Nothing was changed: start a program at least as new as the one that wrote it"
    )]
    NewerFormat {
        /// The segment.
        file: String,
        /// Where in it.
        offset: u64,
        /// The version found.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },

    /// Segments or the whole log are gone.
    #[error(
        "{what}. Nothing was changed. This node must not take part with a log that lost something: \
         add a new member under a new id in its place, or restore the files from the same disk"
    )]
    Missing {
        /// What is missing.
        what: String,
    },

    /// The frames are whole but contradict each other.
    #[error(
        "{file}: the log contradicts itself at byte {offset}: {what}. Nothing was changed; please report this"
    )]
    Contradiction {
        /// The segment.
        file: String,
        /// Where in it.
        offset: u64,
        /// The contradiction.
        what: String,
    },
}
