//! `holdfast serve` as a process: what it refuses to start on, and what ends it.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use common::node::{Node, Site, refused};
use common::{Answer, program, program_at};
use holdfast_client::{Client, Request, ReservationId};
use holdfast_node::storage::RealDisk;
use holdfast_node::storage::log::{EntryKind, Log, LogConfig, LogEntry};

const PLAN: &str = "
schema: admissionBudget.v1
routes:
  - name: chat.generate
limits:
  month-tokens:
    scope: tenant
    unit: tokens
    period: { limit: 1000000, every: month }
";

/// Every path under a directory with what is in it. Of the lock only its being there counts: it holds nothing but who
/// had it last.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path.clone());
                found.insert(path, None);
            } else {
                let bytes = if path.ends_with("lock") { Vec::new() } else { std::fs::read(&path).unwrap() };
                found.insert(path, Some(bytes));
            }
        }
    }
    found
}

/// A clear refusal: one message, on standard error, that says these words; no backtrace.
fn assert_refused(answer: &Answer, words: &[&str]) {
    let Answer { code, stdout, stderr } = answer;
    assert_eq!((*code, stdout.as_str()), (1, ""), "{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("backtrace"), "{stderr}");
    let last = stderr.rsplit_once("holdfast: ").unwrap_or_else(|| panic!("no message: {stderr}")).1;
    for word in words {
        assert!(last.contains(word), "{word:?} is not said: {last}");
    }
}

/// A founded node with a reservation and a snapshot, stopped. Gives the reservation.
fn founded(folder: &Path) -> (Site, String) {
    let site = Site::new(folder, "");
    let node = site.start(&["--bootstrap"]);
    node.publish(folder, PLAN);
    let held = node.ask(&["reserve", "acme", "--amount", "tokens=7", "--route", "chat.generate"]).document();
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
    (site, held["id"].as_str().unwrap().to_owned())
}

/// What `serve` says to a founded directory that was tampered with, and that it left everything as it was.
fn refused_on(tamper: impl FnOnce(&Path), args: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let (site, _) = founded(folder.path());
    tamper(&site.data);
    let before = contents(&site.data);
    assert_refused(&site.refused(args), words);
    assert!(before == contents(&site.data), "{words:?}: something was changed");
}

#[test]
fn the_directory_of_another_node_or_cluster_is_refused() {
    let data = "data directory ";
    refused_on(|_| (), &["--set", "node_id=2"], &[data, "belongs to node 1", "configured as node 2"]);
    refused_on(|_| (), &["--set", "cluster_id=prod"], &[data, "belongs to cluster \"test\"", "\"prod\""]);
    // Neither founding nor joining takes it over.
    refused_on(|_| (), &["--set", "node_id=2", "--bootstrap"], &["belongs to node 1"]);
    refused_on(|_| (), &["--set", "node_id=2", "--join"], &["belongs to node 1"]);
}

#[test]
fn a_directory_of_a_newer_format_is_refused_by_name() {
    let identity = |data: &Path| {
        let body = "holdfast identity 2\nsomething new\n";
        let text = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes()));
        std::fs::write(data.join("identity"), text).unwrap();
    };
    refused_on(identity, &[], &["data directory ", "identity has format version 2", "up to version 1"]);
    let log = |data: &Path| {
        let path = data.join("log").join("00000000000000000001.seg");
        let mut bytes = std::fs::read(&path).unwrap();
        let end = 40 + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        bytes[4] = 2;
        let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..end]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        std::fs::write(path, bytes).unwrap();
    };
    let words = ["data directory ", "00000000000000000001.seg", "log format version 2", "up to version 1"];
    refused_on(log, &[], &words);
    let snapshot = |data: &Path| {
        let mut header = b"HSNP\x02\0\0\0\x04\0\0\0\0\0\0\0new!".to_vec();
        let sum = crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..]);
        header[12..16].copy_from_slice(&sum.to_le_bytes());
        let name = format!("{:020}-{:020}.snap", 900, 9);
        std::fs::write(data.join("snapshots").join(name), header).unwrap();
    };
    let words = ["data directory ", "00000000000000000009.snap", "snapshot format version 2"];
    refused_on(snapshot, &[], &words);
}

#[test]
fn a_directory_that_is_nobodys_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path(), "");
    std::fs::create_dir(&site.data).unwrap();
    std::fs::write(site.data.join("photos"), "not ours").unwrap();
    std::fs::write(site.data.join("lock"), "").unwrap();
    let before = contents(&site.data);
    for args in [&["--bootstrap"][..], &["--join"], &[]] {
        assert_refused(&site.refused(args), &["data directory", "no identity file", "photos"]);
    }
    std::fs::remove_file(site.data.join("photos")).unwrap();
    assert_refused(&site.refused(&[]), &["data directory", "--bootstrap", "--join"]);
    std::fs::write(site.data.join("photos"), "not ours").unwrap();
    assert!(before == contents(&site.data));
}

