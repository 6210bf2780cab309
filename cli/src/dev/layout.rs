//! Where a development cluster keeps its files and which ports it has, over restarts.

use std::path::{Path, PathBuf};

use holdfast_node::config::{Listen, Member, NodeConfig};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::fleet::NodeStart;
use super::ports::{self, NodePorts};
use crate::failure::{Failure, Outcome};

const FORMAT: u32 = 1;
const FILE: &str = "dev.json";
const CLUSTER_ID: &str = "dev";

/// What is kept beside the nodes' data, so that the same cluster comes back under the same addresses.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    format: u32,
    /// Whether the cluster was founded: it must never be founded twice.
    founded: bool,
    nodes: Vec<NodePorts>,
}

/// One node's place.
#[derive(Clone, Debug)]
pub struct NodePlace {
    /// Its id, from 1.
    pub id: u64,
    /// Its ports on loopback.
    pub ports: NodePorts,
    /// Its data directory.
    pub data: PathBuf,
}

impl NodePlace {
    /// Where clients call.
    pub fn client(&self) -> String {
        loopback(self.ports.client)
    }

    /// Where the other members call.
    pub fn peer(&self) -> String {
        loopback(self.ports.peer)
    }

    /// Probes, metrics, console.
    pub fn http(&self) -> String {
        loopback(self.ports.http)
    }
}

fn loopback(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// The files of one development cluster.
#[derive(Debug)]
pub struct Layout {
    root: PathBuf,
    /// Removed with everything in it when this goes.
    _temporary: Option<TempDir>,
    founded: bool,
    /// The nodes, by id.
    pub nodes: Vec<NodePlace>,
}

/// What was asked for on the command line.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Keep the data here.
    pub data: Option<PathBuf>,
    /// How many nodes; `None`: three, or as many as there are.
    pub nodes: Option<u16>,
    /// Fixed ports.
    pub port_base: Option<u16>,
}

/// Nodes of a new cluster when no number is given.
const NODES_DEFAULT: u16 = 3;

impl Layout {
    /// Reopens what is there, or makes a new one.
    pub fn open(wanted: &Wanted) -> Outcome<Layout> {
        let (root, temporary) = match &wanted.data {
            Some(root) => {
                std::fs::create_dir_all(root).map_err(|e| cannot("make", root, &e))?;
                // The nodes run elsewhere than we may: they need the whole path.
                (root.canonicalize().map_err(|e| cannot("find", root, &e))?, None)
            }
            None => {
                let folder = tempfile::Builder::new()
                    .prefix("holdfast-dev-")
                    .tempdir()
                    .map_err(|e| Failure::failed(format!("cannot make a temporary directory: {e}")))?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let kept = load(&root)?;
        let ports = match &kept {
            Some(kept) => reopened(&root, kept, wanted)?,
            None => new_ports(&root, wanted)?,
        };
        let place = |(i, ports)| {
            let id = i as u64 + 1;
            NodePlace { id, ports, data: root.join(format!("node-{id}")) }
        };
        let nodes = ports.into_iter().enumerate().map(place).collect();
        let founded = kept.is_some_and(|kept| kept.founded);
        let layout = Layout { root, _temporary: temporary, founded, nodes };
        layout.save()?;
        Ok(layout)
    }

    /// Notes that the cluster serves, so that it is never founded again.
    pub fn set_founded(&mut self) -> Outcome {
        self.founded = true;
        self.save()
    }

    /// Writes every node's configuration and says how to start it.
    pub fn node_starts(&self) -> Outcome<Vec<NodeStart>> {
        self.nodes.iter().map(|node| self.node_start(node)).collect()
    }

    fn node_start(&self, node: &NodePlace) -> Outcome<NodeStart> {
        let listen = |address: String| Listen { listen: address, advertise: String::new() };
        let config = NodeConfig {
            cluster_id: CLUSTER_ID.into(),
            node_id: node.id,
            data_dir: node.data.clone(),
            client: listen(node.client()),
            peer: listen(node.peer()),
            http: listen(node.http()),
            members: self.nodes.iter().map(member).collect(),
            ..NodeConfig::default()
        };
        let path = self.root.join(format!("node-{}.toml", node.id));
        let text = toml::to_string(&config).map_err(|e| {
            Failure::failed(format!("cannot write the configuration of node {}: {e}", node.id))
        })?;
        write_whole(&path, &text)?;
        Ok(NodeStart {
            id: node.id,
            config: path,
            log: self.root.join(format!("node-{}.log", node.id)),
            bootstrap: !self.founded,
        })
    }

    fn save(&self) -> Outcome {
        let nodes = self.nodes.iter().map(|node| node.ports).collect();
        let kept = Kept { format: FORMAT, founded: self.founded, nodes };
        let text = serde_json::to_string_pretty(&kept)
            .map_err(|e| Failure::failed(format!("cannot write {FILE}: {e}")))?;
        write_whole(&self.root.join(FILE), &text)
    }
}

fn member(node: &NodePlace) -> Member {
    Member { id: node.id, peer: node.peer(), client: node.client(), http: node.http() }
}

fn load(root: &Path) -> Outcome<Option<Kept>> {
    let path = root.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot("read", &path, &e)),
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|e| {
        Failure::failed(format!("{} is damaged: {e}", path.display())).advise(
            "Use another --data directory, or start the nodes by hand with `holdfast serve --config`.",
        )
    })?;
    if kept.format != FORMAT {
        return Err(Failure::failed(format!(
            "{} has format {}; this program knows format {FORMAT} only",
            path.display(),
            kept.format
        )));
    }
    Ok(Some(kept))
}

