//! The file system of the machine.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile};

/// A directory of the machine's file system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// Uses `root`, which is made if it does not exist (its parent's entry is synced then).
    pub fn new(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        if !root.is_dir() {
            fs::create_dir_all(&root).map_err(|error| at(&root, error))?;
            if let Some(parent) = root.parent() {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                sync_directory(parent)?;
            }
        }
        Ok(Self { root })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, relative: &str) -> io::Result<PathBuf> {
        let path = Path::new(relative);
        if path.components().all(|part| matches!(part, Component::Normal(_))) {
            Ok(self.root.join(path))
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{relative:?} is not a plain relative path"),
            ))
        }
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let path = self.path(dir)?;
        fs::create_dir_all(&path).map_err(|error| at(&path, error))
    }

    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path(path)?;
        open(OpenOptions::new().read(true).write(true).create_new(true), path)
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path(path)?;
        open(OpenOptions::new().read(true).write(true), path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let path = self.path(dir)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(|error| at(&path, error))? {
            let entry = entry?;
            match entry.file_name().into_string() {
                Ok(name) => names.push(name),
                Err(name) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("{}: file name {name:?} is not UTF-8", path.display()),
                    ));
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        fs::rename(&from, to).map_err(|error| at(&from, error))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let path = self.path(path)?;
        fs::remove_file(&path).map_err(|error| at(&path, error))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        sync_directory(&self.path(dir)?)
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|error| at(path, error))
}

fn open(options: &OpenOptions, path: PathBuf) -> io::Result<Arc<dyn DiskFile>> {
    let file = options.open(&path).map_err(|error| at(&path, error))?;
    Ok(Arc::new(RealFile { file, path }))
}

/// Names the file in an error: the system's own text does not; and what helps, where that is plain.
fn at(path: &Path, error: io::Error) -> io::Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let help = match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => " (make room for the data directory)",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{}: {error}{help}", path.display()))
}

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
}

impl DiskFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|error| at(&self.path, error))
    }

    fn read_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<usize> {
        let mut total = 0;
        while !buffer.is_empty() {
            match self.file.read_at(buffer, offset) {
                Ok(0) => break,
                Ok(read) => {
                    total += read;
                    offset += read as u64;
                    buffer = &mut buffer[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(at(&self.path, error)),
            }
        }
        Ok(total)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(|error| at(&self.path, error))
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size).map_err(|error| at(&self.path, error))
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(|error| at(&self.path, error))
    }
}