#[test]
fn a_port_in_use_is_refused_before_the_directory_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path(), "");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for key in ["client.listen", "peer.listen", "http.listen"] {
        let set = format!("{key}={address}");
        let words = [&format!("{key}: cannot listen on {address}"), "in use by another process"];
        assert_refused(&site.refused(&["--bootstrap", "--set", &set]), &words);
    }
    assert!(!site.data.exists());
}

#[test]
fn a_directory_in_use_a_file_and_one_without_permission_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (site, held) = founded(folder.path());
    let node = site.start(&[]);
    assert_refused(&site.refused(&[]), &["data directory", "in use by process ", "two nodes cannot share"]);
    assert_eq!(node.ask(&["get", &held]).document()["state"], "RESERVED");
    node.stop();

    let file = folder.path().join("file");
    std::fs::write(&file, "not ours").unwrap();
    let set = format!("data_dir={}", file.display());
    assert_refused(
        &site.refused(&["--bootstrap", "--set", &set]),
        &["data directory", &file.display().to_string()],
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"not ours");

    // Root may do anything, so it becomes somebody else, who needs to reach the program and the folder.
    let before = contents(&site.data);
    let mut command = program();
    if std::fs::metadata(folder.path()).unwrap().uid() == 0 {
        let reachable = folder.path().join("holdfast");
        if std::fs::hard_link(env!("CARGO_BIN_EXE_holdfast"), &reachable).is_err() {
            std::fs::copy(env!("CARGO_BIN_EXE_holdfast"), &reachable).unwrap();
        }
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        command = program_at(&reachable);
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    std::fs::set_permissions(&site.data, PermissionsExt::from_mode(0o555)).unwrap();
    for name in ["lock", "identity"] {
        std::fs::set_permissions(site.data.join(name), PermissionsExt::from_mode(0o444)).unwrap();
    }
    command.args(site.args(&[]));
    let answer = refused(command);
    std::fs::set_permissions(&site.data, PermissionsExt::from_mode(0o755)).unwrap();
    assert_refused(&answer, &["data directory", &site.data.display().to_string(), "ermission denied"]);
    assert!(before == contents(&site.data));
}

/// Reserves until a call fails; the ids that were acknowledged.
fn reserve_until_it_fails(node: &Node) -> Vec<ReservationId> {
    node.with_client(async |client: Client| {
        let client = client.with_deadline(Duration::from_secs(3));
        let mut acknowledged = Vec::new();
        loop {
            match client.reserve(Request::new("acme", "chat.generate").tokens(1)).await {
                Ok(reservation) => acknowledged.push(reservation.detach().id),
                Err(_) => return acknowledged,
            }
        }
    })
}

#[test]
fn a_full_disk_ends_the_process_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    // The history index has its own failures, which cost no node.
    let site =
        Site::new(folder.path(), "history = { enabled = false, retention_ms = 60000, queue_max = 1 }\n");
    // A limit on the size of files fails a write as a full disk does. Ignored, its signal gives way to the error.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_holdfast")]);
    command.args(site.args(&["--bootstrap"]));
    let node = Node::start(command);
    node.publish(folder.path(), PLAN);
    let acknowledged = reserve_until_it_fails(&node);
    assert!(!acknowledged.is_empty());
    let answer = node.ended();
    let segment = site.data.join("log").join("00000000000000000001.seg");
    let words =
        ["stopped: ", &segment.display().to_string(), "File too large", "make room", "start the node again"];
    assert_refused(&answer, &words);

    let node = site.start(&[]);
    for id in &acknowledged {
        assert_eq!(node.ask(&["get", &id.to_string()]).document()["state"], "RESERVED");
    }
    let (status, said) = node.stop();
    assert!(status.success(), "{said}");
}

#[test]
fn an_entry_that_cannot_be_applied_ends_the_process_with_its_raft() {
    let folder = tempfile::tempdir().unwrap();
    let (site, _) = founded(folder.path());
    // As a newer version might have written it: whole, and of no meaning to this one.
    let (log, mut worker) =
        Log::open(Arc::new(RealDisk::new(&site.data).unwrap()), LogConfig::default()).unwrap();
    let mut position = log.bounds().unwrap().last.unwrap();
    position.index += 1;
    let payload = bytes::Bytes::from_static(b"\xff\xff\xff");
    log.append(vec![LogEntry { position, kind: EntryKind::Normal, payload }], None).unwrap();
    worker.close().unwrap();
    drop((worker, log));

    let mut command = program();
    command.args(site.args(&[]));
    let answer = refused(command);
    let entry = format!("log entry {} cannot be applied", position.index);
    assert_refused(&answer, &[&entry, "start a program at least as new"]);
}
