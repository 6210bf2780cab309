//! What keeps a node from running, or ends it.

use std::io;

/// Why a node did not start, or stopped by itself. The process ends with it.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// A port cannot be bound.
    #[error("{key}: cannot listen on {address}: {problem}")]
    Port {
        /// The configuration's key.
        key: &'static str,
        /// What it says.
        address: String,
        /// Why not, in words.
        problem: String,
    },
    /// The data directory cannot be used: locked, of another node or cluster, of a newer format, damaged.
    #[error("data directory {directory}: {problem}")]
    Data {
        /// Where it is.
        directory: String,
        /// What is wrong.
        problem: String,
    },
    /// The node could not be started for another reason.
    #[error("cannot start: {0}")]
    Start(String),
    /// The node stopped itself while it was running, so as not to go on with a wrong or lost book.
    #[error("stopped: {0}")]
    Stopped(String),
}

impl Fatal {
    pub(super) fn port(key: &'static str, address: &str, error: &io::Error) -> Self {
        let problem = match error.kind() {
            io::ErrorKind::AddrInUse => "the port is in use by another process".to_owned(),
            io::ErrorKind::AddrNotAvailable => "the address is not one of this machine's".to_owned(),
            io::ErrorKind::PermissionDenied => "it is not allowed for this user".to_owned(),
            _ => error.to_string(),
        };
        Fatal::Port { key, address: address.to_owned(), problem }
    }

    pub(super) fn thread(error: &io::Error) -> Self {
        Fatal::Start(format!("no thread or runtime could be made: {error}"))
    }
}
