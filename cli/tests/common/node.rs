//! One real `holdfast serve` process, the only member of its cluster.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdfast_client::Client;

use super::{Answer, program};

/// Longest that anything is waited for: a loaded machine takes seconds for what takes milliseconds.
pub const SOON: Duration = Duration::from_secs(60);

/// A node's configuration and its data directory, in a folder of the test.
pub struct Site {
    pub data: PathBuf,
    config: PathBuf,
}

impl Site {
    /// `more` is TOML after the keys that every node here has: whole tables, or nothing.
    pub fn new(folder: &Path, more: &str) -> Site {
        let (data, config) = (folder.join("data"), folder.join("node.toml"));
        let text = format!(
            "cluster_id = \"test\"\nnode_id = 1\ndata_dir = {data:?}\n\
             client = {{ listen = \"127.0.0.1:0\", advertise = \"\" }}\n\
             peer = {{ listen = \"127.0.0.1:0\", advertise = \"\" }}\n\
             http = {{ listen = \"127.0.0.1:0\", advertise = \"\" }}\n\
             raft = {{ heartbeat_ms = 50, election_ms_min = 200, election_ms_max = 400, clock_bound_ms = 500 }}\n\
             {more}"
        );
        std::fs::write(&config, text).unwrap();
        Site { data, config }
    }

    /// The arguments of `serve`.
    pub fn args(&self, more: &[&str]) -> Vec<String> {
        let config = self.config.display().to_string();
        let own = ["serve", "--config", &config, "--stop-with-stdin"];
        own.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    }

    /// Starts the node and waits until it serves.
    pub fn start(&self, more: &[&str]) -> Node {
        let mut command = program();
        command.args(self.args(more));
        Node::start(command)
    }

    /// Runs `serve` where it must not start, and gives what it ended with.
    pub fn refused(&self, more: &[&str]) -> Answer {
        let mut command = program();
        command.args(self.args(more));
        refused(command)
    }
}

/// Runs `serve` where it must not go on by itself.
pub fn refused(command: Command) -> Answer {
    Node::spawn(command).ended()
}

/// A running node; it stops when this is dropped or this process ends.
pub struct Node {
    child: Child,
    stdin: Option<ChildStdin>,
    said: String,
    lines: Receiver<String>,
    reading: Option<JoinHandle<()>>,
    client: String,
}

impl Node {
    /// Starts what runs `serve --stop-with-stdin`, and waits until it serves.
    pub fn start(command: Command) -> Node {
        let mut node = Node::spawn(command);
        node.client = node.wait_line("serving", |line| {
            let (_, rest) = line.split_once(" serving ")?.1.split_once("client=\"")?;
            rest.split_once('"').map(|(client, _)| client.to_owned())
        });
        node
    }

    fn spawn(mut command: Command) -> Node {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take().unwrap());
        let (sender, lines) = channel();
        let reading = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let (said, client) = (String::new(), String::new());
        Node { child, stdin, said, lines, reading: Some(reading), client }
    }

    /// Waits for a line on standard error.
    fn wait_line<T>(&mut self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + SOON;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{what} was not said in time, or the node has ended:\n{}", self.said)
            };
            self.said.push_str(&line);
            self.said.push('\n');
            if let Some(found) = find(&line) {
                return found;
            }
        }
    }

    /// Runs the program against this node, with JSON as its output.
    pub fn ask(&self, args: &[&str]) -> Answer {
        Answer::of(self.run(args))
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = program();
        command.args(["--endpoints", &self.client, "--json"]).args(args).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// A client of this node, on a runtime of its own.
    pub fn with_client<T>(&self, run: impl AsyncFnOnce(Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::connect([self.client.as_str()]).await.unwrap();
            let result = run(client.clone()).await;
            client.close().await;
            result
        })
    }

    /// Publishes a plan, by way of a file in a folder of the test.
    pub fn publish(&self, folder: &Path, plan: &str) {
        let file = folder.join("plan.yaml");
        std::fs::write(&file, plan).unwrap();
        let applied = self.ask(&["plan", "apply", &file.display().to_string()]);
        assert_eq!(applied.code, 0, "{}", applied.stderr);
    }

    /// Ends it the hard way.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) -> (ExitStatus, String) {
        drop(self.stdin.take());
        self.wait()
    }

    /// As [`Node::wait`], as an answer of the program.
    pub fn ended(mut self) -> Answer {
        let stdout = self.child.stdout.take().unwrap();
        let (status, stderr) = self.wait();
        let stdout = std::io::read_to_string(stdout).unwrap();
        Answer { code: status.code().unwrap_or_else(|| panic!("{status}: {stderr}")), stdout, stderr }
    }

    /// Waits until it has ended by itself. Gives how, and all that it said.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + SOON;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            // Its end closes standard error, so this wakes then.
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(Duration::from_millis(50))) {
                Ok(line) => self.said.extend([line.as_str(), "\n"]),
                Err(_) => assert!(Instant::now() < deadline, "the node has not ended:\n{}", self.said),
            }
        };
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        self.said.extend(self.lines.try_iter().flat_map(|line| [line, "\n".into()]));
        (status, std::mem::take(&mut self.said))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().ok();
    }
}

/// Asks until the answer is as wanted; panics with the last answer if that is not soon.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match ask() {
            Ok(found) => return found,
            Err(last) => assert!(Instant::now() < deadline, "{what}: {last}"),
        }
    }
}
