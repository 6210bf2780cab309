//! A disk in memory that fails as real ones do: what was not synced may be lost, whole or in part.
//!
//! Model: a write, a truncation or a change of names is *pending* until the file
//! (or the directory) is synced. [`SimDisk::reboot`] keeps everything synced and,
//! as [`Loss`] says, nothing, a prefix or an arbitrary subset of what was pending;
//! the last write may be torn at a sector. Everything is drawn from the seed.

mod faults;
mod file;
mod random;
mod tree;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use faults::Faults;
pub use faults::{Call, Loss};
use file::SimFile;
pub use random::SplitMix;
use tree::Tree;

use super::disk::{Disk, DiskFile, split_path};

/// A simulated disk. Clones share it, so a rebooted node opens the same one.
#[derive(Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    tree: Tree,
    faults: Faults,
    /// Raised by each reboot: handles of the life before are dead.
    life: u64,
}

impl SimDisk {
    /// An empty disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts mutating calls from now (the next one is 1) and lets the `nth` fail with `kind`, without effect.
    /// Later calls work again.
    pub fn fail_nth(&self, nth: u64, kind: io::ErrorKind) {
        self.lock().faults.fail_nth(nth, kind);
    }

    /// Lets the next `sync` of a file fail. What it should have made durable stays readable but is never written:
    /// later syncs succeed without it.
    pub fn fail_next_sync(&self) {
        self.lock().faults.fail_next_sync = true;
    }

    /// Lets the next read of a file fail.
    pub fn fail_next_read(&self) {
        self.lock().faults.fail_next_read = true;
    }

    /// The power goes at the `nth` mutating call from now: if `effect`, that call still reaches the
    /// (volatile) state or, for a sync, the disk. From then on every call fails until [`SimDisk::reboot`].
    pub fn crash_at(&self, nth: u64, effect: bool) {
        self.lock().faults.crash_at(nth, effect);
    }

    /// The power goes now.
    pub fn crash(&self) {
        self.lock().faults.down = true;
    }

    /// Whether the power is gone.
    pub fn is_down(&self) -> bool {
        self.lock().faults.down
    }

    /// Bounds the sum of all file sizes; a write beyond it fails with `StorageFull`. `None` lifts the bound.
    pub fn set_capacity(&self, bytes_max: Option<u64>) {
        self.lock().faults.capacity_bytes = bytes_max;
    }

    /// Mutating calls so far.
    pub fn calls(&self) -> u64 {
        self.lock().faults.calls
    }

    /// Starts recording mutating calls, or stops and returns what was recorded.
    pub fn record(&self, on: bool) -> Vec<Call> {
        let mut state = self.lock();
        let recorded = state.faults.recorded.take().unwrap_or_default();
        state.faults.recorded = on.then(Vec::new);
        recorded
    }

    /// The machine comes back: keeps what was synced and what `loss` and `seed` leave of the rest, clears every
    /// injected fault, and makes all open handles invalid.
    pub fn reboot(&self, loss: Loss, seed: u64) {
        let mut state = self.lock();
        let mut random = SplitMix::new(seed);
        state.tree.lose(loss, &mut random);
        state.faults = state.faults.after_reboot();
        state.life += 1;
    }

    /// Turns one bit of a file over, durably. False if there is no such file or bit.
    pub fn flip_bit(&self, path: &str, byte: u64, bit: u8) -> bool {
        self.edit(path, |bytes| {
            let Some(byte) = usize::try_from(byte).ok().and_then(|at| bytes.get_mut(at)) else {
                return false;
            };
            *byte ^= 1 << (bit % 8);
            true
        })
    }

    /// Cuts a file off, durably. False if there is no such file.
    pub fn cut(&self, path: &str, size: u64) -> bool {
        self.edit(path, |bytes| {
            bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
            true
        })
    }

    /// Changes a file's bytes behind everybody's back, durably. False if there is no such file.
    pub fn edit(&self, path: &str, change: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        self.lock().tree.edit(path, change)
    }

    /// A file's bytes as the running system sees them.
    pub fn contents(&self, path: &str) -> Option<Vec<u8>> {
        self.lock().tree.contents(path)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One mutating call: counts it, asks the faults, and runs it.
    fn mutate<T>(
        &self,
        call: impl FnOnce() -> Call,
        grows: u64,
        run: impl FnOnce(&mut Tree) -> io::Result<T>,
    ) -> io::Result<T> {
        let state = &mut *self.lock();
        let used = state.tree.bytes();
        let verdict = state.faults.judge(call, used.saturating_add(grows));
        verdict.run(|| run(&mut state.tree))
    }

    fn handle(&self, node: u64) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { disk: self.clone(), life: self.lock().life, node })
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.mutate(|| Call::CreateDir(dir.into()), 0, |tree| tree.create_dir(dir))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.mutate(|| Call::Create(path.into()), 0, |tree| tree.create(path))?;
        Ok(self.handle(node))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let node = {
            let state = self.lock();
            state.faults.check_up()?;
            state.tree.open(path)?
        };
        Ok(self.handle(node))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.faults.check_up()?;
        state.tree.list(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if split_path(from).0 != split_path(to).0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "rename across directories"));
        }
        self.mutate(|| Call::Rename(from.into(), to.into()), 0, |tree| tree.rename(from, to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.mutate(|| Call::Remove(path.into()), 0, |tree| tree.remove(path))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.mutate(|| Call::SyncDir(dir.into()), 0, |tree| tree.sync_dir(dir))
    }
}
