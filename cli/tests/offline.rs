//! Commands that need no cluster: good and bad input, exit codes, what goes to which stream.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn holdfast(args: &[&str]) -> Output {
    holdfast_with(&[], args)
}

/// With these variables and no others of its own.
fn holdfast_with(variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HOLDFAST_")) {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).env("XDG_CONFIG_HOME", "/nonexistent");
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn sample_plan() -> String {
    format!("{}/../scripts/plans/three-level.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Each with a word of what is wrong: a cluster is named, so that its absence is not what every row shows.
#[test]
fn wrong_usage_is_exit_code_2_and_says_nothing_on_stdout() {
    let id = "01J0000000000000000000000Z";
    let twice = ["reserve", "acme", "--route", "r", "--amount", "tokens=1", "--amount", "tokens=2"];
    for (args, word) in [
        (&["no-such-command"][..], "no-such-command"),
        (&["quota"], "<TENANT>"),
        (&["quota", "acme", "--endpoints", "nowhere"], "nowhere"),
        (&["quota", "acme", "--deadline", "0ms"], "deadline"),
        (&["quota", "acme", "--deadline", "soon"], "soon"),
        (&["status", "-w", "xml"], "xml"),
        (&["status", "--json", "-w", "table"], "--json"),
        (&["reserve", "acme"], "--route"),
        (&["reserve", "acme", "--route", "r", "--amount", "tokens"], "tokens"),
        (&["reserve", "acme", "--route", "r", "--amount", "coins=1"], "coins"),
        (&["reserve", "acme", "--route", "r", "--amount", "tokens=-1"], "-1"),
        (
            &["reserve", "acme", "--route", "r", "--amount", "tokens=18446744073709551616"],
            "18446744073709551615",
        ),
        (&twice, "twice"),
        (&["reserve", "acme", "--route", "r", "--id", "not-a-ulid"], "ULID"),
        (&["start", id], "--operation"),
        (&["start", id, "--operation", "bad name"], "operation"),
        (&["settle", "short", "--operation", "o"], "ULID"),
        (&["release", "short"], "ULID"),
        (&["get", "short"], "ULID"),
        (&["history"], "--tenant"),
        (&["history", "--since", "2h"], "--tenant"),
        (&["history", id, "--tenant", "acme"], "--tenant"),
        (&["tenant", "set", "acme"], "--tier"),
        (&["tenant", "set", "acme", "--expected-generation", "1"], "--tier"),
        (&["tenant", "set", "acme", "--limit", "qps"], "LIMIT=AMOUNT"),
        (&["tenant", "set", "acme", "--remove", "--tier", "trial"], "--remove"),
        (&["plan", "diff"], "<FILE>"),
        (&["plan", "check", "/nonexistent/plan.yaml"], "/nonexistent/plan.yaml"),
        (&["plan", "apply", "/nonexistent/plan.yaml"], "/nonexistent/plan.yaml"),
        (&["serve", "--check", "--config", "/nonexistent/node.toml"], "/nonexistent/node.toml"),
        (&["serve", "--bootstrap", "--join"], "--join"),
        (&["serve", "--set", "node_id"], "node_id"),
        (&["dev", "--nodes", "0"], "--nodes"),
        (&["dev", "--port-base", "80"], "--port-base"),
        (&["bench", "--clients", "0"], "--clients"),
        (&["bench", "--data", "/tmp/x"], "--data"),
        (&["bench", "--pids", "a=b"], "--pids"),
        (&["completion", "cmd"], "cmd"),
        (&["status", "--settings", "/nonexistent/settings.toml"], "/nonexistent/settings.toml"),
    ] {
        let output = holdfast_with(&[("HOLDFAST_ENDPOINTS", "127.0.0.1:1")], args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
        assert!(
            stderr(&output).contains(word) && !stderr(&output).contains("panicked"),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_call_without_a_cluster_is_told_how_to_name_one() {
    for args in [&["quota", "acme"][..], &["status"], &["history", "--tenant", "acme"]] {
        let output = holdfast(args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("--endpoints"), "{args:?}: {}", stderr(&output));
    }
}

/// Options beside the choice of what to show are no part of that choice: nobody is there, and nothing is wrong
/// with the usage.
#[test]
fn the_options_of_history_go_with_a_tenant_and_with_an_id() {
    for of in [&["--tenant", "acme"][..], &["01J0000000000000000000000Z"]] {
        for option in [&[][..], &["--since", "2h"], &["--from", "7"], &["--most", "1"]] {
            let args: Vec<_> = ["history"].iter().chain(of).chain(option).copied().collect();
            let output = holdfast_with(
                &[("HOLDFAST_ENDPOINTS", "127.0.0.1:1"), ("HOLDFAST_DEADLINE", "300ms")],
                &args,
            );
            assert_eq!(code(&output), 4, "{args:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn nobody_there_is_unavailable_and_says_what_to_do() {
    // A port that was just free: nothing listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("127.0.0.1:{port}");
    for args in [&["quota", "acme"][..], &["status"], &["audit"], &["member", "list"], &["plan", "get"]] {
        let all: Vec<&str> =
            args.iter().copied().chain(["--endpoints", &endpoint, "--deadline", "300ms"]).collect();
        let output = holdfast(&all);
        assert_eq!(code(&output), 4, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("--endpoints"), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_plan_is_checked_without_a_cluster() {
    let output = holdfast(&["plan", "check", &sample_plan()]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("fine"));

    let output = holdfast(&["plan", "check", &sample_plan(), "--json"]);
    let document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(document["ok"], true);
}

#[test]
fn a_flag_beats_what_the_environment_says_of_the_format() {
    let json =
        holdfast_with(&[("HOLDFAST_WRITE_OUT", "table")], &["plan", "check", &sample_plan(), "--json"]);
    assert_eq!(code(&json), 0, "{}", stderr(&json));
    assert!(stdout(&json).contains("\"ok\":true"), "{}", stdout(&json));
    let table =
        holdfast_with(&[("HOLDFAST_WRITE_OUT", "json")], &["plan", "check", &sample_plan(), "-w", "table"]);
    assert!(stdout(&table).contains("this plan is fine"), "{}", stdout(&table));
}

/// A device would be read for ever.
#[test]
fn a_document_that_never_ends_is_too_long() {
    let endless = holdfast(&["plan", "check", "/dev/zero"]);
    assert_eq!(code(&endless), 2);
    assert!(stderr(&endless).contains("/dev/zero: it is longer than 1048576 bytes"), "{}", stderr(&endless));
}

#[test]
fn every_problem_of_a_plan_is_named_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(sample_plan()).unwrap();
    let wrong = text.replace("unit: requests", "unit: reqests").replace("Asia/Shanghai", "Asia/Shangri-La");
    let path = write(folder.path(), "plan.yaml", &wrong);
    let output = holdfast(&["plan", "check", &path, "--json"]);
    assert_eq!(code(&output), 1);
    let document: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let problems = document["problems"].as_array().unwrap();
    assert!(problems.len() >= 2 && problems.iter().all(|problem| problem["line"].as_u64().unwrap() > 0));
    for word in ["reqests", "Shangri-La"] {
        assert!(stderr(&output).contains(word), "{word}: {}", stderr(&output));
    }
}

#[test]
fn a_time_zone_that_does_not_exist_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(sample_plan()).unwrap();
    let path = write(folder.path(), "plan.yaml", &text.replace("Asia/Shanghai", "Asia/Shangri-La"));
    let output = holdfast(&["plan", "check", &path]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("Shangri-La"), "{}", stderr(&output));
}

#[test]
fn a_wrong_configuration_is_named_key_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "node.toml", "node_id = 0\nunknown = 1\n[raft]\nheartbeat_ms = \"x\"\n");
    let output = holdfast(&["serve", "--check", "--config", &path]);
    assert_eq!(code(&output), 1);
    for key in ["unknown", "raft.heartbeat_ms"] {
        assert!(stderr(&output).contains(key), "{key}: {}", stderr(&output));
    }
    assert_eq!(stdout(&output), "");

    let good = write(folder.path(), "good.toml", "node_id = 2\n");
    let output = holdfast(&["serve", "--check", "--config", &good]);
    assert_eq!((code(&output), stdout(&output).contains("fine")), (0, true));
    let output = holdfast(&["serve", "--check", "--config", &good, "--set", "node_id=0"]);
    assert_eq!(code(&output), 1, "a flag beats the file");
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let output = holdfast(&["completion", shell]);
        assert_eq!(code(&output), 0);
        assert!(stdout(&output).contains("reserve"), "{shell}");
    }
}
