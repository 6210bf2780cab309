//! Finds the `holdfast` program that belongs to this build, and builds it if it is not there.
//!
//! `CARGO_BIN_EXE_…` exists only for binaries of the package under test, and this package is not
//! the program's. Tests and binaries of one workspace share a target directory, so the program
//! lies beside (or one above) whatever is running.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Why there is no program to run.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// The path of the running program cannot be told.
    #[error("cannot tell where this program lies: {0}")]
    Here(std::io::Error),
    /// Cargo could not be run.
    #[error("cannot run cargo to build holdfast: {0}")]
    Cargo(std::io::Error),
    /// Cargo failed.
    #[error("cargo could not build holdfast: {0}")]
    Build(String),
    /// It was built, and is not where it should be.
    #[error("there is no holdfast program at {}", .0.display())]
    Missing(PathBuf),
}

/// The environment variable that names another program to use.
pub const BINARY_ENV: &str = "HOLDFAST_BIN";

/// The program; built first if it is not there or older than the sources, so that a test never runs
/// against yesterday's node. Not when the environment names one.
pub fn holdfast_binary() -> Result<PathBuf, BinaryError> {
    if let Some(named) = std::env::var_os(BINARY_ENV) {
        let named = PathBuf::from(named);
        return if named.is_file() { Ok(named) } else { Err(BinaryError::Missing(named)) };
    }
    let here = std::env::current_exe().map_err(BinaryError::Here)?;
    let profile_directory = profile_directory(&here);
    let program = profile_directory.join(format!("holdfast{}", std::env::consts::EXE_SUFFIX));
    if !is_up_to_date(&program) {
        build(&profile_directory)?;
    }
    if program.is_file() { Ok(program) } else { Err(BinaryError::Missing(program)) }
}

/// The packages that the program is made of.
const SOURCES: [&str; 5] = ["ledger", "proto", "client", "node", "cli"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether the program is younger than every source file. Cargo would know for certain, but asking it
/// for this one program chooses other features of shared dependencies than a build of the workspace does, and
/// compiles those anew.
fn is_up_to_date(program: &Path) -> bool {
    let Ok(built) = program.metadata().and_then(|data| data.modified()) else { return false };
    SOURCES
        .iter()
        .all(|package| newest(&workspace().join(package).join("src")).is_none_or(|newest| newest <= built))
}

fn newest(directory: &Path) -> Option<SystemTime> {
    let age = |entry: std::fs::DirEntry| match entry.file_type().ok()?.is_dir() {
        true => newest(&entry.path()),
        false => entry.metadata().ok()?.modified().ok(),
    };
    std::fs::read_dir(directory).ok()?.flatten().filter_map(age).max()
}

/// `target/debug` for `target/debug/torment` and `target/debug/deps/cluster-…`.
fn profile_directory(here: &Path) -> PathBuf {
    let directory = here.parent().unwrap_or(Path::new("."));
    let is_deps = directory.file_name().is_some_and(|name| name == "deps");
    if is_deps { directory.parent().unwrap_or(directory) } else { directory }.to_path_buf()
}

fn build(profile_directory: &Path) -> Result<(), BinaryError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace()).args(["build", "--quiet", "--bins"]);
    match profile_directory.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(profile) => {
            command.args(["--profile", profile]);
        }
    }
    if let Some(target) = profile_directory.parent() {
        command.arg("--target-dir").arg(target);
    }
    let output = command.output().map_err(BinaryError::Cargo)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(BinaryError::Build(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_directory_is_found_from_tests_and_programs() {
        for here in ["/t/debug/deps/cluster-0a", "/t/debug/torment"] {
            assert_eq!(profile_directory(Path::new(here)), Path::new("/t/debug"));
        }
    }
}
