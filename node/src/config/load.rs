//! File, environment and flags over the defaults.
//!
//! serde stops at the first thing it dislikes, but an operator wants all of them. So the document is
//! first compared with the table of the defaults, which has every key with its type. What does not fit is
//! reported and taken out, and what is left is handed to serde, so that its values are judged as well.

use std::fmt;

use toml::{Table, Value};

use super::env::{self, ENV_PREFIX};
use super::validate::{Unjudged, validate};
use super::{Member, NodeConfig};

/// One thing that is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key, for example `raft.heartbeat_ms` or `members[2].peer`; where it was set, if not in the file.
    pub key: String,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl Problem {
    pub(super) fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Problem { key: key.into(), problem: problem.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

/// Values that go over the file's: first the environment's, then the flags'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What messages call it, for example `HOLDFAST_NODE_ID` or `--set`.
    pub source: String,
    /// The key, for example `raft.heartbeat_ms`.
    pub key: String,
    /// Its value as text: strings as they are, everything else as TOML.
    pub text: String,
}

/// Every key that can be set, sorted.
pub fn keys() -> Vec<String> {
    flatten(&defaults()).map(|(key, _)| key).collect()
}

/// The environment variable of a key: `raft.heartbeat_ms` → `HOLDFAST_RAFT_HEARTBEAT_MS`.
pub fn env_name(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Reads a configuration: `file` (the text of a TOML document, may be empty) over the defaults, the
/// environment (`env`: all of it, variables that mean nothing here included) over the file, `flags` over
/// everything, in their order.
///
/// # Errors
/// Every problem at once, of form and of content. Nothing is repaired.
pub fn load(
    file: &str,
    env: impl IntoIterator<Item = (String, String)>,
    flags: impl IntoIterator<Item = Layer>,
) -> Result<NodeConfig, Vec<Problem>> {
    let document = match file.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return Err(vec![Problem::new("the file", error.to_string().trim_end().to_owned())]),
    };
    let mut reading = Reading {
        known: defaults(),
        fitting: Table::new(),
        problems: Vec::new(),
        unjudged: Unjudged::default(),
    };
    reading.fitting = reading.fit_table("", document, &reading.known.clone());
    let (from_env, unknown) = env::layers(env);
    reading.problems.extend(unknown);
    for layer in from_env.into_iter().chain(flags) {
        reading.apply_layer(&layer);
    }
    reading.judge()
}

/// Keys with their values, tables taken apart, sorted by key.
pub(super) fn flatten(table: &Table) -> impl Iterator<Item = (String, &Value)> {
    let mut rows = Vec::new();
    collect("", table, &mut rows);
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows.into_iter()
}

fn collect<'a>(prefix: &str, table: &'a Table, rows: &mut Vec<(String, &'a Value)>) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(inner) => collect(&format!("{key}."), inner, rows),
            _ => rows.push((key, value)),
        }
    }
}

fn defaults() -> Table {
    // Plain structs of strings, integers, booleans and lists always become a table.
    Table::try_from(NodeConfig::default()).unwrap_or_default()
}

fn member_form() -> Table {
    let member = Member { id: 0, peer: String::new(), client: String::new(), http: String::new() };
    Table::try_from(member).unwrap_or_default()
}

/// A configuration while it is read.
struct Reading {
    /// The defaults: every key with its type.
    known: Table,
    /// What was set and fits them.
    fitting: Table,
    problems: Vec<Problem>,
    /// What was set and does not fit.
    unjudged: Unjudged,
}

impl Reading {
    /// The values, if nothing is wrong with them either.
    fn judge(self) -> Result<NodeConfig, Vec<Problem>> {
        let Reading { known: mut whole, fitting, mut problems, unjudged } = self;
        overlay(&mut whole, fitting);
        match whole.try_into::<NodeConfig>() {
            Err(error) => problems.push(Problem::new("the file", error.message().to_owned())),
            Ok(config) => {
                problems.extend(validate(&config, unjudged));
                if problems.is_empty() {
                    return Ok(config);
                }
            }
        }
        Err(problems)
    }

    fn misfit(&mut self, key: &str, problem: impl Into<String>) {
        self.unjudged.add(key);
        self.problems.push(Problem::new(key, problem));
    }

