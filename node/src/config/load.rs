//! File, environment and flags over the defaults.
//!
//! serde stops at the first thing it dislikes, but an operator wants all of them. So the document is
//! first compared with the table of the defaults, which has every key with its type, and only a document
//! that fits is handed to serde.

use std::fmt;

use toml::{Table, Value};

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
    format!("HOLDFAST_{}", key.replace('.', "_").to_ascii_uppercase())
}

/// Reads a configuration: `file` (the text of a TOML document, may be empty) over the defaults, the
/// environment over the file (`env` gives a variable's value), `flags` over everything, in their order.
///
/// # Errors
/// Every problem at once, of form and of content. Nothing is repaired.
pub fn load(
    file: &str,
    env: impl Fn(&str) -> Option<String>,
    flags: impl IntoIterator<Item = Layer>,
) -> Result<NodeConfig, Vec<Problem>> {
    let mut document = match file.parse::<Table>() {
        Ok(table) => table,
        Err(error) => return Err(vec![Problem::new("the file", error.to_string().trim_end().to_owned())]),
    };
    let known = defaults();
    let mut problems = Vec::new();
    check_table("", &document, &known, &mut problems);
    let from_env = keys().into_iter().filter_map(|key| {
        let source = env_name(&key);
        env(&source).map(|text| Layer { source, key, text })
    });
    for layer in from_env.chain(flags) {
        if let Err(problem) = apply_layer(&mut document, &known, &layer) {
            problems.push(problem);
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut whole = known;
    overlay(&mut whole, document);
    let config: NodeConfig = whole
        .try_into()
        .map_err(|error: toml::de::Error| vec![Problem::new("the file", error.message().to_owned())])?;
    let problems = config.validate();
    if problems.is_empty() { Ok(config) } else { Err(problems) }
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

fn check_table(prefix: &str, found: &Table, known: &Table, problems: &mut Vec<Problem>) {
    for (name, value) in found {
        let key = format!("{prefix}{name}");
        match known.get(name) {
            Some(form) => check_value(&key, value, form, problems),
            None => problems.push(Problem::new(key, unknown(name, known))),
        }
    }
}

fn check_value(key: &str, value: &Value, form: &Value, problems: &mut Vec<Problem>) {
    match (value, form) {
        (Value::Table(inner), Value::Table(form)) => check_table(&format!("{key}."), inner, form, problems),
        (Value::Array(list), Value::Array(_)) => {
            let form = Value::Table(member_form());
            for (i, item) in list.iter().enumerate() {
                let key = format!("{key}[{i}]");
                check_value(&key, item, &form, problems);
                for name in ["id", "peer", "client"] {
                    if item.as_table().is_some_and(|item| !item.contains_key(name)) {
                        problems.push(Problem::new(format!("{key}.{name}"), "is missing"));
                    }
                }
            }
        }
        (Value::Integer(number), Value::Integer(_)) if *number < 0 => {
            problems.push(Problem::new(key, format!("is {number}; must not be negative")));
        }
        _ if value.same_type(form) => {}
        _ => {
            problems.push(Problem::new(key, format!("is {}; must be {}", type_name(value), type_name(form))))
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

fn apply_layer(document: &mut Table, known: &Table, layer: &Layer) -> Result<(), Problem> {
    let problem = |text: String| Problem::new(format!("{} ({})", layer.key, layer.source), text);
    let Some((_, form)) = flatten(known).find(|(key, _)| *key == layer.key) else {
        return Err(problem("there is no such key".to_owned()));
    };
    let value = match form {
        Value::String(_) => Value::String(layer.text.clone()),
        _ => match format!("value = {}", layer.text).parse::<Table>() {
            Ok(mut table) => table.remove("value").unwrap_or(Value::Boolean(false)),
            Err(_) => return Err(problem(format!("{:?} is not {}", layer.text, type_name(form)))),
        },
    };
    let mut found = Vec::new();
    check_value(&layer.key, &value, form, &mut found);
    if let Some(first) = found.into_iter().next() {
        return Err(problem(first.problem));
    }
    let mut table = document;
    let mut parts = layer.key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            table.insert(part.to_owned(), value);
            break;
        }
        let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(inner) = inner else {
            return Err(problem(format!("{part} is not a table in the file")));
        };
        table = inner;
    }
    Ok(())
}
