//! Finds the `holdfast` program that belongs to this build, and builds it if it is not there.
//!
//! `CARGO_BIN_EXE_…` exists only for binaries of the package under test, and this package is not
//! the program's. Tests and binaries of one workspace share a target directory, so the program
//! lies beside (or one above) whatever is running.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The program. Cargo is asked to bring it up to date first (this costs little when it is), so
/// that a test never runs against yesterday's node; not when the environment names one.
pub fn holdfast_binary() -> Result<PathBuf, BinaryError> {
    if let Some(named) = std::env::var_os(BINARY_ENV) {
        let named = PathBuf::from(named);
        return if named.is_file() { Ok(named) } else { Err(BinaryError::Missing(named)) };
    }
    let here = std::env::current_exe().map_err(BinaryError::Here)?;
    let profile_directory = profile_directory(&here);
    build(&profile_directory)?;
    let program = profile_directory.join(format!("holdfast{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() { Ok(program) } else { Err(BinaryError::Missing(program)) }
}

/// `target/debug` for `target/debug/torment` and `target/debug/deps/cluster-…`.
fn profile_directory(here: &Path) -> PathBuf {
    let directory = here.parent().unwrap_or(Path::new("."));
    let is_deps = directory.file_name().is_some_and(|name| name == "deps");
    if is_deps { directory.parent().unwrap_or(directory) } else { directory }.to_path_buf()
}

fn build(profile_directory: &Path) -> Result<(), BinaryError> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace).args([
        "build",
        "--quiet",
        "--package",
        "holdfast-cli",
        "--bin",
        "holdfast",
    ]);
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
