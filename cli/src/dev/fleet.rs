//! The node processes: started, watched, stopped, and never outliving this one.
//!
//! Each child holds the reading end of a pipe whose writing end is ours. It stops in good order when that
//! pipe closes, which the kernel sees to however this process ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::failure::{Failure, Outcome};

/// How long a child may take to stop in good order before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Lines of a dead node's log that are shown.
const LOG_LINES_SHOWN: usize = 5;

/// One node to start.
#[derive(Clone, Debug)]
pub struct NodeStart {
    /// Its id.
    pub id: u64,
    /// Its configuration file.
    pub config: PathBuf,
    /// Where its output goes.
    pub log: PathBuf,
    /// Whether it founds the cluster.
    pub bootstrap: bool,
}

/// A child ended without being asked to.
#[derive(Debug)]
pub struct Death {
    /// Which node.
    pub id: u64,
    /// How it ended.
    pub status: std::io::Result<ExitStatus>,
    /// Its log.
    pub log: PathBuf,
}

impl Death {
    /// What happened, with the end of the node's log.
    pub fn describe(&self) -> String {
        let how = match &self.status {
            Ok(status) => format!("ended: {status}"),
            Err(e) => format!("cannot be waited for: {e}"),
        };
        let tail = log_tail(&self.log);
        let log = self.log.display();
        if tail.is_empty() {
            format!("node {} {how}; its log is empty ({log})", self.id)
        } else {
            format!("node {} {how}; the end of its log ({log}):\n{tail}", self.id)
        }
    }
}

/// The running processes.
pub struct Fleet {
    pids: Vec<u32>,
    stop: watch::Sender<bool>,
    deaths: mpsc::Receiver<Death>,
    watchers: JoinSet<()>,
}

impl Fleet {
    /// Starts every node.
    pub fn start(nodes: &[NodeStart]) -> Outcome<Fleet> {
        let (stop, _) = watch::channel(false);
        let (report, deaths) = mpsc::channel(nodes.len().max(1));
        let mut fleet = Fleet { pids: Vec::new(), stop, deaths, watchers: JoinSet::new() };
        for node in nodes {
            let child = spawn(node)?;
            fleet.pids.push(child.id().unwrap_or_default());
            let (id, log) = (node.id, node.log.clone());
            fleet.watchers.spawn(watch_child(child, id, log, fleet.stop.subscribe(), report.clone()));
        }
        Ok(fleet)
    }

    /// Process ids in the nodes' order.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// The next child that ends by itself; never returns once all have.
    pub async fn death(&mut self) -> Death {
        match self.deaths.recv().await {
            Some(death) => death,
            None => std::future::pending().await,
        }
    }

    /// Whether any child still runs.
    pub fn is_alive(&mut self) -> bool {
        while self.watchers.try_join_next().is_some() {}
        !self.watchers.is_empty()
    }

    /// Stops every child in good order and waits for it.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        while self.watchers.join_next().await.is_some() {}
    }
}

fn spawn(node: &NodeStart) -> Outcome<Child> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::failed(format!("cannot tell where this program lies, to start nodes: {e}")))?;
    let log =
        File::options().create(true).append(true).open(&node.log).map_err(|e| {
            Failure::failed(format!("cannot write the node's log {}: {e}", node.log.display()))
        })?;
    let errors = log
        .try_clone()
        .map_err(|e| Failure::failed(format!("cannot write the node's log {}: {e}", node.log.display())))?;
    let mut command = Command::new(&program);
    command.arg("serve").arg("--config").arg(&node.config).arg("--stop-with-stdin");
    if node.bootstrap {
        command.arg("--bootstrap");
    }
    // What is set for this shell's own commands is not meant for the nodes.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HOLDFAST_")) {
        command.env_remove(name);
    }
    command
        .stdin(Stdio::piped())
        .stdout(log)
        .stderr(errors)
        // Ctrl-C in the terminal is for us alone: we stop the children in good order.
        .process_group(0)
        .kill_on_drop(true);
    command.spawn().map_err(|e| {
        Failure::failed(format!("cannot start node {} ({} serve): {e}", node.id, program.display()))
    })
}

async fn watch_child(
    mut child: Child,
    id: u64,
    log: PathBuf,
    mut stop: watch::Receiver<bool>,
    report: mpsc::Sender<Death>,
) {
    // `wait` closes the child's standard input first, which would stop it: keep that end here.
    let pipe = child.stdin.take();
    let ended = tokio::select! {
        status = child.wait() => Some(status),
        () = asked(&mut stop) => None,
    };
    if let Some(status) = ended {
        drop(report.send(Death { id, status, log }).await);
        return;
    }
    drop(pipe);
    if tokio::time::timeout(STOP_PATIENCE, child.wait()).await.is_err() {
        drop(child.kill().await);
    }
}

/// Asked to stop, or nobody is left who could ask.
async fn asked(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

fn log_tail(path: &Path) -> String {
    let text =
        std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LOG_LINES_SHOWN);
    lines[from..].iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_the_end_of_a_log_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, (1..=9).map(|i| format!("line {i}\n\n")).collect::<String>()).unwrap();
        let tail = log_tail(&path);
        assert_eq!(tail.lines().count(), LOG_LINES_SHOWN);
        assert!(tail.starts_with("  line 5") && tail.ends_with("  line 9"), "{tail}");
        assert_eq!(log_tail(&folder.path().join("absent")), "");
    }
}
