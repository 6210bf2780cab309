//! YAML to a tree of nodes that know their lines. Bounded in size, depth and count; anchors, aliases, tags and
//! further documents are refused, so that a document costs no more than it is long.

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::limits::{PLAN_BYTES_MAX, PLAN_DEPTH_MAX, PLAN_NODES_MAX};
use crate::plan::PlanError;

/// One value of a document.
#[derive(Debug)]
pub(super) struct Node {
    pub line: usize,
    pub value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    /// `quoted`: written in quotes or as a block, so meant as text.
    Scalar {
        text: String,
        quoted: bool,
    },
    List(Vec<Node>),
    /// In the document's order, duplicates included.
    Map(Vec<Entry>),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub line: usize,
    pub key: String,
    pub node: Node,
}

impl Node {
    /// What stands there, for "must be …, is …".
    pub fn describe(&self) -> &'static str {
        match &self.value {
            Value::Scalar { text, quoted: false } if text.is_empty() || text == "~" || text == "null" => {
                "empty"
            }
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

fn problem_at(line: usize, problem: impl Into<String>) -> PlanError {
    PlanError { line, path: "document".to_owned(), problem: problem.into() }
}

/// A collection that is being read.
struct Frame {
    line: usize,
    open: Open,
}

enum Open {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, key: Option<(usize, String)> },
}

/// Reads the one document of a text. Syntax errors end the reading, so there is one at most.
pub(super) fn load_document(text: &str) -> Result<Node, PlanError> {
    if text.len() > PLAN_BYTES_MAX {
        return Err(problem_at(
            1,
            format!("is {} bytes long; at most {PLAN_BYTES_MAX} are allowed", text.len()),
        ));
    }
    let mut frames: Vec<Frame> = Vec::new();
    let mut root = None;
    let mut nodes = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| problem_at(error.marker().line().max(1), error.info()))?;
        let line = span.start.line().max(1);
        let done = match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) if root.is_some() => {
                return Err(problem_at(line, "has a second YAML document; one is allowed"));
            }
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => continue,
            Event::Alias(_) => return Err(problem_at(line, "uses a YAML alias (*); write the value out")),
            Event::Scalar(_, _, anchor, tag) if refuse_marks(anchor, tag.is_some(), line)? => continue,
            Event::SequenceStart(anchor, tag) if refuse_marks(anchor, tag.is_some(), line)? => continue,
            Event::MappingStart(anchor, tag) if refuse_marks(anchor, tag.is_some(), line)? => continue,
            Event::Scalar(text, style, ..) => {
                let quoted = style != ScalarStyle::Plain;
                Node { line, value: Value::Scalar { text: text.into_owned(), quoted } }
            }
            Event::SequenceStart(..) => {
                open_frame(&mut frames, line, Open::List(Vec::new()))?;
                continue;
            }
            Event::MappingStart(..) => {
                open_frame(&mut frames, line, Open::Map { entries: Vec::new(), key: None })?;
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => close_frame(&mut frames, line)?,
        };
        nodes += 1;
        if nodes > PLAN_NODES_MAX {
            return Err(problem_at(line, format!("has more than {PLAN_NODES_MAX} values")));
        }
        match frames.last_mut() {
            Some(frame) => add_to_frame(frame, done)?,
            None => root = Some(done),
        }
    }
    root.ok_or_else(|| problem_at(1, "is empty"))
}

/// Anchors and tags change what a value means somewhere else: never `Ok(true)`.
fn refuse_marks(anchor: usize, tagged: bool, line: usize) -> Result<bool, PlanError> {
    if anchor != 0 {
        return Err(problem_at(line, "uses a YAML anchor (&); write the value out where it is needed"));
    }
    if tagged {
        return Err(problem_at(line, "uses a YAML tag (!); values need none here"));
    }
    Ok(false)
}

fn open_frame(frames: &mut Vec<Frame>, line: usize, open: Open) -> Result<(), PlanError> {
    if frames.len() >= PLAN_DEPTH_MAX {
        return Err(problem_at(line, format!("is nested more than {PLAN_DEPTH_MAX} levels deep")));
    }
    if let Some(Frame { open: Open::Map { key: None, .. }, .. }) = frames.last() {
        return Err(problem_at(line, "has a list or mapping as a key; keys are plain words"));
    }
    frames.push(Frame { line, open });
    Ok(())
}

fn close_frame(frames: &mut Vec<Frame>, line: usize) -> Result<Node, PlanError> {
    let frame = frames.pop().ok_or_else(|| problem_at(line, "ends a collection that was not begun"))?;
    let value = match frame.open {
        Open::List(items) => Value::List(items),
        Open::Map { entries, .. } => Value::Map(entries),
    };
    Ok(Node { line: frame.line, value })
}

fn add_to_frame(frame: &mut Frame, done: Node) -> Result<(), PlanError> {
    match &mut frame.open {
        Open::List(items) => items.push(done),
        Open::Map { entries, key } => match key.take() {
            Some((line, key)) => {
                // An empty value stands where the next token begins: report it at its key.
                let mut node = done;
                if matches!(&node.value, Value::Scalar { text, quoted: false } if text.is_empty()) {
                    node.line = line;
                }
                entries.push(Entry { line, key, node });
            }
            None => match done.value {
                Value::Scalar { text, .. } => *key = Some((done.line, text)),
                Value::List(_) | Value::Map(_) => {
                    return Err(problem_at(
                        done.line,
                        "has a list or mapping as a key; keys are plain words",
                    ));
                }
            },
        },
    }
    Ok(())
}
