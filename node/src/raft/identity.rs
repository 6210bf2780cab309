//! Who this node is: `{cluster id, node id, disk id}`, written to the data directory before anything else.
//!
//! A node that comes back with an empty disk under its old id would vote as if it had never
//! acknowledged anything, and acknowledged commands would be lost. Raft cannot see that, so the
//! disk has an identity of its own: it is in the membership and in every peer message, and both
//! ends refuse a disk that the membership does not name.

use std::fmt;
use std::io;

use super::types::NodeId;
use crate::storage::disk::{Disk, read_whole};

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

/// The file in the data directory.
const FILE: &str = "identity";
const TEMPORARY: &str = "identity.tmp";
const HEADING: &str = "holdfast identity";
const VERSION: u32 = 1;
/// The longest cluster id and the words around it fit many times.
const FILE_BYTES_MAX: u64 = 4096;

/// Why a data directory is not this node's.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The disk failed.
    #[error("the data directory's identity cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// Nothing is there, and the node was not told to found or join a cluster.
    #[error(
        "the data directory is empty. A node never founds a cluster by itself: start it once with --bootstrap \
         (all founding members), or with --join (a new member under a new id)"
    )]
    Empty,
    /// There is data without an identity.
    #[error(
        "the data directory has data but no readable identity ({0}); restore the file or replace the member"
    )]
    Lost(String),
    /// A newer program wrote it.
    #[error("the data directory's identity has version {0}; this program knows up to version {VERSION}")]
    NewerFormat(u32),
    /// It belongs to another cluster or node.
    #[error("the data directory belongs to {found}, but this is node {node_id} of cluster {cluster_id:?}")]
    Other {
        /// Whose it is.
        found: Identity,
        /// The configured cluster.
        cluster_id: String,
        /// The configured node.
        node_id: NodeId,
    },
}

/// Reads the data directory's identity and checks it against the configuration. Makes one, with `disk_id`,
/// if the directory is empty and `may_create`.
pub(super) fn load_or_create(
    disk: &dyn Disk,
    cluster_id: &str,
    node_id: NodeId,
    may_create: bool,
    disk_id: impl FnOnce() -> DiskId,
) -> Result<Identity, IdentityError> {
    match disk.open(FILE) {
        Ok(file) => {
            let bytes = read_whole(file.as_ref(), FILE_BYTES_MAX)?;
            let found = decode(&bytes)?;
            if found.cluster_id == cluster_id && found.node_id == node_id {
                return Ok(found);
            }
            Err(IdentityError::Other { found, cluster_id: cluster_id.to_owned(), node_id })
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            for dir in ["log", "snapshots"] {
                if disk.list(dir).is_ok_and(|names| !names.is_empty()) {
                    return Err(IdentityError::Lost("the file is missing".into()));
                }
            }
            if !may_create {
                return Err(IdentityError::Empty);
            }
            let identity = Identity { cluster_id: cluster_id.to_owned(), node_id, disk_id: disk_id() };
            save(disk, &identity)?;
            Ok(identity)
        }
        Err(e) => Err(e.into()),
    }
}

fn save(disk: &dyn Disk, identity: &Identity) -> io::Result<()> {
    // A leftover of a start that was interrupted here.
    match disk.remove(TEMPORARY) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = disk.create(TEMPORARY)?;
    file.write_at(0, encode(identity).as_bytes())?;
    file.sync()?;
    disk.rename(TEMPORARY, FILE)?;
    disk.sync_dir("")
}

/// Text, so that an operator can read whose directory it is; checked like everything else.
fn encode(identity: &Identity) -> String {
    let Identity { cluster_id, node_id, disk_id } = identity;
    let body = format!("{HEADING} {VERSION}\ncluster {cluster_id}\nnode {node_id}\ndisk {disk_id}\n");
    format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()))
}

fn decode(bytes: &[u8]) -> Result<Identity, IdentityError> {
    let lost = |what: &str| IdentityError::Lost(what.to_owned());
    let text = std::str::from_utf8(bytes).map_err(|_| lost("it is not text"))?;
    let mut lines = text.lines();
    let mut value = |key: &str| {
        lines
            .next()
            .and_then(|line| line.strip_prefix(key)?.strip_prefix(' '))
            .ok_or_else(|| lost(&format!("no line {key:?}")))
    };
    let version: u32 = value(HEADING)?.parse().map_err(|_| lost("the version is no number"))?;
    if version > VERSION {
        return Err(IdentityError::NewerFormat(version));
    }
    let cluster_id = value("cluster")?.to_owned();
    let node_id = value("node")?.parse().map_err(|_| lost("the node id is no number"))?;
    let disk_id = u128::from_str_radix(value("disk")?, 16).map_err(|_| lost("the disk id is no number"))?;
    let identity = Identity { cluster_id, node_id, disk_id: DiskId(disk_id) };
    if text != encode(&identity) {
        return Err(lost("its checksum is wrong"));
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::storage::SimDisk;
    use crate::storage::sim_disk::Loss;

    fn create(disk: &SimDisk, node: NodeId) -> Result<Identity, IdentityError> {
        load_or_create(disk, "prod", node, true, || DiskId(0xabc))
    }

    #[test]
    fn the_file_is_pinned() {
        let disk = SimDisk::new();
        create(&disk, 3).unwrap();
        let text = String::from_utf8(disk.contents(FILE).unwrap()).unwrap();
        let body = "holdfast identity 1\ncluster prod\nnode 3\ndisk 00000000000000000000000000000abc\n";
        assert_eq!(text, format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes())));
    }

    #[test]
    fn an_identity_survives_power_loss_and_is_made_once() {
        let disk = SimDisk::new();
        let made = create(&disk, 1).unwrap();
        disk.crash();
        disk.reboot(Loss::All, 1);
        let found = load_or_create(&disk, "prod", 1, false, || DiskId(9)).unwrap();
        assert_eq!(found, made);
    }

    #[test]
    fn foreign_and_empty_directories_are_refused_by_name() {
        let disk = SimDisk::new();
        assert!(matches!(load_or_create(&disk, "prod", 1, false, || DiskId(1)), Err(IdentityError::Empty)));
        create(&disk, 1).unwrap();
        let other_node = create(&disk, 2).unwrap_err().to_string();
        assert!(other_node.contains("belongs to node 1 of cluster \"prod\""), "{other_node}");
        let other_cluster = load_or_create(&disk, "test", 1, true, || DiskId(1)).unwrap_err().to_string();
        assert!(other_cluster.contains("node 1 of cluster \"test\""), "{other_cluster}");
    }

    #[test]
    fn damage_and_newer_formats_are_refused() {
        let disk = SimDisk::new();
        create(&disk, 1).unwrap();
        let whole = disk.contents(FILE).unwrap();
        for at in 0..whole.len() as u64 {
            disk.flip_bit(FILE, at, 0);
            assert!(create(&disk, 1).is_err(), "a flipped bit in byte {at} was taken");
            disk.flip_bit(FILE, at, 0);
        }
        disk.edit(FILE, |bytes| {
            *bytes = b"holdfast identity 2\n".to_vec();
            true
        });
        assert!(matches!(create(&disk, 1), Err(IdentityError::NewerFormat(2))));
        disk.remove(FILE).unwrap();
        disk.create_dir("log").unwrap();
        disk.create("log/1").unwrap();
        assert!(matches!(create(&disk, 1), Err(IdentityError::Lost(_))));
    }
}
