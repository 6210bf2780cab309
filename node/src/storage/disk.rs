//! The narrow seam to a file system: what storage needs of one, and no more.

use std::io;
use std::sync::Arc;

/// A directory tree that a node keeps its data in.
///
/// Paths are relative to its root, with `/` between names, without `.` or `..`.
/// A method that changes names (`create`, `rename`, `remove`, `create_dir`) is
/// durable only after [`Disk::sync_dir`] of the directory that holds the name.
/// An error of a mutating call leaves the state unknown: callers stop writing.
pub trait Disk: Send + Sync + 'static {
    /// Makes a directory and those above it. One that exists already is fine.
    fn create_dir(&self, dir: &str) -> io::Result<()>;

    /// Makes a new, empty file. Fails with `AlreadyExists` if the name is taken.
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that exists, for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// The names of the files and directories in a directory, sorted.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;

    /// Gives a file another name in the same directory, replacing what had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Takes a file's name away. Handles that are open keep reading it.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes the names in a directory durable. The root is `""`.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`, growing the file if need be.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Reads into `buffer` from `offset`: as much as fits and exists. Fewer bytes than asked mean the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// The file's length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file off (or grows it with zeros) to `size` bytes.
    fn truncate(&self, size: u64) -> io::Result<()>;

    /// Makes everything written so far durable (`fdatasync`). After an error nothing may be assumed durable,
    /// and asking again proves nothing.
    fn sync(&self) -> io::Result<()>;
}

/// Reads `length` bytes from `offset`, or fewer at the end of the file.
///
/// Callers bound `length`; it never comes from unchecked bytes of a file.
pub fn read_up_to(file: &dyn DiskFile, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; length];
    let read = file.read_at(offset, &mut buffer)?;
    buffer.truncate(read);
    Ok(buffer)
}

/// The whole of a file that must not be larger than `bytes_max`.
pub fn read_whole(file: &dyn DiskFile, bytes_max: u64) -> io::Result<Vec<u8>> {
    let size = file.size()?;
    if size > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("file of {size} bytes, expected at most {bytes_max}"),
        ));
    }
    let length = usize::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    read_up_to(file, 0, length)
}

/// The directory of a path (`""` for the root) and the name in it.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
