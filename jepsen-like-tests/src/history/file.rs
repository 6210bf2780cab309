//! A history on disk: one JSON object a line, in the order of invocation.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use super::Operation;

/// Why a history could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it.
    #[error("{path}, line {line}: {source}")]
    Line {
        /// Which file.
        path: String,
        /// Which line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

/// Writes the operations, sorted by invocation.
pub fn write_history(path: &Path, operations: &[Operation]) -> Result<(), HistoryError> {
    let name = || path.display().to_string();
    let file_error = |source| HistoryError::File { path: name(), source };
    let mut sorted: Vec<&Operation> = operations.iter().collect();
    sorted.sort_by_key(|operation| (operation.invoked_us, operation.client));
    let mut out = BufWriter::new(File::create(path).map_err(file_error)?);
    for (at, operation) in sorted.into_iter().enumerate() {
        let line = serde_json::to_string(operation).map_err(|source| HistoryError::Line {
            path: name(),
            line: at + 1,
            source,
        })?;
        writeln!(out, "{line}").map_err(file_error)?;
    }
    out.flush().map_err(file_error)
}

/// Reads a history back.
pub fn read_history(path: &Path) -> Result<Vec<Operation>, HistoryError> {
    let name = || path.display().to_string();
    let file_error = |source| HistoryError::File { path: name(), source };
    let mut operations = Vec::new();
    for (at, line) in BufReader::new(File::open(path).map_err(file_error)?).lines().enumerate() {
        let line = line.map_err(file_error)?;
        if line.trim().is_empty() {
            continue;
        }
        operations.push(serde_json::from_str(&line).map_err(|source| HistoryError::Line {
            path: name(),
            line: at + 1,
            source,
        })?);
    }
    Ok(operations)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture;

    #[test]
    fn what_is_written_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.jsonl");
        let operations = vec![fixture::reserve(1, 10, 20, 7), fixture::get(2, 30, 40, 7)];
        write_history(&path, &operations).unwrap();
        assert_eq!(read_history(&path).unwrap(), operations);
    }

    #[test]
    fn a_bad_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.jsonl");
        std::fs::write(&path, "\n{\"client\":1}\n").unwrap();
        let error = read_history(&path).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
