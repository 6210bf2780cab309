//! `holdfast serve`: one node.

use std::path::PathBuf;

use holdfast_node::config::{self, Layer, NodeConfig, Problem};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::settings::Settings;

/// Options of `serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The node's configuration; every key can also be given as HOLDFAST_… in the environment
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A value over the file's and the environment's, for example raft.heartbeat_ms=50; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = layer)]
    set: Vec<Layer>,
    /// Check the configuration, name every problem, and end
    #[arg(long)]
    check: bool,
    /// Found a new cluster with the configured members; to be given once in a cluster's life, to each of them
    #[arg(long, conflicts_with = "join")]
    bootstrap: bool,
    /// Join a running cluster that lists this node as a member, with an empty data directory
    #[arg(long)]
    join: bool,
    /// Stop in good order when standard input closes: for programs that start nodes and must not leave them behind
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// Checks, or runs until the node is told to stop.
pub async fn run(settings: &Settings, args: Args) -> Outcome {
    let name = args
        .config
        .as_ref()
        .map_or_else(|| "the configuration".to_owned(), |path| path.display().to_string());
    let loaded = load(&args)?;
    if args.check {
        return check(settings, &name, &loaded);
    }
    let config = loaded.map_err(|problems| wrong(&name, &problems))?;
    drop((config, args.bootstrap, args.join, args.stop_with_stdin));
    Err(Failure::failed("this build cannot run a node yet"))
}

fn load(args: &Args) -> Outcome<Result<NodeConfig, Vec<Problem>>> {
    let text = match &args.config {
        None => String::new(),
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read the configuration {}: {e}", path.display())))?,
    };
    Ok(config::load(&text, |name| std::env::var(name).ok(), args.set.iter().cloned()))
}

fn check(settings: &Settings, name: &str, loaded: &Result<NodeConfig, Vec<Problem>>) -> Outcome {
    let problems: &[Problem] = loaded.as_ref().err().map_or(&[], Vec::as_slice);
    let shown: Vec<_> =
        problems.iter().map(|problem| json!({"key": problem.key, "problem": problem.problem})).collect();
    let document = json!({"ok": problems.is_empty(), "problems": shown});
    if settings.output.is_json() || problems.is_empty() {
        settings.output.show(&document, || format!("{name}: this configuration is fine\n"))?;
    }
    if problems.is_empty() { Ok(()) } else { Err(wrong(name, problems)) }
}

fn wrong(name: &str, problems: &[Problem]) -> Failure {
    let count =
        if problems.len() == 1 { "1 problem".to_owned() } else { format!("{} problems", problems.len()) };
    let lines: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    Failure::failed(format!("{name} has {count}:{}", lines.concat()))
}

fn layer(text: &str) -> Result<Layer, String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not KEY=VALUE"))?;
    Ok(Layer { source: "--set".into(), key: key.into(), text: value.into() })
}
