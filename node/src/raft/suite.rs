//! openraft's own storage suite on the real storage: simulated and real disks.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use openraft_rt_tokio::TokioRuntime;

use super::log_store::LogStore;
use super::metrics::Metrics;
use super::snapshot::{Offload, SnapshotFiles};
use super::state_machine::StateMachine;
use super::types::TypeConfig;
use crate::replica::{NoEffects, Replica};
use crate::storage::log::{Log, LogConfig, spawn_sync_thread};
use crate::storage::snapshot::SnapshotStore;
use crate::storage::{Disk, RealDisk, SimDisk};

type Config = TypeConfig<TokioRuntime>;
type Store = LogStore<TokioRuntime>;
type Machine = StateMachine<TokioRuntime>;

/// A new, empty store for each case of the suite.
struct Builder<F>(F);

impl<G, F> StoreBuilder<Config, Store, Machine, G> for Builder<F>
where
    F: Fn() -> (G, Arc<dyn Disk>) + Send + Sync,
    G: Send + Sync,
{
    async fn build(&self) -> Result<(G, Store, Machine), StorageError<Config>> {
        let (guard, disk) = (self.0)();
        let (log, worker) = Log::open(disk.clone(), LogConfig::default()).unwrap();
        // It ends with the test's process; the suite never closes a store.
        drop(spawn_sync_thread(worker).unwrap());
        let files = Arc::new(SnapshotFiles::open(SnapshotStore::open(disk).unwrap()).unwrap());
        let replica = Arc::new(Replica::new(Box::new(NoEffects)));
        let machine = Machine::new(replica, files, Offload::Threads, Arc::new(Metrics::new(Box::new(|| 0))));
        Ok((guard, Store::new(log), machine))
    }
}

#[tokio::test]
async fn openrafts_suite_passes_on_a_simulated_disk() {
    let builder = Builder(|| ((), Arc::new(SimDisk::new()) as Arc<dyn Disk>));
    tokio::time::timeout(Duration::from_secs(300), Suite::test_all(builder)).await.unwrap().unwrap();
}

#[tokio::test]
async fn openrafts_suite_passes_on_a_real_disk() {
    let builder = Builder(|| {
        let directory = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory.path()).unwrap());
        (directory, disk)
    });
    tokio::time::timeout(Duration::from_secs(300), Suite::test_all(builder)).await.unwrap().unwrap();
}
