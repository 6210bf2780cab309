//! The data directory: locked for as long as the node runs.

use std::path::Path;
use std::sync::Arc;

use super::Fatal;
use crate::config::NodeConfig;
use crate::storage::{DirectoryLock, Disk, LockError, RealDisk};

/// The node's directory. Dropping it unlocks it.
pub(super) struct DataDirectory {
    disk: Arc<RealDisk>,
    _lock: DirectoryLock,
}

impl DataDirectory {
    /// Makes the directory if it is absent, and locks it.
    pub(super) fn open(config: &NodeConfig) -> Result<Self, Fatal> {
        let path = config.data_dir.as_path();
        let lock =
            DirectoryLock::acquire(path).map_err(|error: LockError| Fatal::Start(error.to_string()))?;
        let disk = RealDisk::new(path).map_err(|error| Fatal::Data {
            directory: path.display().to_string(),
            problem: error.to_string(),
        })?;
        Ok(DataDirectory { disk: Arc::new(disk), _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.disk.root()
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        self.disk.clone()
    }
}
