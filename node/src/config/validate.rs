//! What must hold of a configuration's values.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_proto::limits::BATCH_COMMANDS_MAX;

use super::{Address, Listen, NodeConfig, Problem, filter};
use crate::limits::{
    CLUSTER_ID_BYTES_MAX, CONNECTIONS_CEILING, ELECTION_MS_CEILING, ELECTION_PER_HEARTBEAT_MIN,
    ENTRIES_UNDER_WAY_CEILING, HEARTBEAT_MS_FLOOR, MEMBERS_MAX, MESSAGE_BYTES_CEILING, MESSAGE_BYTES_FLOOR,
    QUEUE_COMMANDS_CEILING, SEGMENT_BYTES_CEILING, SEGMENT_BYTES_FLOOR, WEBHOOK_DEADLINE_MS_CEILING,
};

/// Keys that were set to something of a wrong form: the values in their place are stand-ins, which nobody set
/// and nothing is said of.
#[derive(Debug, Default)]
pub(super) struct Unjudged {
    keys: BTreeSet<String>,
}

impl Unjudged {
    pub(super) fn add(&mut self, key: &str) {
        self.keys.insert(key.to_owned());
    }

    /// Takes a key out with all that is in it: it has been set anew.
    pub(super) fn remove(&mut self, key: &str) {
        self.keys.retain(|unjudged| !is_within(unjudged, key));
    }

    /// Whether a key, or something that it lies in, is unjudged.
    fn covers(&self, key: &str) -> bool {
        self.keys.iter().any(|unjudged| is_within(key, unjudged))
    }
}

