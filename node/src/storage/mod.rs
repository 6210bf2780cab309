//! Everything a node keeps on a disk, and the only place that touches files.
//!
//! # Architecture invariants
//!
//! - Nothing here knows openraft, commands or the book: storage keeps bytes.
//! - Every file goes through [`Disk`], so that the same code runs on the machine's disk and on [`SimDisk`].
//! - What a completion or a returned `Ok` has promised survives power loss.
//! - Nothing damaged is ever served: it is cut off if it was never synced, and refused otherwise.
//! - The first write or sync error is the last write: nothing is retried, the node exits.

pub mod applied_log;
mod codec;
pub mod disk;
pub mod history;
pub mod identity;
pub mod limits;
mod lock;
pub mod log;
mod real_disk;
pub mod sim_disk;
pub mod snapshot;
mod synced_by;

pub use disk::{Disk, DiskFile};
pub use identity::{Identity, IdentityError};
pub use lock::{DirectoryLock, LockError};
pub use real_disk::RealDisk;
pub use sim_disk::SimDisk;
pub use synced_by::{SyncFile, SyncedBy};
