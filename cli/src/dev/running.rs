//! A development cluster that serves: started, waited for, given its plan.

use std::time::{Duration, Instant};

use holdfast_client::Client;
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::layout::{Layout, NodePlace, Wanted};
use super::stop::StopSignal;
use crate::bench::Process;
use crate::calls;
use crate::commands::plan;
use crate::failure::{Failure, Outcome};

/// How long the nodes may take until they serve; a loaded machine and a slow disk need a while.
const SERVE_PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at whether they do.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Deadline of one look at one node while we wait.
const LOOK_DEADLINE: Duration = Duration::from_millis(500);
/// Deadline of a call on the cluster: an election may come in between.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// The running cluster.
pub struct Running {
    layout: Layout,
    /// The node processes.
    pub fleet: Fleet,
    /// A client of it.
    pub client: Client,
}

impl Running {
    /// Starts the nodes, waits until the cluster serves, and applies the plan.
    pub async fn start(wanted: &Wanted, document: String, stop: &mut StopSignal) -> Outcome<Running> {
        let mut layout = Layout::open(wanted)?;
        let mut fleet = Fleet::start(&layout.node_starts()?)?;
        let client = Client::builder(layout.nodes.iter().map(|node| node.client()))
            .deadline(CALL_DEADLINE)
            .connect_lazy()
            .map_err(|error| calls::failure("the new cluster", error))?;
        let served = tokio::select! {
            served = wait_until_it_serves(&layout, &client) => served,
            death = fleet.death() => Err(Failure::failed(format!("the cluster did not start: {}", death.describe()))),
            () = stop.asked() => Err(Failure::failed("stopped before the cluster served")),
        };
        let ready = match served.and_then(|()| layout.set_founded()) {
            Ok(()) => plan::publish(&client, &document, None, false).await.map(drop),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ready {
            // Its log lies in a directory that may go away with us: what it says is in the failure already.
            fleet.stop().await;
            return Err(failure);
        }
        Ok(Running { layout, fleet, client })
    }

    /// Client addresses, by node.
    pub fn client_addresses(&self) -> Vec<String> {
        self.layout.nodes.iter().map(|node| node.client()).collect()
    }

    /// The nodes with their process ids, as other programs read them.
    pub fn nodes_document(&self) -> Vec<Value> {
        self.layout
            .nodes
            .iter()
            .zip(self.fleet.pids())
            .map(|(node, pid)| {
                json!({
                    "id": node.id,
                    "pid": pid,
                    "client": node.client(),
                    "peer": node.peer(),
                    "http": node.http(),
                    "data": node.data,
                })
            })
            .collect()
    }

    /// The node processes by name.
    pub fn processes(&self) -> Vec<Process> {
        let named =
            |(node, pid): (&NodePlace, &u32)| Process { name: format!("node-{}", node.id), pid: *pid };
        self.layout.nodes.iter().zip(self.fleet.pids()).map(named).collect()
    }

    /// Rows for people: id, client, peer, http, process, data.
    pub fn node_rows(&self) -> Vec<[String; 6]> {
        self.layout
            .nodes
            .iter()
            .zip(self.fleet.pids())
            .map(|(node, pid)| {
                let data = node.data.display().to_string();
                [node.id.to_string(), node.client(), node.peer(), node.http(), pid.to_string(), data]
            })
            .collect()
    }

    /// Stops every node in good order.
    pub async fn stop(self) {
        self.client.close().await;
        self.fleet.stop().await;
    }
}

/// Serving means: every node answers and knows the leader, and a linearizable read goes through.
async fn wait_until_it_serves(layout: &Layout, client: &Client) -> Outcome {
    let until = Instant::now() + SERVE_PATIENCE;
    loop {
        let problem = match look(layout, client).await {
            Ok(()) => return Ok(()),
            Err(problem) => problem,
        };
        if Instant::now() >= until {
            return Err(Failure::failed(format!(
                "the cluster does not serve after {} s: {problem}",
                SERVE_PATIENCE.as_secs()
            )));
        }
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}

async fn look(layout: &Layout, client: &Client) -> Result<(), String> {
    for node in &layout.nodes {
        let own = calls::at_member(client, &node.client(), LOOK_DEADLINE);
        let listed = own.members().await.map_err(|error| format!("node {}: {error}", node.id))?;
        if listed.leader.is_none() {
            return Err(format!("node {} knows of no leader", node.id));
        }
    }
    let read = client.with_deadline(LOOK_DEADLINE).plans().await;
    read.map(drop).map_err(|error| format!("a read with quorum: {error}"))
}