fn is_within(key: &str, outer: &str) -> bool {
    key.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// What is wrong with the values, as far as it can be judged.
pub(super) fn validate(config: &NodeConfig, unjudged: Unjudged) -> Vec<Problem> {
    let mut check = Check { problems: Vec::new(), unjudged };
    check.identity(config);
    check.addresses(config);
    check.members(config);
    check.timing(config);
    check.sizes(config);
    check.problems
}

struct Check {
    problems: Vec<Problem>,
    unjudged: Unjudged,
}

impl Check {
    fn say(&mut self, key: &str, problem: impl Into<String>) {
        if !self.unjudged.covers(key) {
            self.problems.push(Problem::new(key, problem));
        }
    }

    fn within(&mut self, key: &str, value: u64, low: u64, high: u64) {
        if value < low || value > high {
            self.say(key, format!("is {value}; must lie between {low} and {high}"));
        }
    }

    fn address(&mut self, key: &str, text: &str) -> Option<Address> {
        match text.parse::<Address>() {
            Ok(address) => Some(address),
            Err(problem) => {
                self.say(key, format!("is {text:?}; {problem}"));
                None
            }
        }
    }

    fn identity(&mut self, config: &NodeConfig) {
        if let Err(problem) = config.cluster_id.parse::<holdfast_ledger::ids::TenantId>() {
            self.say("cluster_id", problem.to_string());
        } else if config.cluster_id.len() > CLUSTER_ID_BYTES_MAX {
            self.say("cluster_id", format!("is longer than {CLUSTER_ID_BYTES_MAX} bytes"));
        }
        if config.node_id == 0 {
            self.say("node_id", "is 0; node ids begin at 1");
        }
        if config.data_dir.as_os_str().is_empty() {
            self.say("data_dir", "must not be empty");
        }
        if let Some(problem) = filter::problem(&config.log_level) {
            self.say("log_level", problem);
        }
    }

    fn addresses(&mut self, config: &NodeConfig) {
        let mut bound: BTreeMap<Address, &str> = BTreeMap::new();
        for (name, port) in [("client", &config.client), ("peer", &config.peer), ("http", &config.http)] {
            let Some(listen) = self.port(name, port) else { continue };
            if listen.port == 0 || self.unjudged.covers(&format!("{name}.listen")) {
                continue;
            }
            if let Some(other) = bound.insert(listen, name) {
                self.say(&format!("{name}.listen"), format!("is the same address as {other}.listen"));
            }
        }
    }

    fn port(&mut self, name: &str, port: &Listen) -> Option<Address> {
        let advertise_key = format!("{name}.advertise");
        let listen = self.address(&format!("{name}.listen"), &port.listen);
        if port.advertise.is_empty() {
            if listen.as_ref().is_some_and(Address::is_wildcard) {
                self.say(
                    &advertise_key,
                    "must be set, since nobody can connect to the address that is listened on",
                );
            }
        } else if let Some(advertise) = self.address(&advertise_key, &port.advertise)
            && (advertise.port == 0 || advertise.is_wildcard())
        {
            self.say(&advertise_key, format!("is {advertise}; nobody can connect to that"));
        }
        listen
    }

    fn members(&mut self, config: &NodeConfig) {
        if config.members.len() > MEMBERS_MAX {
            self.say("members", format!("are {}; at most {MEMBERS_MAX} are possible", config.members.len()));
        }
        let mut ids = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for (i, member) in config.members.iter().enumerate() {
            if self.unjudged.covers(&format!("members[{i}].id")) {
                // It may be anybody's.
            } else if member.id == 0 {
                self.say(&format!("members[{i}].id"), "is 0; node ids begin at 1");
            } else if let Some(other) = ids.insert(member.id, i) {
                self.say(&format!("members[{i}].id"), format!("is the same as that of members[{other}]"));
            }
            let parts = [("peer", &member.peer), ("client", &member.client), ("http", &member.http)];
            for (name, text) in parts {
                if name == "http" && text.is_empty() {
                    continue;
                }
                let key = format!("members[{i}].{name}");
                let Some(address) = self.address(&key, text) else { continue };
                if address.port == 0 || address.is_wildcard() {
                    self.say(&key, format!("is {address}; nobody can connect to that"));
                } else if let Some(other) = addresses.insert(address, key.clone()) {
                    self.say(&key, format!("is the same address as {other}"));
                }
            }
        }
        let known = !self.unjudged.covers("node_id")
            && (0..config.members.len()).all(|i| !self.unjudged.covers(&format!("members[{i}].id")));
        if known && !config.members.is_empty() && !ids.contains_key(&config.node_id) {
            self.say("members", format!("do not hold this node (node_id = {})", config.node_id));
        }
    }

    fn timing(&mut self, config: &NodeConfig) {
        let raft = &config.raft;
        self.within("raft.heartbeat_ms", raft.heartbeat_ms, HEARTBEAT_MS_FLOOR, ELECTION_MS_CEILING);
        self.within("raft.election_ms_max", raft.election_ms_max, HEARTBEAT_MS_FLOOR, ELECTION_MS_CEILING);
        let least = raft.heartbeat_ms.saturating_mul(ELECTION_PER_HEARTBEAT_MIN);
        if raft.election_ms_min < least && !self.unjudged.covers("raft.heartbeat_ms") {
            self.say(
                "raft.election_ms_min",
                format!(
                    "is {}; must be at least {least}, which is {ELECTION_PER_HEARTBEAT_MIN} times raft.heartbeat_ms, \
                     so that one lost heartbeat brings no election",
                    raft.election_ms_min
                ),
            );
        }
        if raft.election_ms_max <= raft.election_ms_min && !self.unjudged.covers("raft.election_ms_min") {
            self.say(
                "raft.election_ms_max",
                format!(
                    "is {}; must be above raft.election_ms_min ({}), so that not all stand at once",
                    raft.election_ms_max, raft.election_ms_min
                ),
            );
        }
        self.within("raft.clock_bound_ms", raft.clock_bound_ms, 10, 60_000);
    }

    fn sizes(&mut self, config: &NodeConfig) {
        let storage = &config.storage;
        self.within(
            "storage.segment_bytes",
            storage.segment_bytes,
            SEGMENT_BYTES_FLOOR,
            SEGMENT_BYTES_CEILING,
        );
        self.within("storage.log_cache_bytes", storage.log_cache_bytes, 1 << 20, 1 << 34);
        self.within("snapshot.log_bytes", config.snapshot.log_bytes, 1 << 16, 1 << 40);
        self.within("snapshot.commands", config.snapshot.commands, 100, 1 << 40);
        self.within("snapshot.entries_kept", config.snapshot.entries_kept, 0, 1 << 24);
        let queue = &config.queue;
        self.within("queue.commands_max", queue.commands_max, 1, QUEUE_COMMANDS_CEILING);
        self.within("queue.entries_under_way_max", queue.entries_under_way_max, 1, ENTRIES_UNDER_WAY_CEILING);
        self.within("queue.stream_commands_max", queue.stream_commands_max, 1, QUEUE_COMMANDS_CEILING);
        self.within("queue.connections_max", queue.connections_max, 1, CONNECTIONS_CEILING);
        // One full message of one stream must have room.
        let least = BATCH_COMMANDS_MAX as u64;
        let given = queue.connection_commands_max;
        self.within("queue.connection_commands_max", given, least, QUEUE_COMMANDS_CEILING);
        self.within(
            "queue.message_bytes_max",
            queue.message_bytes_max,
            MESSAGE_BYTES_FLOOR,
            MESSAGE_BYTES_CEILING,
        );
        self.within("queue.deadline_ms", queue.deadline_ms, 1, 600_000);
        self.within("history.retention_ms", config.history.retention_ms, 60_000, 10 * 366 * 24 * 3_600_000);
        let deadline = config.webhooks.deadline_ms;
        self.within("webhooks.deadline_ms", deadline, 100, WEBHOOK_DEADLINE_MS_CEILING);
        self.within("history.queue_max", config.history.queue_max, 1, QUEUE_COMMANDS_CEILING);
    }
}
