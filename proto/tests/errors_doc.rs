//! docs/errors.md and the table of errors say the same.

use holdfast_proto::ErrorReason;

const DOCUMENT: &str = include_str!("../../docs/errors.md");

#[test]
fn the_document_carries_the_whole_table() {
    for row in ErrorReason::markdown_table().lines() {
        assert!(DOCUMENT.contains(row), "docs/errors.md misses this row:\n{row}");
    }
}

#[test]
fn the_document_names_no_reason_that_does_not_exist() {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    for row in rows.filter(|row| row.matches(" | ").count() == 5) {
        let word = row.split('`').nth(1).unwrap_or_default();
        assert!(word.parse::<ErrorReason>().is_ok(), "docs/errors.md has a row for {word:?}");
    }
}
