//! `holdfast dev`: a whole cluster on this machine, until it is told to stop.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::plan;
use crate::dev::{self, Running, StopSignal, Wanted};
use crate::failure::{Failure, Outcome};
use crate::output::{Rows, print};
use crate::settings::Settings;

/// The sample plan: three levels, at each of them a rate and a total.
const SAMPLE_PLAN: &str = include_str!("../../../scripts/plans/three-level.yaml");

/// Options of `dev`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many nodes [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: Option<u16>,
    /// Fixed ports: node i gets P+i for clients, P+20+i for peers, P+40+i for HTTP [default: free ports]
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1024..=65475))]
    port_base: Option<u16>,
    /// Keep the data here and go on with it next time [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The plan to apply [default: the three-level sample]
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// No demo traffic
    #[arg(long)]
    no_traffic: bool,
    /// Stop when standard input closes: for programs that must not leave a cluster behind
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// Runs until it is told to stop.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let document = match &args.plan {
        None => SAMPLE_PLAN.to_owned(),
        Some(file) => {
            let document = plan::read_document(file)?;
            let problems = plan::problems(&document);
            if !problems.is_empty() {
                return Err(plan::wrong_document(file, &problems));
            }
            document
        }
    };
    let wanted = Wanted { data: args.data, nodes: args.nodes, port_base: args.port_base };
    eprintln!("holdfast dev: starting the nodes …");
    let mut stop = StopSignal::listen(args.stop_with_stdin)?;
    let mut running = Running::start(&wanted, document, &mut stop).await?;
    let outcome = serve(settings, &mut running, &mut stop, args.no_traffic).await;
    eprintln!("holdfast dev: stopping …");
    running.stop().await;
    outcome
}

async fn serve(
    settings: &Settings,
    running: &mut Running,
    stop: &mut StopSignal,
    no_traffic: bool,
) -> Outcome {
    if settings.output.is_json() {
        print(&format!("{}\n", ready_line(running)))?;
    } else {
        print(&welcome(running))?;
    }
    let traffic = !no_traffic && !settings.output.is_json();
    let demo = dev::demo(running.client.clone(), traffic);
    tokio::pin!(demo);
    loop {
        tokio::select! {
            () = stop.asked() => return Ok(()),
            failure = &mut demo => return Err(failure),
            death = running.fleet.death() => {
                eprintln!("holdfast dev: {}", death.describe());
                // Programs that drive us kill nodes on purpose and may start them again themselves.
                if !settings.output.is_json() && !running.fleet.is_alive() {
                    return Err(Failure::failed("no node is left"));
                }
            }
        }
    }
}

fn ready_line(running: &Running) -> Value {
    json!({"ready": true, "nodes": running.nodes_document(), "gateway": null, "upstream": null})
}

fn welcome(running: &Running) -> String {
    let mut rows = Rows::new(["node", "client", "peer", "http", "pid", "data"]);
    for row in running.node_rows() {
        rows.add(row);
    }
    // All of them, so that what is tried goes on working when one of the nodes is killed.
    let endpoints = running.client_addresses().join(",");
    let holdfast = invoked_as();
    format!(
        "\n{}\nTry in another terminal:\n\
         \x20 export HOLDFAST_ENDPOINTS={endpoints}\n\
         \x20 {holdfast} quota demo --user ada\n\
         \x20 {holdfast} reserve acme --user ada --route chat.generate --amount tokens=1200\n\
         \x20 {holdfast} audit\n\nCtrl-C stops everything.\n\n",
        rows.text()
    )
}

/// The path that starts this very program from the same folder.
fn invoked_as() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "holdfast".into());
    let here = std::env::current_dir().ok();
    let relative = here.and_then(|here| program.strip_prefix(here).ok().map(PathBuf::from));
    relative.unwrap_or(program).display().to_string()
}
