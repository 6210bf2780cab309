//! `holdfast serve`: one node.

use std::ffi::OsString;
use std::path::PathBuf;

use holdfast_node::config::{self, Layer, NodeConfig, Problem};
use holdfast_node::serve::{StartMode, StartOptions, asked_to_stop, serve};
use serde_json::json;
use tokio::sync::oneshot;
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Outcome};
use crate::settings::Settings;
use crate::stdin;

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
    /// Record every applied entry in this file: for programs that check a cluster from outside
    #[arg(long, hide = true, value_name = "FILE")]
    applied_log: Option<PathBuf>,
}

/// Checks, or runs until the node is told to stop. Blocks: a node brings its own runtimes.
pub fn run(settings: &Settings, args: Args) -> Outcome {
    let name = args
        .config
        .as_ref()
        .map_or_else(|| "the configuration".to_owned(), |path| path.display().to_string());
    let loaded = load(&args)?;
    if args.check {
        return check(settings, &name, &loaded);
    }
    let config = loaded.map_err(|problems| wrong(&name, &problems))?;
    log_to_stderr(&config)?;
    let mode = match (args.bootstrap, args.join) {
        (true, _) => StartMode::Bootstrap,
        (_, true) => StartMode::Join,
        (false, false) => StartMode::Normal,
    };
    let options = StartOptions { mode, applied_log: args.applied_log };
    let stdin_closed = if args.stop_with_stdin { Some(stdin::watch()?) } else { None };
    serve(&config, options, stopped(stdin_closed))
        .map_err(|fatal| Failure::failed(format!("node {}: {fatal}", config.node_id)))
}

fn log_to_stderr(config: &NodeConfig) -> Outcome {
    let filter = EnvFilter::try_new(&config.log_level)
        .map_err(|e| Failure::failed(format!("log_level: {:?} is no filter: {e}", config.log_level)))?;
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    subscriber.try_init().map_err(|e| Failure::failed(format!("cannot log: {e}")))
}

async fn stopped(stdin_closed: Option<oneshot::Receiver<()>>) {
    let stdin_closed = async {
        match stdin_closed {
            Some(wait) => drop(wait.await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stdin_closed => tracing::info!("standard input is closed, so the node stops"),
        asked = asked_to_stop() => match asked {
            Ok(signal) => tracing::info!(signal, "asked to stop"),
            Err(error) => {
                tracing::error!("no signals can be received, so the node runs until it is killed: {error}");
                std::future::pending().await
            }
        },
    }
}

fn load(args: &Args) -> Outcome<Result<NodeConfig, Vec<Problem>>> {
    let text = match &args.config {
        None => String::new(),
        Some(path) => std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read the configuration {}: {e}", path.display())))?,
    };
    let text_of =
        |name: OsString, value: OsString| Some((name.into_string().ok()?, value.into_string().ok()?));
    let env = std::env::vars_os().filter_map(|(name, value)| text_of(name, value));
    Ok(config::load(&text, env, args.set.iter().cloned()))
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
