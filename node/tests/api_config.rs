//! The configuration file: its defaults, its layers, and what is said of a wrong one.
#![allow(clippy::unwrap_used)]

use holdfast_node::config::{Layer, NodeConfig, env_name, keys, load};

const SAMPLE: &str = include_str!("../../scripts/holdfast.toml");
const DOCUMENT: &str = include_str!("../../docs/configuration.md");

fn no_env(_: &str) -> Option<String> {
    None
}

fn problems(file: &str) -> Vec<String> {
    load(file, no_env, []).unwrap_err().iter().map(ToString::to_string).collect()
}

fn flag(key: &str, text: &str) -> Layer {
    Layer { source: "--set".into(), key: key.into(), text: text.into() }
}

#[test]
fn an_empty_file_and_the_sample_are_the_defaults() {
    assert_eq!(load("", no_env, []).unwrap(), NodeConfig::default());
    assert_eq!(load(SAMPLE, no_env, []).unwrap(), NodeConfig::default());
}

#[test]
fn the_sample_names_every_key() {
    let table: toml::Table = SAMPLE.parse().unwrap();
    for key in keys() {
        let mut at = toml::Value::Table(table.clone());
        for part in key.split('.') {
            at = at.get(part).unwrap_or_else(|| panic!("scripts/holdfast.toml lacks {key}")).clone();
        }
    }
}

#[test]
fn the_document_tells_every_key_and_its_default() {
    let defaults = toml::Table::try_from(NodeConfig::default()).unwrap();
    for key in keys() {
        let mut at = toml::Value::Table(defaults.clone());
        for part in key.split('.') {
            at = at.get(part).unwrap().clone();
        }
        let row = format!("| `{key}` | `{at}` |");
        assert!(DOCUMENT.contains(&row), "docs/configuration.md lacks {row}");
    }
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, keys().len(), "docs/configuration.md tells of keys that do not exist");
}

#[test]
fn flag_beats_environment_beats_file() {
    let file = "node_id = 2\ncluster_id = \"from-file\"\n[raft]\nheartbeat_ms = 50";
    let env = |name: &str| match name {
        "HOLDFAST_NODE_ID" => Some("3".to_owned()),
        "HOLDFAST_RAFT_HEARTBEAT_MS" => Some("60".to_owned()),
        _ => None,
    };
    let config = load(file, env, [flag("raft.heartbeat_ms", "70")]).unwrap();
    assert_eq!((config.cluster_id.as_str(), config.node_id, config.raft.heartbeat_ms), ("from-file", 3, 70));
    assert_eq!(config.raft.election_ms_min, 500);
}

#[test]
fn strings_are_taken_as_they_are_and_lists_as_toml() {
    let members = r#"[{ id = 1, peer = "a:1", client = "a:2" }]"#;
    let config = load("", no_env, [flag("cluster_id", "42"), flag("members", members)]).unwrap();
    assert_eq!(config.cluster_id, "42");
    assert_eq!(config.members[0].peer, "a:1");
}

#[test]
fn every_problem_of_form_is_said_at_once() {
    let file = r#"
        node_id = "one"
        colour = "red"
        members = [{ id = -1, peer = "a:1", clint = "a:2" }]
        [raft]
        heartbeat_ms = -5
        heartbeats = 3
        [queue]
        commands_max = true
    "#;
    let env = |name: &str| (name == env_name("history.enabled")).then(|| "perhaps".to_owned());
    let said = load(file, env, [flag("no.such", "1")]).unwrap_err();
    let said: Vec<String> = said.iter().map(ToString::to_string).collect();
    let expected = [
        "node_id: is a string; must be an integer",
        "colour: there is no key \"colour\" here",
        "members[0].id: is -1; must not be negative",
        "members[0].clint: there is no key \"clint\" here",
        "members[0].client: is missing",
        "raft.heartbeat_ms: is -5; must not be negative",
        "raft.heartbeats: there is no key \"heartbeats\" here",
        "queue.commands_max: is a boolean; must be an integer",
        "history.enabled (HOLDFAST_HISTORY_ENABLED): \"perhaps\" is not a boolean",
        "no.such (--set): there is no such key",
    ];
    for expected in expected {
        assert!(said.iter().any(|line| line.starts_with(expected)), "{expected:?} is not among {said:#?}");
    }
    assert_eq!(said.len(), expected.len(), "{said:#?}");
}

#[test]
fn every_problem_of_content_is_said_at_once() {
    let file = r#"
        cluster_id = "two words"
        node_id = 0
        data_dir = ""
        log_level = " "
        members = [
          { id = 7, peer = "a:1", client = "a:1" },
          { id = 7, peer = "0.0.0.0:1", client = "b:0", http = "nowhere" },
        ]
        [client]
        listen = "0.0.0.0:7401"
        [peer]
        listen = "0.0.0.0:7401"
        advertise = "[::]:9"
        [http]
        listen = "7441"
        [raft]
        heartbeat_ms = 1
        election_ms_min = 2
        election_ms_max = 2
        clock_bound_ms = 0
        [storage]
        segment_bytes = 1
        log_cache_bytes = 1
        [snapshot]
        log_bytes = 1
        commands = 1
        [queue]
        commands_max = 0
        entries_under_way_max = 0
        stream_commands_max = 0
        message_bytes_max = 1
        deadline_ms = 0
        [history]
        retention_ms = 1
        queue_max = 0
    "#;
    let said = problems(file);
    let keys: Vec<&str> = said.iter().filter_map(|line| line.split(": ").next()).collect();
    let expected = [
        "cluster_id",
        "node_id",
        "data_dir",
        "log_level",
        "client.advertise",
        "peer.advertise",
        "peer.listen",
        "http.listen",
        "members[0].client",
        "members[1].id",
        "members[1].peer",
        "members[1].client",
        "members[1].http",
        "members",
        "raft.heartbeat_ms",
        "raft.election_ms_max",
        "raft.election_ms_min",
        "raft.election_ms_max",
        "raft.clock_bound_ms",
        "storage.segment_bytes",
        "storage.log_cache_bytes",
        "snapshot.log_bytes",
        "snapshot.commands",
        "queue.commands_max",
        "queue.entries_under_way_max",
        "queue.stream_commands_max",
        "queue.message_bytes_max",
        "queue.deadline_ms",
        "history.retention_ms",
        "history.queue_max",
    ];
    assert_eq!(keys, expected, "{said:#?}");
}

#[test]
fn a_log_level_that_would_silence_the_node_is_refused() {
    let said = problems("log_level = \"loud\"");
    assert!(said[0].starts_with("log_level: has \"loud\"; that is no level (off, error"), "{said:#?}");
    let quiet = problems("log_level = \"info,openraft=quiet\"");
    assert!(quiet[0].starts_with("log_level: has \"openraft=quiet\""), "{quiet:#?}");
    assert!(load("log_level = \"info,openraft=warn\"", no_env, []).is_ok());
}

#[test]
fn a_file_that_is_not_toml_names_the_line() {
    let said = problems("node_id = 1\nnode_id = = 2\n");
    assert!(said[0].contains("line 2"), "{said:?}");
}

#[test]
fn the_one_line_for_the_log_has_every_key() {
    let line = NodeConfig::default().one_line();
    for key in keys() {
        assert!(line.contains(&format!("{key}=")), "{key} is missing in {line}");
    }
    assert!(!line.contains('\n'));
}
