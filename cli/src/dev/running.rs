//! A development cluster that serves: started, waited for, given its plan.

use std::time::{Duration, Instant};

use holdfast_proto::v1;
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::layout::{Layout, Wanted};
use crate::cluster::{Cluster, Effect};
use crate::commands::plan;
use crate::failure::{Failure, Outcome};

/// How long the nodes may take until they serve; a loaded machine and a slow disk need a while.
const SERVE_PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at whether they do.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Deadline of one call while we wait.
const CALL_DEADLINE: Duration = Duration::from_secs(5);

/// The running cluster.
pub struct Running {
    layout: Layout,
    /// The node processes.
    pub fleet: Fleet,
}

impl Running {
    /// Starts the nodes, waits until the cluster serves, and applies the plan.
    pub async fn start(wanted: &Wanted, document: Option<String>) -> Outcome<Running> {
        let mut layout = Layout::open(wanted)?;
        let mut fleet = Fleet::start(&layout.node_starts()?)?;
        let endpoints = layout.nodes.iter().map(|node| format!("http://{}", node.client())).collect();
        let cluster = Cluster::at(endpoints, CALL_DEADLINE);
        let served = tokio::select! {
            served = wait_until_it_serves(&layout, &cluster) => served,
            death = fleet.death() => Err(Failure::failed(format!("the cluster did not start: {}", death.describe()))),
            () = super::asked_to_stop() => Err(Failure::failed("stopped before the cluster served")),
        };
        let ready = match served {
            Ok(()) => layout.set_founded(),
            Err(failure) => Err(failure),
        };
        let ready = match (ready, document) {
            (Ok(()), Some(document)) => plan::publish(&cluster, document, None).await.map(drop),
            (ready, _) => ready,
        };
        if let Err(failure) = ready {
            // Its log lies in a directory that may go away with us: what it says is in the failure already.
            fleet.stop().await;
            return Err(failure);
        }
        Ok(Running { layout, fleet })
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
        self.fleet.stop().await;
    }
}

/// Serving means: every node answers and knows the leader, and a linearizable read goes through.
async fn wait_until_it_serves(layout: &Layout, cluster: &Cluster) -> Outcome {
    let until = Instant::now() + SERVE_PATIENCE;
    loop {
        let problem = match look(layout, cluster).await {
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

async fn look(layout: &Layout, cluster: &Cluster) -> Result<(), String> {
    for node in &layout.nodes {
        let what = format!("node {}", node.id);
        let listed = cluster
            .ask_member(&what, &node.client(), async |call| {
                let request = call.request(v1::ListMembersRequest {});
                v1::members_client::MembersClient::new(call.channel).list(request).await
            })
            .await
            .map_err(|failure| failure.problem)?;
        if listed.leader.is_none() {
            return Err(format!("{what} knows of no leader"));
        }
    }
    cluster
        .ask("a read with quorum", Effect::Reads, async |call| {
            let request = call.request(v1::ListPlansRequest { stale: false });
            v1::plans_client::PlansClient::new(call.channel).list(request).await
        })
        .await
        .map(drop)
        .map_err(|failure| failure.problem)
}
