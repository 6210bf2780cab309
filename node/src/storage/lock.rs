//! Keeps a second process out of a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The lock's file in the data directory. It stays there; the operating system's lock on it is what counts.
pub(super) const FILE: &str = "lock";

/// Held for as long as this value lives; the system gives it back however the process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// Why a data directory cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("the data directory {} is in use by {holder}; two nodes cannot share one", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// Who has it, as it said itself.
        holder: String,
    },
    /// The lock's file could not be used.
    #[error("the data directory {} cannot be locked: {error}", directory.display())]
    Io {
        /// The directory.
        directory: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl DirectoryLock {
    /// Locks a data directory, which is made if it does not exist.
    pub fn acquire(directory: &Path) -> Result<Self, LockError> {
        let failed = |error| LockError::Io { directory: directory.to_owned(), error };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let path = directory.join(FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::InUse { directory: directory.to_owned(), holder: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        sign(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "process {}", std::process::id())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(64).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "another process".into(),
    }
}
