//! The configuration file: its defaults, its layers, and what is said of a wrong one.
#![allow(clippy::unwrap_used)]

use holdfast_node::config::{Layer, NodeConfig, env_name, keys, load};

const SAMPLE: &str = include_str!("../../scripts/holdfast.toml");
const DOCUMENT: &str = include_str!("../../docs/configuration.md");

fn problems(file: &str) -> Vec<String> {
    problems_of(file, &[], [])
}

fn problems_of<const N: usize>(file: &str, variables: &[(&str, &str)], flags: [Layer; N]) -> Vec<String> {
    load(file, env(variables), flags).unwrap_err().iter().map(ToString::to_string).collect()
}

fn env(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn flag(key: &str, text: &str) -> Layer {
    Layer { source: "--set".into(), key: key.into(), text: text.into() }
}

#[test]
fn an_empty_file_and_the_sample_are_the_defaults() {
    assert_eq!(load("", [], []).unwrap(), NodeConfig::default());
    assert_eq!(load(SAMPLE, [], []).unwrap(), NodeConfig::default());
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
    let env = env(&[("HOLDFAST_NODE_ID", "3"), ("HOLDFAST_RAFT_HEARTBEAT_MS", "60")]);
    let config = load(file, env, [flag("raft.heartbeat_ms", "70")]).unwrap();
    assert_eq!((config.cluster_id.as_str(), config.node_id, config.raft.heartbeat_ms), ("from-file", 3, 70));
    assert_eq!(config.raft.election_ms_min, 500);
}

#[test]
fn strings_are_taken_as_they_are_and_lists_as_toml() {
    let members = r#"[{ id = 1, peer = "a:1", client = "a:2" }]"#;
    let config = load("", [], [flag("cluster_id", "42"), flag("members", members)]).unwrap();
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
    let perhaps = (env_name("history.enabled"), "perhaps");
    let said = problems_of(file, &[(&perhaps.0, perhaps.1)], [flag("no.such", "1")]);
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
fn what_is_wrong_in_form_hides_no_wrong_value() {
    let file = r#"
        colour = "red"
        node_id = 0
        log_level = "loud"
        members = [{ id = 7, peer = "a", client = 3 }]
        [raft]
        heartbeat_ms = "fast"
        election_ms_max = 1
        [queue]
        deadline_ms = 0
    "#;
    let said =
        problems_of(file, &[("HOLDFAST_HISTORY_QUEUE_MAX", "0")], [flag("queue.commands_max", "many")]);
    let keys: Vec<&str> = said.iter().filter_map(|line| line.split(": ").next()).collect();
    let expected = [
        "colour",
        "members[0].client",
        "raft.heartbeat_ms",
        "queue.commands_max (--set)",
        "node_id",
        "log_level",
        "members[0].peer",
        "members",
        "raft.election_ms_max",
        "raft.election_ms_max",
        "queue.deadline_ms",
        "history.queue_max",
    ];
    assert_eq!(keys, expected, "{said:#?}");
}

#[test]
fn nothing_is_said_of_values_that_nobody_set() {
    // With the defaults in the place of what is wrong, each of these would break a rule between two keys.
    for (file, wrong) in [
        ("[raft]\nheartbeat_ms = \"x\"\nelection_ms_min = 200", "raft.heartbeat_ms"),
        ("[raft]\nelection_ms_min = \"x\"\nelection_ms_max = 400", "raft.election_ms_min"),
        ("node_id = \"x\"\nmembers = [{ id = 7, peer = \"a:1\", client = \"a:2\" }]", "node_id"),
        ("members = [{ id = \"x\", peer = \"a:1\", client = \"a:2\" }]", "members[0].id"),
        ("members = [\"a:1\"]", "members[0]"),
        ("members = 3", "members"),
        ("client = 3\n[peer]\nlisten = \"127.0.0.1:7401\"", "client"),
    ] {
        let said = problems(file);
        assert!(said.len() == 1 && said[0].starts_with(&format!("{wrong}: ")), "{file}: {said:#?}");
    }
}

#[test]
fn a_flag_that_sets_no_key_tells_those_that_there_are() {
    let said = problems_of("", &[], [flag("raft.nope", "1")]);
    assert!(said[0].ends_with(
        "known are raft.clock_bound_ms, raft.election_ms_max, raft.election_ms_min, raft.heartbeat_ms"
    ));
    assert!(problems_of("", &[], [flag("nope", "1")])[0].contains("cluster_id"));
}

#[test]
fn a_misspelt_variable_is_refused_and_those_of_others_are_not() {
    let said = problems_of("", &[("HOLDFAST_RAFT_HEARTBET_MS", "51"), ("HOLDFAST_LOG_LEVL", "info")], []);
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(
        said[0].starts_with("HOLDFAST_LOG_LEVL: ") && said[0].contains("HOLDFAST_LOG_LEVEL"),
        "{said:#?}"
    );
    assert!(said[1].starts_with("HOLDFAST_RAFT_HEARTBET_MS: "), "{said:#?}");
    assert!(said[1].contains("HOLDFAST_RAFT_HEARTBEAT_MS"), "{said:#?}");

    let others = [
        ("HOLDFAST_ENDPOINTS", "a:1"),
        ("HOLDFAST_WRITE_OUT", "json"),
        ("HOLDFAST_DEADLINE", "1s"),
        ("HOLDFAST_SETTINGS", "x.toml"),
        ("RAFT_HEARTBEAT_MS", "1"),
        // What Kubernetes sets beside services called holdfast and holdfast-client.
        ("HOLDFAST_SERVICE_HOST", "10.0.0.1"),
        ("HOLDFAST_CLIENT_SERVICE_HOST", "10.0.0.1"),
        ("HOLDFAST_CLIENT_SERVICE_PORT", "7401"),
        ("HOLDFAST_CLIENT_SERVICE_PORT_GRPC", "7401"),
        ("HOLDFAST_CLIENT_PORT", "tcp://10.0.0.1:7401"),
        ("HOLDFAST_CLIENT_PORT_7401_TCP", "tcp://10.0.0.1:7401"),
        ("HOLDFAST_CLIENT_PORT_7401_TCP_ADDR", "10.0.0.1"),
    ];
    assert_eq!(load("", env(&others), []).unwrap(), NodeConfig::default());
    assert_eq!(problems_of("", &[("HOLDFAST_CLIENT_PORT", "7401")], []).len(), 1);
}

#[test]
fn a_log_level_that_would_silence_the_node_is_refused() {
    let said = problems("log_level = \"loud\"");
    assert!(said[0].starts_with("log_level: has \"loud\"; that is no level (off, error"), "{said:#?}");
    let quiet = problems("log_level = \"info,openraft=quiet\"");
    assert!(quiet[0].starts_with("log_level: has \"openraft=quiet\""), "{quiet:#?}");
    assert!(load("log_level = \"info,openraft=warn\"", [], []).is_ok());
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
