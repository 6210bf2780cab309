//! Whose disk this is: the first thing written to a data directory, and the first thing checked.
//!
//! A member that lost its disk and comes back under its old id could vote twice in a term or forget what it
//! acknowledged. The disk id, drawn once per directory, lets its peers see that. Layout: docs/format.md.

use std::io;

use super::disk::{Disk, read_whole};
use super::limits::IDENTITY_CLUSTER_BYTES_MAX;
use super::lock;

/// The file.
const FILE: &str = "identity";
const TEMPORARY: &str = "identity.tmp";
const HEADING: &str = "holdfast identity ";
const VERSION: u16 = 1;
const CHECKSUM: &str = "crc32c ";
/// The longest cluster id and the words around it fit many times.
const FILE_BYTES_MAX: u64 = 4_096;

/// What may lie in a directory that counts as empty.
const NOT_DATA: [&str; 4] = [lock::FILE, TEMPORARY, "lost+found", HISTORY];

/// The history index's directory: it can be begun anew at any time, so it is nobody's data.
const HISTORY: &str = "history";

/// Whose disk this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's configured name: 1 to 255 bytes, on one line.
    pub cluster_id: String,
    /// The member, never used again once its disk is gone.
    pub node_id: u64,
    /// Drawn at random when the directory was first used.
    pub disk_id: [u8; 16],
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The disk failed.
    #[error("the identity of the data directory cannot be read or written: {0}")]
    Io(#[from] io::Error),
    /// It belongs to another cluster.
    #[error(
        "the data directory belongs to cluster {found:?}, this node is configured for cluster {expected:?}"
    )]
    WrongCluster {
        /// In the directory.
        found: String,
        /// In the configuration.
        expected: String,
    },
    /// It belongs to another node.
    #[error("the data directory belongs to node {found}, this node is configured as node {expected}")]
    WrongNode {
        /// In the directory.
        found: u64,
        /// In the configuration.
        expected: u64,
    },
    /// A program newer than this one wrote it.
    #[error(
        "the data directory's identity has format version {found}; this program reads up to version {supported}"
    )]
    NewerFormat {
        /// The version found.
        found: u16,
        /// The newest version that this program reads.
        supported: u16,
    },
    /// It is not what was written.
    #[error(
        "the data directory's identity file is damaged: {what}. Restore it, or replace this node by a new member"
    )]
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// There is data, but nobody's.
    #[error(
        "the data directory has no identity file but is not empty (it holds {found:?}); \
         a node never adopts data that is not its own"
    )]
    NotEmpty {
        /// A name in it.
        found: String,
    },
    /// The directory has an identity already.
    #[error("the data directory belongs to node {} of cluster {:?} already", .0.node_id, .0.cluster_id)]
    Exists(Identity),
    /// What was to be written cannot be.
    #[error("a cluster id has 1 to {IDENTITY_CLUSTER_BYTES_MAX} bytes on one line")]
    ClusterId,
}

impl Identity {
    /// The identity of a directory; `None` if it is an empty one, an error if it holds anything else.
    pub fn load(disk: &dyn Disk) -> Result<Option<Self>, IdentityError> {
        match disk.open(FILE) {
            Ok(file) => Self::decode(&read_whole(file.as_ref(), FILE_BYTES_MAX)?).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match disk.list("")?.into_iter().find(|name| !NOT_DATA.contains(&name.as_str())) {
                    Some(found) => Err(IdentityError::NotEmpty { found }),
                    None => Ok(None),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Identity::load`], refusing one of another cluster or node.
    pub fn load_expected(
        disk: &dyn Disk,
        cluster_id: &str,
        node_id: u64,
    ) -> Result<Option<Self>, IdentityError> {
        let Some(identity) = Self::load(disk)? else { return Ok(None) };
        if identity.cluster_id != cluster_id {
            return Err(IdentityError::WrongCluster {
                found: identity.cluster_id,
                expected: cluster_id.to_owned(),
            });
        }
        if identity.node_id != node_id {
            return Err(IdentityError::WrongNode { found: identity.node_id, expected: node_id });
        }
        Ok(Some(identity))
    }

    /// Writes the identity of an empty directory, durably, before anything else is written there.
    pub fn create(&self, disk: &dyn Disk) -> Result<(), IdentityError> {
        let length = self.cluster_id.len();
        if length == 0 || length > IDENTITY_CLUSTER_BYTES_MAX || self.cluster_id.contains(char::is_control) {
            return Err(IdentityError::ClusterId);
        }
        if let Some(found) = Self::load(disk)? {
            return Err(IdentityError::Exists(found));
        }
        if disk.list("")?.iter().any(|name| name == TEMPORARY) {
            disk.remove(TEMPORARY)?;
        }
        let file = disk.create(TEMPORARY)?;
        file.write_at(0, self.encode().as_bytes())?;
        file.sync()?;
        disk.rename(TEMPORARY, FILE)?;
        disk.sync_dir("")?;
        Ok(())
    }

    /// Text, so that an operator can read whose directory it is; checked like everything else.
    fn encode(&self) -> String {
        let Self { cluster_id, node_id, disk_id } = self;
        let disk = u128::from_be_bytes(*disk_id);
        let body = format!("{HEADING}{VERSION}\ncluster {cluster_id}\nnode {node_id}\ndisk {disk:032x}\n");
        format!("{body}{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes()))
    }

    fn decode(bytes: &[u8]) -> Result<Self, IdentityError> {
        let damaged = |what| IdentityError::Damaged { what };
        let text = str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        // The first line and the checksum at the end keep their places in every version.
        let (body, _) = text.rsplit_once(CHECKSUM).ok_or(damaged("it has no checksum"))?;
        if text != format!("{body}{CHECKSUM}{:08x}\n", crc32c::crc32c(body.as_bytes())) {
            return Err(damaged("the checksum does not match"));
        }
        let mut lines = body.lines();
        let version = lines.next().and_then(|line| line.strip_prefix(HEADING)?.parse().ok());
        match version.ok_or(damaged("it does not begin as one"))? {
            VERSION => {}
            found => return Err(IdentityError::NewerFormat { found, supported: VERSION }),
        }
        let mut value = |key: &str| lines.next()?.strip_prefix(key);
        let (cluster, node, disk) = (value("cluster "), value("node "), value("disk "));
        let fields = cluster.zip(node.and_then(|node| node.parse().ok()));
        let disk = disk.and_then(|disk| u128::from_str_radix(disk, 16).ok());
        let ((cluster, node_id), disk) = fields.zip(disk).ok_or(damaged("a line cannot be read"))?;
        Ok(Self { cluster_id: cluster.to_owned(), node_id, disk_id: disk.to_be_bytes() })
    }
}
