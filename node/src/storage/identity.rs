//! Whose disk this is: the first thing written to a data directory, and the first thing checked.
//!
//! A member that lost its disk and comes back under its old id could vote twice in a term or forget what it
//! acknowledged. The disk id, drawn once per directory, lets its peers see that. Layout: docs/format.md.

use std::io;

use super::codec::Cursor;
use super::disk::{Disk, read_whole};
use super::limits::IDENTITY_CLUSTER_BYTES_MAX;
use super::lock;

/// The file.
const FILE: &str = "identity";
const TEMPORARY: &str = "identity.tmp";
const MAGIC: [u8; 4] = *b"HFID";
const VERSION: u16 = 1;
const PREFIX_BYTES: usize = 12;

/// What may lie in a directory that counts as empty.
const NOT_DATA: [&str; 3] = [lock::FILE, TEMPORARY, "lost+found"];

/// Whose disk this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's configured name, 1 to 255 bytes.
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
    #[error("a cluster id has 1 to {IDENTITY_CLUSTER_BYTES_MAX} bytes")]
    ClusterIdLength,
}

impl Identity {
    /// The identity of a directory; `None` if it is an empty one, an error if it holds anything else.
    pub fn load(disk: &dyn Disk) -> Result<Option<Self>, IdentityError> {
        match disk.open(FILE) {
            Ok(file) => Self::decode(&read_whole(file.as_ref(), 4_096)?).map(Some),
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
        if !(1..=IDENTITY_CLUSTER_BYTES_MAX).contains(&self.cluster_id.len()) {
            return Err(IdentityError::ClusterIdLength);
        }
        if let Some(found) = Self::load(disk)? {
            return Err(IdentityError::Exists(found));
        }
        if disk.list("")?.iter().any(|name| name == TEMPORARY) {
            disk.remove(TEMPORARY)?;
        }
        let file = disk.create(TEMPORARY)?;
        file.write_at(0, &self.encode())?;
        file.sync()?;
        disk.rename(TEMPORARY, FILE)?;
        disk.sync_dir("")?;
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.node_id.to_le_bytes());
        body.extend_from_slice(&self.disk_id);
        body.extend_from_slice(&(self.cluster_id.len() as u16).to_le_bytes());
        body.extend_from_slice(self.cluster_id.as_bytes());
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes), &body);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, IdentityError> {
        let damaged = |what| IdentityError::Damaged { what };
        let mut cursor = Cursor(bytes);
        let short = damaged("it is too short");
        let (Some(magic), Some(version), Some(_), Some(crc)) =
            (cursor.array::<4>(), cursor.u16(), cursor.u16(), cursor.u32())
        else {
            return Err(short);
        };
        if magic != MAGIC {
            return Err(damaged("it does not begin as one"));
        }
        if crc32c::crc32c_append(crc32c::crc32c(&bytes[..8]), &bytes[PREFIX_BYTES..]) != crc {
            return Err(damaged("the checksum does not match"));
        }
        if version != VERSION {
            return Err(IdentityError::NewerFormat { found: version, supported: VERSION });
        }
        Self::decode_body(&mut cursor).filter(|_| cursor.is_empty()).ok_or(damaged("a field cannot be read"))
    }

    fn decode_body(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (node_id, disk_id) = (cursor.u64()?, cursor.array()?);
        let length = cursor.u16()?;
        let cluster_id = str::from_utf8(cursor.bytes(usize::from(length))?).ok()?.to_owned();
        Some(Self { cluster_id, node_id, disk_id })
    }
}
