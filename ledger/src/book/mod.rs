//! The book.

/// The whole state: a pure function of the commands applied so far.
#[derive(Clone, Debug, Default)]
pub struct Book {}
