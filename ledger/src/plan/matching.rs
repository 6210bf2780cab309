//! Which requests a route or a limit is for.

use crate::command::Request;

/// Which requests a route or a limit is for. An absent part matches everything; `*` at the end matches any rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Patterns on the request's route name.
    pub route: Vec<String>,
    /// Patterns on the request's model. A request without a model matches only an absent part.
    pub model: Vec<String>,
    /// Patterns on the request's region.
    pub region: Vec<String>,
}

impl Match {
    /// Whether a request is meant: every part that is present has a pattern that fits.
    pub fn matches(&self, request: &Request) -> bool {
        part_matches(&self.route, Some(request.route.as_str()))
            && part_matches(&self.model, request.model.as_ref().map(|name| name.as_str()))
            && part_matches(&self.region, request.region.as_ref().map(|name| name.as_str()))
    }
}

fn part_matches(patterns: &[String], value: Option<&str>) -> bool {
    match value {
        _ if patterns.is_empty() => true,
        Some(value) => patterns.iter().any(|pattern| pattern_matches(pattern, value)),
        None => false,
    }
}

/// Whether a pattern fits: a name, or the beginning of one and `*`.
pub(super) fn pattern_matches(pattern: &str, value: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => value.starts_with(prefix),
        None => pattern == value,
    }
}
