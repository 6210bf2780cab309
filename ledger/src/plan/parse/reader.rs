//! Typed access to a document's nodes that collects problems instead of stopping at the first.

use std::collections::BTreeMap;

use super::suggest::did_you_mean;
use super::yaml::{Entry, Node, Value};
use crate::limits::{PLAN_ERRORS_MAX, PLAN_HINTS_MAX};
use crate::plan::PlanError;

/// The problems found so far.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<PlanError>,
}

impl Problems {
    pub fn add(&mut self, line: usize, path: impl Into<String>, problem: impl Into<String>) {
        if self.found.len() <= PLAN_ERRORS_MAX {
            self.found.push(PlanError { line, path: path.into(), problem: problem.into() });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// `; did you mean "x"?`, as long as there are few enough problems that somebody reads it.
    pub fn hint<'a>(&self, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
        if self.found.len() < PLAN_HINTS_MAX { did_you_mean(word, known) } else { String::new() }
    }

    /// In the order of the lines, cut at [`PLAN_ERRORS_MAX`] with a last one that says so.
    pub fn into_errors(mut self) -> Vec<PlanError> {
        if self.found.len() > PLAN_ERRORS_MAX {
            self.found.truncate(PLAN_ERRORS_MAX - 1);
            let problem = format!("has more than {PLAN_ERRORS_MAX} problems; the rest is not listed");
            let line = self.found.iter().map(|error| error.line).max().unwrap_or(1);
            self.found.push(PlanError { line, path: "document".to_owned(), problem });
        }
        self.found.sort_by_key(|error| error.line);
        self.found
    }
}

/// A node and where it stands.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub node: &'a Node,
    pub path: String,
}

impl<'a> Place<'a> {
    pub fn root(node: &'a Node) -> Self {
        Place { node, path: String::new() }
    }

    pub fn line(&self) -> usize {
        self.node.line
    }

    /// The path for a message: the root is called `document`.
    pub fn name(&self) -> &str {
        if self.path.is_empty() { "document" } else { &self.path }
    }

    pub fn complain(&self, problems: &mut Problems, problem: impl Into<String>) {
        problems.add(self.line(), self.name(), problem);
    }

    fn child(&self, key: &str, node: &'a Node) -> Place<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Place { node, path }
    }

    /// A scalar's text as it stands; a complaint for anything else.
    pub fn scalar(&self, problems: &mut Problems, wanted: &str) -> Option<(&'a str, bool)> {
        match &self.node.value {
            Value::Scalar { text, quoted } if *quoted || self.node.describe() != "empty" => {
                Some((text, *quoted))
            }
            _ => {
                self.complain(problems, format!("must be {wanted}, is {}", self.node.describe()));
                None
            }
        }
    }

    /// A list's items; a single value counts as a list of one.
    pub fn items(&self) -> Vec<Place<'a>> {
        match &self.node.value {
            Value::List(items) => {
                let place = |(at, node)| Place { node, path: format!("{}[{at}]", self.path) };
                items.iter().enumerate().map(place).collect()
            }
            Value::Scalar { .. } | Value::Map(_) => vec![self.clone()],
        }
    }

    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    pub fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// A mapping whose keys are names that the document chooses, each once.
    pub fn entries(&self, problems: &mut Problems, wanted: &str) -> Vec<(&'a Entry, Place<'a>)> {
        let Value::Map(entries) = &self.node.value else {
            self.complain(problems, format!("must be {wanted}, is {}", self.node.describe()));
            return Vec::new();
        };
        let mut first_lines = BTreeMap::new();
        let mut kept = Vec::new();
        for entry in entries {
            let place = self.child(&shorten(&entry.key), &entry.node);
            if let Some(first) = first_lines.get(entry.key.as_str()) {
                problems.add(entry.line, place.path, format!("stands twice; first on line {first}"));
            } else {
                first_lines.insert(entry.key.as_str(), entry.line);
                kept.push((entry, place));
            }
        }
        kept
    }

    /// A mapping whose keys are fixed by the format.
    pub fn fields(&self, problems: &mut Problems, known: &[&'static str]) -> Fields<'a> {
        let mut found = BTreeMap::new();
        for (entry, place) in self.entries(problems, "a mapping") {
            match known.iter().find(|key| **key == entry.key) {
                Some(key) => {
                    found.insert(*key, place);
                }
                None => {
                    let hint = problems.hint(&entry.key, known.iter().copied());
                    let hint =
                        if hint.is_empty() { format!("; known are {}", known.join(", ")) } else { hint };
                    problems.add(entry.line, place.path, format!("is not a key that is known here{hint}"));
                }
            }
        }
        Fields { whole: self.clone(), found }
    }
}

/// A key for a message: never longer than a line of a terminal.
pub(super) fn shorten(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    if text.chars().count() <= CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(CHARS_MAX).chain(['…']).collect()
}

/// The fields of a mapping that are there.
pub(super) struct Fields<'a> {
    pub whole: Place<'a>,
    found: BTreeMap<&'static str, Place<'a>>,
}

impl<'a> Fields<'a> {
    pub fn get(&self, key: &str) -> Option<&Place<'a>> {
        self.found.get(key)
    }

    /// The field, or a complaint at the mapping that it is missing.
    pub fn require(&self, problems: &mut Problems, key: &str) -> Option<&Place<'a>> {
        let found = self.found.get(key);
        if found.is_none() && self.whole.is_map() {
            self.whole.complain(problems, format!("{key:?} is missing"));
        }
        found
    }
}
