//! Golden scripts: one rule a file under `tests/golden/`. A script is a list of commands; the lines that begin
//! with `>` are what the book must answer, and the accounts that the command changed. After each command the
//! book is audited, saved and restored, and a second replica that lives by restored snapshots only must agree.
//!
//! `UPDATE_GOLDEN=1 cargo test -p holdfast-ledger --test golden` writes the answers of today into the scripts:
//! read the difference before you commit it.

#![allow(clippy::unwrap_used)]

mod golden_runner;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use golden_runner::run::{Run, Transition};

fn scripts() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    paths
}

fn play(path: &PathBuf) -> (String, String, BTreeSet<Transition>) {
    let expected = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut run = Run::new(&name);
    let actual = run.play(&expected);
    (expected, actual, run.transitions)
}

fn difference(expected: &str, actual: &str) -> String {
    let (mut left, mut right) = (expected.lines(), actual.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (left.next(), right.next()) {
            (None, None) => return "only the line ends differ".to_owned(),
            (a, b) if a == b => {}
            (a, b) => {
                return format!(
                    "line {number}:\n  expected {}\n  actual   {}",
                    a.unwrap_or("(end)"),
                    b.unwrap_or("(end)")
                );
            }
        }
    }
}

#[test]
fn scripts_give_the_answers_that_stand_in_them() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for path in scripts() {
        let (expected, actual, _) = play(&path);
        if expected == actual {
            continue;
        }
        if update {
            fs::write(&path, actual).unwrap();
        } else {
            wrong.push(format!("{}: {}", path.display(), difference(&expected, &actual)));
        }
    }
    assert!(wrong.is_empty(), "{} scripts differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_command_refusal_and_reason_appears_in_some_script() {
    let all: String = scripts().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let commands = [
        "reserve", "start", "settle", "release", "renew", "estimate", "correct", "unknown", "resolve",
        "freeze", "plan", "rollback", "tenant", "unfreeze", "adjust", "tick", "rules",
    ];
    let answers = [
        "invalid",
        "conflict",
        "wrong state",
        "not found",
        "id too old",
        "id in future",
        "generation mismatch",
        "destructive",
        "epoch closed",
        "overloaded",
        "rejected: frozen",
        "rejected: never fits",
        "rejected: debt",
        "rejected: held",
        "rejected: spent",
    ];
    let events = [
        "crossed",
        "indebted",
        "repaid",
        "forgiven",
        "breached",
        "frozen",
        "unfrozen",
        "unknown resolved",
        "adjusted",
        "published",
        "rolled back",
        "tenant set",
    ];
    let lines: Vec<&str> = all.lines().collect();
    for command in commands {
        let found = lines.iter().any(|line| line.split_whitespace().next() == Some(command));
        assert!(found, "no script has the command {command}");
    }
    for answer in answers {
        assert!(
            lines.iter().any(|line| line.starts_with(&format!("> {answer}"))),
            "no script has {answer:?}"
        );
    }
    for event in events {
        assert!(
            lines.iter().any(|line| line.starts_with(&format!(">   event: {event}"))),
            "no event {event:?}"
        );
    }
}

#[test]
fn every_transition_of_a_reservation_appears_in_some_script() {
    let expected = [
        ("-", "RESERVED"),
        ("RESERVED", "STARTED"),
        ("RESERVED", "RELEASED"),
        ("RESERVED", "EXPIRING"),
        ("EXPIRING", "EXPIRED"),
        ("EXPIRING", "RELEASED"),
        ("STARTED", "SETTLED"),
        ("STARTED", "SETTLED_WITH_DEBT"),
        ("STARTED", "USAGE_UNKNOWN"),
        ("USAGE_UNKNOWN", "SETTLED"),
        ("USAGE_UNKNOWN", "SETTLED_WITH_DEBT"),
        ("SETTLED", "SETTLED_WITH_DEBT"),
        ("SETTLED_WITH_DEBT", "SETTLED"),
    ];
    let seen: BTreeSet<Transition> = scripts().iter().flat_map(|path| play(path).2).collect();
    for (from, to) in expected {
        assert!(seen.contains(&(from.to_owned(), to.to_owned())), "no script goes from {from} to {to}");
    }
}
