//! Names and contents, each as the running system sees them and as they are on the disk.

use std::collections::BTreeMap;
use std::io;

use super::{Loss, SplitMix};
use crate::storage::disk::split_path;

/// A write is torn between sectors, never within one.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Dir,
    File(u64),
}

/// A change of names within one directory.
enum NameChange {
    Set(String, Node),
    Remove(String),
    Rename(String, String),
}

enum Write {
    Bytes(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Default)]
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Write>,
}

#[derive(Default)]
pub(super) struct Tree {
    names: BTreeMap<String, Node>,
    durable_names: BTreeMap<String, Node>,
    pending_names: BTreeMap<String, Vec<NameChange>>,
    files: BTreeMap<u64, Contents>,
    next_file: u64,
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file on the simulated disk"))
}

fn write_into(bytes: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(data.len());
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[start..end].copy_from_slice(data);
}

fn apply_name(names: &mut BTreeMap<String, Node>, change: &NameChange) {
    match change {
        NameChange::Set(path, node) => {
            names.insert(path.clone(), *node);
        }
        NameChange::Remove(path) => {
            names.remove(path);
        }
        NameChange::Rename(from, to) => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
    }
}

impl Tree {
    pub(super) fn bytes(&self) -> u64 {
        self.names
            .values()
            .map(|node| match node {
                Node::File(id) => self.files.get(id).map_or(0, |file| file.now.len() as u64),
                Node::Dir => 0,
            })
            .sum()
    }

    fn change_name(&mut self, path: &str, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.pending_names.entry(split_path(path).0.to_owned()).or_default().push(change);
    }

    fn check_dir(&self, dir: &str) -> io::Result<()> {
        if dir.is_empty() || self.names.get(dir) == Some(&Node::Dir) { Ok(()) } else { Err(not_found(dir)) }
    }

