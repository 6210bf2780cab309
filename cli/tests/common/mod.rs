//! A real development cluster, and the program that is asked of it.
#![allow(dead_code, clippy::unwrap_used)]

pub mod node;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before a test fails: elections on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program, without what the environment of the tests may say.
pub fn program() -> Command {
    program_at(Path::new(env!("CARGO_BIN_EXE_holdfast")))
}

/// The same, where somebody else finds it.
pub fn program_at(path: &Path) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HOLDFAST_")) {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// What a run of the program came to.
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn of(output: Output) -> Answer {
        Answer {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one document on standard output, of a run that succeeded.
    pub fn document(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// `holdfast dev --json`; stopped, with all its nodes, when it is dropped or this process ends.
pub struct Dev {
    child: Child,
    stdin: Option<ChildStdin>,
    stderr: BufReader<ChildStderr>,
    pub ready: Value,
}

impl Dev {
    /// Starts it and waits for its ready line.
    pub fn start(data: &Path) -> Dev {
        Dev::start_with(data, &[])
    }

    /// As [`Dev::start`], with further options.
    pub fn start_with(data: &Path, options: &[&str]) -> Dev {
        let mut child = program()
            .args(["dev", "--json", "--no-traffic", "--stop-with-stdin", "--data"])
            .arg(data)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut said = String::new();
            std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
            panic!("dev did not become ready: {line:?}\n{said}")
        });
        Dev { child, stdin, stderr, ready }
    }

    /// A field of a node in the ready line.
    pub fn node(&self, at: usize, field: &str) -> String {
        match &self.ready["nodes"][at][field] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Runs the program against this cluster, with JSON as its output.
    pub fn ask(&self, args: &[&str]) -> Answer {
        self.ask_at(1, args)
    }

    /// Asks again until the document is as it should be; panics with `what` when that takes too long.
    pub fn until(&self, what: &str, args: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let document = self.ask(args).document();
            if is_so(&document) {
                return document;
            }
            assert!(Instant::now() < give_up, "gave up waiting until {what}: {document}");
        }
    }

    /// Runs the program against this cluster, with text as its output; gives that, of a run that succeeded.
    pub fn ask_text(&self, args: &[&str]) -> String {
        let endpoint = self.node(1, "client");
        let output = program().args(["--endpoints", &endpoint]).args(args).stdin(Stdio::null()).output();
        let answer = Answer::of(output.unwrap());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.stdout
    }

    /// As [`Dev::ask`], knowing only one certain node.
    pub fn ask_at(&self, at: usize, args: &[&str]) -> Answer {
        let endpoint = self.node(at, "client");
        let output =
            program().args(["--endpoints", &endpoint, "--json"]).args(args).stdin(Stdio::null()).output();
        Answer::of(output.unwrap())
    }

    /// The next line that dev says on standard error.
    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// Ends a node the hard way.
    pub fn kill_node(&self, at: usize) {
        let status = Command::new("kill").args(["-KILL", &self.node(at, "pid")]).status().unwrap();
        assert!(status.success());
    }

    /// Asks it to stop and waits until it has; gives its exit code.
    pub fn stop(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().ok();
    }
}