    /// What of `found` fits `form`.
    fn fit_table(&mut self, prefix: &str, found: Table, form: &Table) -> Table {
        let mut fitting = Table::new();
        for (name, value) in found {
            let key = format!("{prefix}{name}");
            match form.get(&name) {
                None => self.problems.push(Problem::new(key, unknown(&name, form))),
                Some(form) => {
                    if let Some(value) = self.fit_value(&key, value, form) {
                        fitting.insert(name, value);
                    }
                }
            }
        }
        fitting
    }

    fn fit_value(&mut self, key: &str, value: Value, form: &Value) -> Option<Value> {
        match (value, form) {
            (Value::Table(found), Value::Table(form)) => {
                Some(Value::Table(self.fit_table(&format!("{key}."), found, form)))
            }
            (Value::Array(list), Value::Array(_)) => {
                let members = list.into_iter().enumerate();
                Some(Value::Array(
                    members.map(|(i, item)| self.fit_member(&format!("{key}[{i}]"), item)).collect(),
                ))
            }
            (Value::Integer(number), Value::Integer(_)) if number < 0 => {
                self.misfit(key, format!("is {number}; must not be negative"));
                None
            }
            (value, form) if value.same_type(form) => Some(value),
            (value, form) => {
                self.misfit(key, format!("is {}; must be {}", type_name(&value), type_name(form)));
                None
            }
        }
    }

    /// A member, with stand-ins for what is missing or does not fit.
    fn fit_member(&mut self, key: &str, item: Value) -> Value {
        let mut member = member_form();
        if let Some(Value::Table(found)) = self.fit_value(key, item.clone(), &Value::Table(member.clone())) {
            overlay(&mut member, found);
        }
        for name in ["id", "peer", "client"] {
            if item.as_table().is_some_and(|item| !item.contains_key(name)) {
                self.misfit(&format!("{key}.{name}"), "is missing");
            }
        }
        Value::Table(member)
    }

    fn apply_layer(&mut self, layer: &Layer) {
        let Layer { source, key, text } = layer;
        let shown = format!("{key} ({source})");
        let form = flatten(&self.known).find(|(known, _)| known == key).map(|(_, form)| form.clone());
        let Some(form) = form else {
            let problem = format!("there is no such key; known are {}", known_near(key));
            return self.problems.push(Problem::new(shown, problem));
        };
        let value = match &form {
            Value::String(_) => Some(Value::String(text.clone())),
            _ => format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value")),
        };
        let Some(value) = value else {
            self.unjudged.add(key);
            return self.problems.push(Problem::new(shown, format!("{text:?} is not {}", type_name(&form))));
        };
        // It replaces what was set before, so that may be what it likes.
        self.unjudged.remove(key);
        let said = self.problems.len();
        let value = self.fit_value(key, value, &form);
        for problem in self.problems.iter_mut().skip(said) {
            problem.key = format!("{} ({source})", problem.key);
        }
        if let Some(value) = value {
            set(&mut self.fitting, key, value);
        }
    }
}

/// The keys that somebody may have meant by one that does not exist: those of its table, or all.
fn known_near(key: &str) -> String {
    let table = key.split_once('.').map_or("", |(table, _)| table);
    let all = keys();
    let same = |known: &&String| known.split_once('.').is_some_and(|(of, _)| of == table);
    let near: Vec<&str> = all.iter().filter(same).map(String::as_str).collect();
    if near.is_empty() { all.join(", ") } else { near.join(", ") }
}

/// Sets a key in a document whose tables are tables.
fn set(document: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            document.insert(key.to_owned(), value);
        }
        Some((name, rest)) => {
            let inner = document.entry(name).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

fn unknown(name: &str, known: &Table) -> String {
    let names: Vec<_> = known.keys().map(String::as_str).collect();
    format!("there is no key {name:?} here; known are {}", names.join(", "))
}

fn overlay(under: &mut Table, over: Table) {
    for (name, value) in over {
        match (under.get_mut(&name), value) {
            (Some(Value::Table(under)), Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(name, value);
            }
        }
    }
}

/// A type's name with its article, for messages.
fn type_name(value: &Value) -> String {
    let name = value.type_str();
    let article = if name.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {name}")
}
