//! An open file of a simulated disk.

use std::io;

use super::{Call, SimDisk, State};
use crate::storage::disk::DiskFile;

pub(super) struct SimFile {
    pub(super) disk: SimDisk,
    pub(super) life: u64,
    pub(super) node: u64,
}

impl SimFile {
    fn check_life(&self, state: &State) -> io::Result<()> {
        if state.life == self.life {
            Ok(())
        } else {
            Err(io::Error::other("file handle from before the simulated reboot"))
        }
    }
}

impl DiskFile for SimFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check_life(&self.disk.lock())?;
        let size = self.size()?;
        let grows = offset.saturating_add(bytes.len() as u64).saturating_sub(size);
        self.disk.mutate(
            || Call::Write(offset, bytes.len()),
            grows,
            |tree| tree.write(self.node, offset, bytes),
        )
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.lock();
        self.check_life(&state)?;
        state.faults.judge_read()?;
        state.tree.read(self.node, offset, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        let state = self.disk.lock();
        self.check_life(&state)?;
        state.faults.check_up()?;
        state.tree.size(self.node)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.check_life(&self.disk.lock())?;
        self.disk.mutate(|| Call::Truncate(size), 0, |tree| tree.truncate(self.node, size))
    }

    fn sync(&self) -> io::Result<()> {
        let fails = {
            let mut state = self.disk.lock();
            self.check_life(&state)?;
            std::mem::take(&mut state.faults.fail_next_sync)
        };
        self.disk.mutate(
            || Call::Sync,
            0,
            |tree| if fails { tree.lose_sync(self.node) } else { tree.sync(self.node) },
        )
    }
}