    fn file_at(&self, path: &str) -> io::Result<u64> {
        match self.names.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Dir) => Err(io::Error::new(io::ErrorKind::IsADirectory, path.to_owned())),
            None => Err(not_found(path)),
        }
    }

    fn file(&self, id: u64) -> io::Result<&Contents> {
        self.files.get(&id).ok_or_else(|| not_found("open handle"))
    }

    fn file_mut(&mut self, id: u64) -> io::Result<&mut Contents> {
        self.files.get_mut(&id).ok_or_else(|| not_found("open handle"))
    }

    pub(super) fn create_dir(&mut self, dir: &str) -> io::Result<()> {
        let (above, _) = split_path(dir);
        if !above.is_empty() && !self.names.contains_key(above) {
            self.create_dir(above)?;
        }
        match self.names.get(dir) {
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(io::Error::new(io::ErrorKind::AlreadyExists, dir.to_owned())),
            None => {
                self.change_name(dir, NameChange::Set(dir.to_owned(), Node::Dir));
                Ok(())
            }
        }
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<u64> {
        self.check_dir(split_path(path).0)?;
        if self.names.contains_key(path) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, path.to_owned()));
        }
        let id = self.next_file;
        self.next_file += 1;
        self.files.insert(id, Contents::default());
        self.change_name(path, NameChange::Set(path.to_owned(), Node::File(id)));
        Ok(id)
    }

    pub(super) fn open(&self, path: &str) -> io::Result<u64> {
        self.file_at(path)
    }

    pub(super) fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.check_dir(dir)?;
        let names = self.names.keys().filter_map(|path| {
            let (above, name) = split_path(path);
            (above == dir).then(|| name.to_owned())
        });
        Ok(names.collect())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.file_at(from)?;
        self.change_name(from, NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.file_at(path)?;
        self.change_name(path, NameChange::Remove(path.to_owned()));
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        self.check_dir(dir)?;
        for change in self.pending_names.remove(dir).unwrap_or_default() {
            apply_name(&mut self.durable_names, &change);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, id: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let file = self.file_mut(id)?;
        write_into(&mut file.now, offset, bytes);
        file.pending.push(Write::Bytes(offset, bytes.to_vec()));
        Ok(())
    }

    pub(super) fn read(&self, id: u64, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = &self.file(id)?.now;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let length = buffer.len().min(bytes.len() - start);
        buffer[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    pub(super) fn size(&self, id: u64) -> io::Result<u64> {
        Ok(self.file(id)?.now.len() as u64)
    }

    pub(super) fn truncate(&mut self, id: u64, size: u64) -> io::Result<()> {
        let file = self.file_mut(id)?;
        file.now.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        file.pending.push(Write::Truncate(size));
        Ok(())
    }

    pub(super) fn sync(&mut self, id: u64) -> io::Result<()> {
        let file = self.file_mut(id)?;
        for write in std::mem::take(&mut file.pending) {
            write.apply(&mut file.durable);
        }
        Ok(())
    }

    /// A sync that fails as systems let it: the pages stay readable and count as clean, but never reach the disk.
    pub(super) fn lose_sync(&mut self, id: u64) -> io::Result<()> {
        self.file_mut(id)?.pending.clear();
        Err(io::Error::other("simulated sync error"))
    }

    pub(super) fn edit(&mut self, path: &str, change: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let Ok(id) = self.file_at(path) else { return false };
        let Some(file) = self.files.get_mut(&id) else { return false };
        let changed = change(&mut file.now);
        file.pending.clear();
        file.durable.clone_from(&file.now);
        changed
    }

    pub(super) fn contents(&self, path: &str) -> Option<Vec<u8>> {
        let id = self.file_at(path).ok()?;
        self.files.get(&id).map(|file| file.now.clone())
    }

    /// The power was gone: decides what is left.
    pub(super) fn lose(&mut self, loss: Loss, random: &mut SplitMix) {
        for (_, changes) in std::mem::take(&mut self.pending_names) {
            let kept = match loss {
                Loss::All => 0,
                Loss::Nothing => changes.len(),
                Loss::Suffix | Loss::Random => random.below(changes.len() as u64 + 1) as usize,
            };
            for change in &changes[..kept] {
                apply_name(&mut self.durable_names, change);
            }
        }
        self.durable_names.retain({
            let dirs: Vec<String> =
                self.durable_names.iter().filter(|(_, n)| **n == Node::Dir).map(|(p, _)| p.clone()).collect();
            move |path, _| {
                let mut above = split_path(path).0;
                while !above.is_empty() {
                    if !dirs.iter().any(|dir| dir == above) {
                        return false;
                    }
                    above = split_path(above).0;
                }
                true
            }
        });
        self.names = self.durable_names.clone();
        let names = &self.names;
        self.files.retain(|id, _| names.values().any(|node| *node == Node::File(*id)));
        for file in self.files.values_mut() {
            file.lose(loss, random);
        }
    }
}

impl Contents {
    fn lose(&mut self, loss: Loss, random: &mut SplitMix) {
        let pending = std::mem::take(&mut self.pending);
        match loss {
            Loss::All => {}
            Loss::Nothing => self.durable.clone_from(&self.now),
            Loss::Suffix => {
                let kept = random.below(pending.len() as u64 + 1) as usize;
                for write in &pending[..kept] {
                    write.apply(&mut self.durable);
                }
                if let Some(Write::Bytes(offset, bytes)) = pending.get(kept) {
                    let sectors = bytes.len().div_ceil(SECTOR_BYTES) as u64;
                    let torn = sectors_of(*offset, bytes).take(random.below(sectors) as usize);
                    torn.for_each(|(offset, sector)| write_into(&mut self.durable, offset, sector));
                }
            }
            Loss::Random => {
                let percent = [10, 50, 90][random.below(3) as usize];
                for write in &pending {
                    match write {
                        Write::Bytes(offset, bytes) => {
                            let kept = sectors_of(*offset, bytes).filter(|_| random.chance(percent));
                            kept.for_each(|(offset, sector)| write_into(&mut self.durable, offset, sector));
                        }
                        Write::Truncate(_) => write.apply(&mut self.durable),
                    }
                }
            }
        }
        self.now.clone_from(&self.durable);
    }
}

impl Write {
    fn apply(&self, durable: &mut Vec<u8>) {
        match self {
            Self::Bytes(offset, bytes) => write_into(durable, *offset, bytes),
            Self::Truncate(size) => durable.resize(usize::try_from(*size).unwrap_or(usize::MAX), 0),
        }
    }
}

/// A write cut at the sectors of the file.
fn sectors_of(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let first = SECTOR_BYTES - (offset % SECTOR_BYTES as u64) as usize;
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    let mut at = offset;
    std::iter::once(head).chain(rest.chunks(SECTOR_BYTES)).map(move |sector| {
        let here = at;
        at += sector.len() as u64;
        (here, sector)
    })
}