/// The ports are part of the membership, so they stay what they were.
fn reopened(root: &Path, kept: &Kept, wanted: &Wanted) -> Outcome<Vec<NodePorts>> {
    let nodes = kept.nodes.len() as u16;
    if wanted.nodes.is_some_and(|wanted| wanted != nodes) {
        return Err(Failure::usage(format!("{} holds a cluster of {nodes} nodes", root.display()))
            .advise("Leave out --nodes, or use another --data directory."));
    }
    if let Some(base) = wanted.port_base
        && ports::from_base(base, nodes)? != kept.nodes
    {
        return Err(Failure::usage(format!("{} holds a cluster with other ports", root.display()))
            .advise("Leave out --port-base, or use another --data directory."));
    }
    ports::check_free(
        &kept.nodes,
        "The cluster in that --data directory has this port; is it running already?",
    )?;
    Ok(kept.nodes.clone())
}

fn new_ports(root: &Path, wanted: &Wanted) -> Outcome<Vec<NodePorts>> {
    let strange = std::fs::read_dir(root).map_err(|e| cannot("read", root, &e))?.next().is_some();
    if strange {
        return Err(Failure::usage(format!(
            "{} is not empty and was not made by `holdfast dev`",
            root.display()
        ))
        .advise("Use an empty or a new --data directory."));
    }
    let nodes = wanted.nodes.unwrap_or(NODES_DEFAULT);
    match wanted.port_base {
        None => ports::free(nodes),
        Some(base) => {
            let ports = ports::from_base(base, nodes)?;
            ports::check_free(&ports, "Use another --port-base, or none to take free ports.")?;
            Ok(ports)
        }
    }
}

/// Whole or not at all: a half-written file would look like damage at the next start.
fn write_whole(path: &Path, text: &str) -> Outcome {
    let next = path.with_extension("next");
    std::fs::write(&next, text)
        .and_then(|()| std::fs::rename(&next, path))
        .map_err(|e| cannot("write", path, &e))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn wanted(root: &Path) -> Wanted {
        Wanted { data: Some(root.join("data")), ..Wanted::default() }
    }

    #[test]
    fn a_kept_cluster_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Layout::open(&wanted(folder.path())).unwrap();
        assert!(first.node_starts().unwrap().iter().all(|start| start.bootstrap));
        first.set_founded().unwrap();

        let second = Layout::open(&wanted(folder.path())).unwrap();
        assert!(second.node_starts().unwrap().iter().all(|start| !start.bootstrap));
        let ports = |layout: &Layout| layout.nodes.iter().map(|node| node.ports).collect::<Vec<_>>();
        assert_eq!(ports(&first), ports(&second));
    }

    #[test]
    fn written_configurations_are_valid() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::open(&Wanted { nodes: Some(5), ..wanted(folder.path()) }).unwrap();
        for start in layout.node_starts().unwrap() {
            let text = std::fs::read_to_string(&start.config).unwrap();
            let config = holdfast_node::config::load(&text, [], []).unwrap();
            assert_eq!((config.node_id, config.members.len()), (start.id, 5));
        }
    }

    #[test]
    fn another_shape_or_a_strange_directory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        Layout::open(&wanted(folder.path())).unwrap();
        let other = Wanted { nodes: Some(5), ..wanted(folder.path()) };
        assert!(Layout::open(&other).unwrap_err().problem.contains("3 nodes"));

        std::fs::create_dir(folder.path().join("strange")).unwrap();
        std::fs::write(folder.path().join("strange").join("file"), "x").unwrap();
        let strange = Wanted { data: Some(folder.path().join("strange")), ..Wanted::default() };
        assert!(Layout::open(&strange).unwrap_err().problem.contains("not empty"));
    }
}
