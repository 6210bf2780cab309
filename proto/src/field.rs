//! Refusing what came over the wire, by the name of the field.

use std::str::FromStr;

use holdfast_ledger::ids::IdError;

/// One field that is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// Its path in the message, for example `request.amounts.tokens`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FieldError {
    /// An error of one field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        FieldError { field: field.into(), problem: problem.into() }
    }

    /// The same error as seen from the message around it.
    #[must_use]
    pub fn inside(self, outer: &str) -> Self {
        FieldError { field: format!("{outer}.{}", self.field), problem: self.problem }
    }

    /// An error of a field that must be there and is not.
    pub fn missing(field: impl Into<String>) -> Self {
        FieldError::new(field, "is missing")
    }
}

/// Names the field that an error happened in, from the inside outwards.
pub(crate) trait InField<T> {
    fn in_field(self, outer: &str) -> Result<T, FieldError>;
}

impl<T> InField<T> for Result<T, FieldError> {
    fn in_field(self, outer: &str) -> Result<T, FieldError> {
        self.map_err(|error| error.inside(outer))
    }
}

/// A name or an id that must be there.
pub(crate) fn name<T: FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, FieldError> {
    text.parse().map_err(|error: IdError| FieldError::new(field, error.to_string()))
}

/// A name or an id that may be absent.
pub(crate) fn optional_name<T: FromStr<Err = IdError>>(
    field: &str,
    text: Option<&str>,
) -> Result<Option<T>, FieldError> {
    text.map(|text| name(field, text)).transpose()
}

/// A message that must be there.
pub(crate) fn required<T>(field: &str, message: Option<T>) -> Result<T, FieldError> {
    message.ok_or_else(|| FieldError::missing(field))
}

/// Bytes of a fixed length.
pub(crate) fn fixed<const N: usize>(field: &str, bytes: &[u8]) -> Result<[u8; N], FieldError> {
    bytes.try_into().map_err(|_| FieldError::new(field, format!("has {} bytes instead of {N}", bytes.len())))
}
