//! Who this node is: `{cluster id, node id, disk id}`, written to the data directory before anything else.
//!
//! A node that comes back with an empty disk under its old id would vote as if it had never
//! acknowledged anything, and acknowledged commands would be lost. Raft cannot see that, so the
//! disk has an identity of its own: it is in the membership and in every peer message, and both
//! ends refuse a disk that the membership does not name.

use std::fmt;

use super::types::NodeId;
use crate::storage::disk::Disk;
use crate::storage::identity as stored;

/// 128 random bits, drawn when the data directory was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskId(pub u128);

impl DiskId {
    /// The 16 bytes that go into messages and files.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From 16 bytes; `None` for any other length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(DiskId(u128::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl fmt::Display for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for DiskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A member on one disk of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's name.
    pub cluster_id: String,
    /// The node's number in it.
    pub node_id: NodeId,
    /// The disk.
    pub disk_id: DiskId,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of cluster {:?} on disk {}", self.node_id, self.cluster_id, self.disk_id)
    }
}

/// Why a data directory is not this node's.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It is another's, or cannot be read.
    #[error(transparent)]
    Stored(#[from] stored::IdentityError),
    /// Nothing is there, and the node was not told to found or join a cluster.
    #[error(
        "the data directory is empty. A node never founds a cluster by itself: start it once with --bootstrap \
         (all founding members), or with --join (a new member under a new id)"
    )]
    Empty,
}

/// Reads the data directory's identity and checks it against the configuration. Makes one, with `disk_id`,
/// if the directory is empty and `may_create`.
pub(crate) fn load_or_create(
    disk: &dyn Disk,
    cluster_id: &str,
    node_id: NodeId,
    may_create: bool,
    disk_id: impl FnOnce() -> DiskId,
) -> Result<Identity, IdentityError> {
    let identity = match stored::Identity::load_expected(disk, cluster_id, node_id)? {
        Some(found) => found,
        None if !may_create => return Err(IdentityError::Empty),
        None => {
            let made = stored::Identity {
                cluster_id: cluster_id.to_owned(),
                node_id,
                disk_id: disk_id().to_bytes(),
            };
            made.create(disk)?;
            made
        }
    };
    let stored::Identity { cluster_id, node_id, disk_id } = identity;
    Ok(Identity { cluster_id, node_id, disk_id: DiskId(u128::from_be_bytes(disk_id)) })
}
