//! The sentences of ARCHITECTURE.md about who may know what, read from the sources.
//!
//! Plain text search: it sees names, not meaning. What it is for is the use that creeps in unnoticed.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

/// A sentence, and the lines of source that would break it.
struct Rule {
    sentence: &'static str,
    /// Files and directories that it is about, from the root of the workspace.
    places: &'static [&'static str],
    /// Those among them that it allows.
    allowed: &'static [&'static str],
    breaks: fn(&str) -> bool,
    /// Lines that break it and lines that do not: a rule that finds nothing must be able to.
    bad: &'static [&'static str],
    good: &'static [&'static str],
}

const EVERYWHERE: &[&str] = &[
    "ledger/src",
    "proto/src",
    "client/src",
    "client/tests",
    "node/src",
    "node/tests",
    "node/benches",
    "cli/src",
    "cli/tests",
    "jepsen-like-tests/src",
    "jepsen-like-tests/tests",
];

const RULES: &[Rule] = &[
    Rule {
        sentence: "only node/src/raft/ names an openraft type",
        places: EVERYWHERE,
        allowed: &["node/src/raft/"],
        breaks: |line| ["openraft::", "use openraft;", "use openraft as"].iter().any(|name| has(line, name)),
        bad: &["use openraft::Raft;", "fn f(e: &openraft::errors::Fatal) {}", "pub use openraft as raft;"],
        good: &["use openraft_rt::AsyncRuntime;", "openraft_rt_sim::SimRuntime", "// openraft::Raft"],
    },
    Rule {
        sentence: "only node/src/storage/ touches a file",
        places: &["node/src"],
        allowed: &["node/src/storage/"],
        breaks: |line| {
            ["fs::", "File::", "OpenOptions", "std::fs", "sled::"].iter().any(|name| has(line, name))
        },
        bad: &[
            "use std::fs::File;",
            "tokio::fs::read(path)",
            "fs::write(a, b)",
            "File::open(path)",
            "use std::fs;",
        ],
        good: &["SnapshotFile::open(store)", "pub(super) files: Arc<SnapshotFiles>,", "/// std::fs::File"],
    },
    Rule {
        sentence: "only node/src/clock.rs reads the wall clock",
        places: &["ledger/src", "proto/src", "node/src"],
        allowed: &["node/src/clock.rs"],
        breaks: |line| {
            let names =
                ["SystemTime", "UNIX_EPOCH", "Timestamp::now", "Zoned::now", "Utc::now", "Local::now"];
            names.iter().any(|name| has(line, name))
        },
        bad: &["SystemTime::now()", "jiff::Timestamp::now()", "since(std::time::UNIX_EPOCH)"],
        good: &["R::Instant::now()", "clock.now_ms()"],
    },
    Rule {
        sentence: "what runs in the simulator takes tasks, time and randomness from the runtime type",
        places: &[
            "node/src/propose",
            "node/src/raft",
            "node/src/timers.rs",
            "node/src/replica.rs",
            "node/src/clock.rs",
            "node/src/storage",
        ],
        // The two that know tokio, the threads that production drives the log and the index with, and tests.
        allowed: &[
            "node/src/raft/grpc.rs",
            "node/src/raft/host.rs",
            "node/src/raft/suite.rs",
            "node/src/storage/log/thread.rs",
            "node/src/storage/history/",
        ],
        breaks: |line| {
            let names = ["tokio::", "std::thread", "thread::spawn", "rand::rng", "rand::random"];
            names.iter().any(|name| has(line, name)) || has(line, "std::time::") && line.contains("Instant")
        },
        bad: &[
            "tokio::spawn(task)",
            "use std::time::{Duration, Instant};",
            "std::thread::sleep(pause)",
            "rand::random()",
        ],
        good: &[
            "R::spawn(task)",
            "use std::time::Duration;",
            "R::thread_rng().random()",
            "use openraft_rt_tokio::x;",
        ],
    },
    Rule {
        sentence: "the ledger knows no clock, randomness, async, disk, network, protobuf, floats or hash order",
        places: &["ledger/src"],
        allowed: &[],
        breaks: |line| {
            let names = [
                "std::time",
                "std::fs",
                "std::net",
                "std::thread",
                "std::env",
                "tokio",
                "rand::",
                "prost",
                "tonic",
                "async",
                "HashMap",
                "HashSet",
                "RandomState",
                "f32",
                "f64",
            ];
            names.iter().any(|name| word(line, name))
        },
        bad: &[
            "use std::collections::HashMap;",
            "let ratio = used as f64;",
            "async fn apply() {}",
            "rand::random()",
        ],
        good: &["hashbrown::HashTable<u32>", "let brand::new", "use std::collections::BTreeMap;"],
    },
];

/// `name` in `line`, not as the tail of a longer name.
fn has(line: &str, name: &str) -> bool {
    let line = code(line);
    let mut from = 0;
    while let Some(at) = line[from..].find(name).map(|at| at + from) {
        if !line[..at].ends_with(is_part_of_a_name) {
            return true;
        }
        from = at + name.len();
    }
    false
}

/// `name` in `line`, neither as the tail nor as the head of a longer name.
fn word(line: &str, name: &str) -> bool {
    let line = code(line);
    let mut from = 0;
    while let Some(at) = line[from..].find(name).map(|at| at + from) {
        let after = &line[at + name.len()..];
        let ends = name.ends_with(':') || !after.starts_with(is_part_of_a_name);
        if !line[..at].ends_with(is_part_of_a_name) && ends {
            return true;
        }
        from = at + name.len();
    }
    false
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The line without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file at or below `place`, as paths from the root.
fn sources(place: &str) -> Vec<String> {
    let at = root().join(place);
    if at.is_file() {
        return vec![place.to_owned()];
    }
    let mut found = Vec::new();
    let entries = std::fs::read_dir(&at).unwrap_or_else(|error| panic!("{place}: {error}"));
    for entry in entries {
        let name = format!("{place}/{}", entry.unwrap().file_name().to_string_lossy());
        if root().join(&name).is_dir() {
            found.extend(sources(&name));
        } else if name.ends_with(".rs") {
            found.push(name);
        }
    }
    found.sort();
    found
}

fn violations(rule: &Rule) -> Vec<String> {
    let mut found = Vec::new();
    for file in rule.places.iter().flat_map(|place| sources(place)) {
        if file == "node/tests/architecture.rs"
            || rule.allowed.iter().any(|allowed| file.starts_with(allowed))
        {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let broken = text.lines().enumerate().filter(|(_, line)| (rule.breaks)(line));
        found.extend(broken.map(|(at, line)| format!("{file}:{}: {}", at + 1, line.trim())));
    }
    found
}

#[test]
fn every_sentence_is_kept() {
    let broken: Vec<String> = RULES
        .iter()
        .flat_map(|rule| violations(rule).into_iter().map(|at| format!("{}: {at}", rule.sentence)))
        .collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_sentence_can_be_broken() {
    for rule in RULES {
        for line in rule.bad {
            assert!((rule.breaks)(line), "{}: {line:?} was not found", rule.sentence);
        }
        for line in rule.good {
            assert!(!(rule.breaks)(line), "{}: {line:?} was found", rule.sentence);
        }
    }
}

/// An exception that no file needs any more would hide the next one.
#[test]
fn every_exception_exists() {
    for allowed in RULES.iter().flat_map(|rule| rule.allowed) {
        assert!(root().join(allowed).exists(), "{allowed} is allowed something and does not exist");
    }
}
