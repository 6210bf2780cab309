//! The file that `holdfast serve --applied-log` writes: one JSON object an entry.

use std::fs;
use std::path::Path;

use holdfast_proto::log::{EntryError, decode_entry};
use serde::Deserialize;

use super::AppliedEntry;

/// A line of the file.
#[derive(Deserialize)]
struct Line {
    index: u64,
    term: u64,
    /// Before the entry.
    revision: u64,
    /// After the entry, hex.
    digest: String,
    /// The entry's payload, hex.
    payload: String,
}

/// Why an applied log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AppliedLogError {
    /// The file.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line that is whole and makes no sense.
    #[error("{path}, line {line}: {problem}")]
    Line {
        /// Which file.
        path: String,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// Reads a file. A line that was cut off when its node was killed is skipped: its
/// answer had not been given.
pub fn read_applied_log(path: &Path) -> Result<Vec<AppliedEntry>, AppliedLogError> {
    let name = || path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| AppliedLogError::File { path: name(), source })?;
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        let entry =
            decode(line).map_err(|problem| AppliedLogError::Line { path: name(), line: at + 1, problem })?;
        entries.push(entry);
    }
    Ok(entries)
}

fn decode(line: Line) -> Result<AppliedEntry, String> {
    let payload = bytes_of_hex(&line.payload).ok_or("the payload is not hex")?;
    let digest = u128::from_str_radix(&line.digest, 16).map_err(|error| format!("the digest {error}"))?;
    let (header, commands) =
        decode_entry(payload.into(), line.index, line.term).map_err(|error: EntryError| error.to_string())?;
    Ok(AppliedEntry { header, revision_before: line.revision, commands, digest })
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture;
    use holdfast_proto::log::encode_entry;

    #[test]
    fn whole_lines_are_read_and_a_torn_one_is_skipped() {
        let entry = fixture::entry(5, 2, 40, &[7, 8]);
        let payload = encode_entry(entry.header.stamp_ms, &[], &entry.commands);
        let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let whole =
            format!("{{\"index\":5,\"term\":2,\"revision\":40,\"digest\":\"00\",\"payload\":\"{hex}\"}}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("applied.jsonl");
        fs::write(&path, format!("{whole}\n{}\n{whole}\n", &whole[..60])).unwrap();
        assert_eq!(read_applied_log(&path).unwrap(), vec![entry.clone(), entry]);
    }

    #[test]
    fn a_whole_line_that_makes_no_sense_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("applied.jsonl");
        fs::write(&path, "{\"index\":5,\"term\":2,\"revision\":0,\"digest\":\"0\",\"payload\":\"ff\"}\n")
            .unwrap();
        assert!(read_applied_log(&path).unwrap_err().to_string().contains("line 1"));
    }
}
