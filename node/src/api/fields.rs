//! Reading names out of requests, with the field in the error.

use std::str::FromStr;

use holdfast_ledger::ids::IdError;
use holdfast_proto::FieldError;

/// A name or an id that must be there.
pub(super) fn name<T: FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, FieldError> {
    text.parse().map_err(|error: IdError| FieldError::new(field, error.to_string()))
}

/// A name or an id that may be absent.
pub(super) fn optional_name<T: FromStr<Err = IdError>>(
    field: &str,
    text: Option<&str>,
) -> Result<Option<T>, FieldError> {
    text.map(|text| name(field, text)).transpose()
}
