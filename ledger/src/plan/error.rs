//! What is wrong with a document.

/// One thing that is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {path}: {problem}")]
pub struct PlanError {
    /// Line in the document, from 1.
    pub line: usize,
    /// Where in the document's structure, for example `limits[2].unit`; `document` for the whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub problem: String,
}
