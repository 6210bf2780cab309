//! Node processes: their directories, their configuration, starting and killing them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use holdfast_client::{Client, v1};

use super::ports::free_ports;
use crate::evidence::LeaderSeen;

/// Why the cluster could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A file or a process.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A node ended by itself.
    #[error("node {node} ended by itself ({status}); its log ends with:\n{tail}")]
    Ended {
        /// Which.
        node: u64,
        /// How.
        status: String,
        /// The end of its log.
        tail: String,
    },
    /// It took too long.
    #[error("{0} did not happen within {1:?}")]
    TooLong(&'static str, Duration),
    /// A node that was to be stopped does not run.
    #[error("node {0} does not run")]
    NotRunning(u64),
    /// A client could not be made.
    #[error("client: {0}")]
    Client(#[from] holdfast_client::CallError),
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> ClusterError {
    let what = what.into();
    move |source| ClusterError::Io { what, source }
}

/// One node: where it lives, and its process while it runs.
struct Node {
    directory: PathBuf,
    client: String,
    peer: String,
    http: String,
    process: Option<Child>,
    was_started: bool,
}

/// A cluster of `holdfast serve` processes on loopback. Dropping it kills what runs.
pub struct Cluster {
    program: PathBuf,
    nodes: BTreeMap<u64, Node>,
    leaders: Vec<LeaderSeen>,
}

impl Cluster {
    /// Lays out a cluster under `directory` on free ports. Nothing runs yet.
    pub fn lay_out(program: PathBuf, directory: &Path, count: u64) -> Result<Cluster, ClusterError> {
        let ports = free_ports(3 * count as usize).map_err(io_error("free ports"))?;
        let mut nodes = BTreeMap::new();
        for (node, ports) in (1..=count).zip(ports.chunks(3)) {
            let at = |port: usize| format!("127.0.0.1:{}", ports[port]);
            let directory = directory.join(format!("node-{node}"));
            fs::create_dir_all(&directory).map_err(io_error(directory.display().to_string()))?;
            let node_at = Node {
                directory,
                client: at(0),
                peer: at(1),
                http: at(2),
                process: None,
                was_started: false,
            };
            nodes.insert(node, node_at);
        }
        let cluster = Cluster { program, nodes, leaders: Vec::new() };
        for node in cluster.nodes.keys() {
            let path = cluster.config_path(*node);
            fs::write(&path, cluster.config(*node)).map_err(io_error(path.display().to_string()))?;
        }
        Ok(cluster)
    }

    fn config_path(&self, node: u64) -> PathBuf {
        self.nodes[&node].directory.join("node.toml")
    }

    /// Where a node says what it applied.
    pub fn applied_path(&self, node: u64) -> PathBuf {
        self.nodes[&node].directory.join("applied.jsonl")
    }

    /// Where a node's messages go, over all of its lives.
    pub fn log_path(&self, node: u64) -> PathBuf {
        self.nodes[&node].directory.join("stderr.log")
    }

    fn config(&self, node: u64) -> String {
        let Node { directory, client, peer, http, .. } = &self.nodes[&node];
        let members: String = self
            .nodes
            .iter()
            .map(|(id, member)| {
                let Node { client, peer, http, .. } = member;
                format!(
                    "\n[[members]]\nid = {id}\npeer = \"{peer}\"\nclient = \"{client}\"\nhttp = \"{http}\"\n"
                )
            })
            .collect();
        // Small bounds, so that snapshots, purging and new segments happen within a minute.
        format!(
            "cluster_id = \"torment\"\nnode_id = {node}\ndata_dir = {data:?}\nlog_level = \"info\"\n\
             \n[client]\nlisten = \"{client}\"\n\n[peer]\nlisten = \"{peer}\"\n\n[http]\nlisten = \"{http}\"\n\
             \n[storage]\nsegment_bytes = 4194304\n\
             \n[snapshot]\ncommands = 20000\nentries_kept = 200\n{members}",
            data = directory.join("data"),
        )
    }

    /// The nodes' ids.
    pub fn ids(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    /// Where clients reach the nodes.
    pub fn endpoints(&self) -> Vec<String> {
        self.nodes.values().map(|node| node.client.clone()).collect()
    }

    /// Where clients reach one node.
    pub fn endpoint(&self, node: u64) -> &str {
        &self.nodes[&node].client
    }

    /// Whether the node's process runs, as far as was last seen.
    pub fn is_up(&self, node: u64) -> bool {
        self.nodes[&node].process.is_some()
    }

    /// Starts a node; the first time as a founder.
    pub fn start(&mut self, node: u64) -> Result<(), ClusterError> {
        let (config, applied, log) = (self.config_path(node), self.applied_path(node), self.log_path(node));
        let stderr = OpenOptions::new().create(true).append(true).open(&log);
        let stderr = stderr.map_err(io_error(log.display().to_string()))?;
        let seat = &self.nodes[&node];
        let mut command = Command::new(&self.program);
        command.arg("serve").arg("--config").arg(config).arg("--applied-log").arg(applied);
        // A node must not outlive the harness, however that ends.
        command.arg("--stop-with-stdin").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr);
        if !seat.was_started {
            command.arg("--bootstrap");
        }
        let process = command.spawn().map_err(io_error(self.program.display().to_string()))?;
        if let Some(seat) = self.nodes.get_mut(&node) {
            seat.process = Some(process);
            seat.was_started = true;
        }
        Ok(())
    }

    /// Kills a node (SIGKILL) and reaps it. Only a process that this cluster started.
    pub fn kill(&mut self, node: u64) -> Result<(), ClusterError> {
        let Some(mut process) = self.nodes.get_mut(&node).and_then(|seat| seat.process.take()) else {
            return Ok(());
        };
        process.kill().map_err(io_error(format!("kill node {node}")))?;
        process.wait().map(drop).map_err(io_error(format!("wait for node {node}")))
    }

    /// Asks a node to stop (SIGTERM) and waits for its end. Only a process that this cluster started.
    pub async fn stop(&mut self, node: u64, patience: Duration) -> Result<ExitStatus, ClusterError> {
        let Some(process) = self.nodes.get_mut(&node).and_then(|seat| seat.process.as_mut()) else {
            return Err(ClusterError::NotRunning(node));
        };
        // The process has not been waited for, so that the number is still its own.
        let sent = Command::new("kill").arg("-TERM").arg(process.id().to_string()).status();
        sent.map_err(io_error(format!("SIGTERM to node {node}")))?;
        let began = Instant::now();
        loop {
            if let Some(status) = process.try_wait().map_err(io_error(format!("wait for node {node}")))? {
                if let Some(seat) = self.nodes.get_mut(&node) {
                    seat.process = None;
                }
                return Ok(status);
            }
            if began.elapsed() > patience {
                return Err(ClusterError::TooLong("the end of a node that was asked to stop", patience));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Looks whether a node has ended by itself.
    pub fn check_alive(&mut self) -> Result<(), ClusterError> {
        for (node, seat) in &mut self.nodes {
            let Some(process) = &mut seat.process else { continue };
            let ended = process.try_wait().map_err(io_error(format!("look at node {node}")))?;
            if let Some(status) = ended {
                seat.process = None;
                let tail = tail_of(&seat.directory.join("stderr.log"), 30);
                return Err(ClusterError::Ended { node: *node, status: status.to_string(), tail });
            }
        }
        Ok(())
    }

    /// Everybody who was named as the leader of a term, by any node.
    pub fn leaders_seen(&self) -> &[LeaderSeen] {
        &self.leaders
    }

    /// Who leads, asked of the nodes that run.
    pub async fn leader(&mut self, client: &Client) -> Option<u64> {
        let mut newest: Option<(u64, u64)> = None;
        for seat in self.nodes.values() {
            if seat.process.is_none() {
                continue;
            }
            let asked = client.at(&seat.client).with_deadline(Duration::from_millis(500));
            let Ok(v1::ListMembersResponse { term, leader: Some(leader), .. }) = asked.members().await else {
                continue;
            };
            self.leaders.push(LeaderSeen { term, node: leader.node_id });
            // A node that died may still be named by one that has not noticed.
            let runs = self.nodes.get(&leader.node_id).is_some_and(|seat| seat.process.is_some());
            if runs && newest.is_none_or(|(newest, _)| term > newest) {
                newest = Some((term, leader.node_id));
            }
        }
        newest.map(|(_, leader)| leader)
    }

    /// Waits until somebody leads.
    pub async fn wait_for_leader(
        &mut self,
        client: &Client,
        patience: Duration,
    ) -> Result<u64, ClusterError> {
        let began = Instant::now();
        loop {
            self.check_alive()?;
            if let Some(leader) = self.leader(client).await {
                return Ok(leader);
            }
            if began.elapsed() > patience {
                return Err(ClusterError::TooLong("an election", patience));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in self.ids() {
            if let Err(error) = self.kill(node) {
                eprintln!("torment: {error}");
            }
        }
    }
}

/// The last lines of a file.
pub(super) fn tail_of(path: &Path, lines: usize) -> String {
    let Ok(file) = File::open(path) else { return String::new() };
    let Ok(text) = io::read_to_string(file) else { return String::new() };
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
