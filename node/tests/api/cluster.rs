//! Nodes in this process, on loopback ports that the system picks.

use std::time::{Duration, Instant};

use holdfast_node::config::{Member, NodeConfig};
use holdfast_node::serve::{Ports, Running, StartMode};
use holdfast_proto::v1;
use tonic::transport::Channel;

/// How long anything here may take before the test fails: elections on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster of nodes with a directory each.
pub struct Cluster {
    pub nodes: Vec<Option<Running>>,
    pub configs: Vec<NodeConfig>,
    _directory: tempfile::TempDir,
}

/// A configuration with free ports and short times.
pub fn config(node_id: u64, directory: &std::path::Path) -> NodeConfig {
    let mut config = NodeConfig {
        cluster_id: "test".into(),
        node_id,
        data_dir: directory.join(format!("node-{node_id}")),
        ..NodeConfig::default()
    };
    for port in [&mut config.client, &mut config.peer, &mut config.http] {
        port.listen = "127.0.0.1:0".into();
    }
    config.history.enabled = false;
    config.raft.heartbeat_ms = 50;
    config.raft.election_ms_min = 200;
    config.raft.election_ms_max = 400;
    config
}

impl Cluster {
    /// Founds a cluster of `count` nodes. `adjust` may change every node's configuration.
    pub fn found(count: u64, adjust: impl Fn(&mut NodeConfig)) -> Cluster {
        let directory = tempfile::tempdir().unwrap();
        let mut configs: Vec<_> = (1..=count).map(|id| config(id, directory.path())).collect();
        let ports: Vec<_> = configs.iter().map(|config| Ports::bind(config).unwrap()).collect();
        let member = |(id, ports): (u64, &Ports)| {
            let at = ports.addresses();
            Member { id, peer: at.peer.clone(), client: at.client.clone(), http: at.http.clone() }
        };
        let members: Vec<_> = (1..=count).zip(&ports).map(member).collect();
        for (config, at) in configs.iter_mut().zip(&members) {
            config.members.clone_from(&members);
            config.client.listen.clone_from(&at.client);
            config.peer.listen.clone_from(&at.peer);
            config.http.listen.clone_from(&at.http);
            adjust(config);
        }
        let start = |(config, ports): (&NodeConfig, Ports)| {
            Some(Running::start(config, ports, StartMode::Bootstrap).unwrap())
        };
        let nodes = apart(|| configs.iter().zip(ports).map(start).collect());
        Cluster { nodes, configs, _directory: directory }
    }

    /// Stops one node and waits for its end.
    pub fn stop(&mut self, i: usize) {
        if let Some(node) = self.nodes[i].take() {
            apart(|| node.stop().unwrap());
        }
    }

    /// Stops several nodes at the same time.
    pub fn stop_all(&mut self, which: &[usize]) {
        std::thread::scope(|scope| {
            for i in which {
                if let Some(node) = self.nodes[*i].take() {
                    scope.spawn(|| node.stop().unwrap());
                }
            }
        });
    }

    /// Starts a stopped node again on its directory and ports.
    pub fn start(&mut self, i: usize) {
        let config = &self.configs[i];
        let ports = Ports::bind(config).unwrap();
        self.nodes[i] = Some(apart(|| Running::start(config, ports, StartMode::Normal).unwrap()));
    }

    /// A connection to one node.
    pub fn channel(&self, i: usize) -> Channel {
        let address = &self.configs[i].client.listen;
        let endpoint = Channel::from_shared(format!("http://{address}")).unwrap();
        endpoint.connect_lazy()
    }

    /// The node that leads, once there is one that all running nodes agree on.
    pub async fn leader(&self) -> usize {
        eventually("every running node knows the same leader", async || {
            let mut seen = Vec::new();
            for i in (0..self.nodes.len()).filter(|i| self.nodes[*i].is_some()) {
                let mut members = v1::members_client::MembersClient::new(self.channel(i));
                let list = members.list(v1::ListMembersRequest {}).await.ok()?.into_inner();
                seen.push(list.leader.filter(|leader| leader.node_id != 0)?.node_id);
            }
            let first = *seen.first()?;
            let at = usize::try_from(first).ok()? - 1;
            (seen.iter().all(|id| *id == first) && self.nodes[at].is_some()).then_some(at)
        })
        .await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once: one after the other, the last ones would look for a quorum to hand over to.
        std::thread::scope(|scope| {
            for node in self.nodes.iter_mut().filter_map(Option::take) {
                scope.spawn(|| node.stop());
            }
        });
    }
}

/// Runs what blocks on a thread of its own: a test's own thread drives a runtime.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap()
}

/// Tries until `probe` gives something; panics with `what` when that takes too long.
pub async fn eventually<T>(what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < give_up, "gave up waiting until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
