//! A file that says what was applied, for checkers that judge a cluster from outside (docs/testing.md).
//!
//! It is no part of the node's data: nothing is read from it, nothing waits for it to be durable, and
//! it grows without bound. A line survives the death of the process, not that of the machine.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// The file, open for appending.
#[derive(Debug)]
pub struct AppliedLog {
    file: File,
}

/// What one line says.
#[derive(Clone, Copy, Debug)]
pub struct AppliedLine<'a> {
    /// Log index of the entry.
    pub index: u64,
    /// Its term.
    pub term: u64,
    /// The book's revision before it.
    pub revision_before: u64,
    /// The book's digest after it.
    pub digest: u128,
    /// Its payload.
    pub payload: &'a [u8],
}

impl AppliedLog {
    /// Opens the file, or makes it. What a process that was killed left of a line is closed off.
    pub fn open(path: &Path) -> io::Result<AppliedLog> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if file.metadata()?.len() > 0 {
            file.write_all(b"\n")?;
        }
        Ok(AppliedLog { file })
    }

    /// Appends one entry as a JSON object on a line, in one write.
    pub fn append(&mut self, line: AppliedLine<'_>) -> io::Result<()> {
        let AppliedLine { index, term, revision_before, digest, payload } = line;
        let mut text = format!(
            "{{\"index\":{index},\"term\":{term},\"revision\":{revision_before},\
             \"digest\":\"{digest:032x}\",\"payload\":\""
        );
        text.reserve(payload.len() * 2 + 4);
        for byte in payload {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(nibble.into(), 16).unwrap_or('0'));
            }
        }
        text.push_str("\"}\n");
        self.file.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_appended_over_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("applied.jsonl");
        let line = AppliedLine { index: 5, term: 2, revision_before: 7, digest: 255, payload: &[0x0a, 0xff] };
        AppliedLog::open(&path).unwrap().append(line).unwrap();
        AppliedLog::open(&path).unwrap().append(line).unwrap();
        let expected = "{\"index\":5,\"term\":2,\"revision\":7,\
                        \"digest\":\"000000000000000000000000000000ff\",\"payload\":\"0aff\"}\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{expected}\n{expected}"));
    }
}
