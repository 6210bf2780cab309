//! Golden bytes: what is on disks today must be read for ever. A test that fails here means that stored bytes changed:
//! then the format's version must be raised, and the old one still be read. docs/format.md describes these bytes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use holdfast_node::storage::log::{EntryKind, Log, LogConfig, LogEntry, LogPosition, LogVote};
use holdfast_node::storage::snapshot::{SnapshotMeta, SnapshotStore};
use holdfast_node::storage::{Disk, Identity, SimDisk};

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join("")
}

/// The bytes of a listing: hexadecimal digits, with whitespace and `#` comments ignored.
fn listing(text: &str) -> Vec<u8> {
    let digits: String = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""))
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn assert_golden(found: &[u8], expected: &str) {
    let expected = listing(expected);
    assert_eq!(hex(found), hex(&expected));
}

fn position(term: u64, index: u64) -> LogPosition {
    LogPosition { term, leader_node: 2, index }
}

fn entry(kind: EntryKind, term: u64, index: u64, payload: &'static [u8]) -> LogEntry {
    LogEntry { position: position(term, index), kind, payload: Bytes::from_static(payload) }
}

const FIRST_SEGMENT: &str = include_str!("golden/log-1.hex");
const SECOND_SEGMENT: &str = include_str!("golden/log-2.hex");
const SNAPSHOT: &str = include_str!("golden/snapshot.hex");
const IDENTITY: &str = include_str!("golden/identity.txt");

fn log_config() -> LogConfig {
    LogConfig { group: 7, segment_bytes: 500, ..LogConfig::default() }
}

/// Every kind of record, over two segments, with a clean end.
fn write_log(disk: &SimDisk) {
    let (log, mut worker) = Log::open(Arc::new(disk.clone()), log_config()).unwrap();
    log.save_vote(LogVote { term: 3, node: 2, committed: true }, None).unwrap();
    log.append(
        vec![
            entry(EntryKind::Membership, 3, 0, b"members"),
            entry(EntryKind::Blank, 3, 1, b""),
            entry(EntryKind::Normal, 3, 2, b"commands"),
        ],
        None,
    )
    .unwrap();
    worker.run_once().unwrap();
    log.truncate_after(Some(position(3, 1)), None).unwrap();
    log.append(vec![entry(EntryKind::Normal, 4, 2, b"other")], None).unwrap();
    log.save_committed(Some(position(3, 1))).unwrap();
    log.purge(position(3, 0), None).unwrap();
    worker.run_once().unwrap();
    log.append(vec![entry(EntryKind::Normal, 4, 3, b"next")], None).unwrap();
    log.close();
    worker.close().unwrap();
}

#[test]
fn log_segments() {
    let disk = SimDisk::new();
    write_log(&disk);
    assert_golden(&disk.contents("log/00000000000000000001.seg").unwrap(), FIRST_SEGMENT);
    assert_golden(&disk.contents("log/00000000000000000002.seg").unwrap(), SECOND_SEGMENT);
    assert_eq!(disk.contents("log.created").unwrap(), b"holdfast log 1\n");
}

#[test]
fn log_segments_are_read() {
    let disk = SimDisk::new();
    disk.create_dir("log").unwrap();
    for (name, text) in
        [("00000000000000000001.seg", FIRST_SEGMENT), ("00000000000000000002.seg", SECOND_SEGMENT)]
    {
        disk.create(&format!("log/{name}")).unwrap().write_at(0, &listing(text)).unwrap();
    }
    let (log, _worker) = Log::open(Arc::new(disk), log_config()).unwrap();
    assert_eq!(log.vote().unwrap(), Some(LogVote { term: 3, node: 2, committed: true }));
    assert_eq!(log.committed().unwrap(), Some(position(3, 1)));
    assert_eq!(log.bounds().unwrap().purged, Some(position(3, 0)));
    let expected = [
        entry(EntryKind::Blank, 3, 1, b""),
        entry(EntryKind::Normal, 4, 2, b"other"),
        entry(EntryKind::Normal, 4, 3, b"next"),
    ];
    assert_eq!(log.read(0..9).unwrap(), expected);
}

fn meta() -> SnapshotMeta {
    SnapshotMeta {
        group: 7,
        last: Some(position(4, 3)),
        revision: 258,
        membership: Bytes::from_static(b"members"),
    }
}

#[test]
fn snapshot() {
    let disk = SimDisk::new();
    let store = SnapshotStore::open(Arc::new(disk.clone())).unwrap();
    store.write(meta(), [Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"three")]).unwrap();
    let name = "snapshots/00000000000000000004-00000000000000000004.snap";
    assert_golden(&disk.contents(name).unwrap(), SNAPSHOT);

    let disk = SimDisk::new();
    disk.create_dir("snapshots").unwrap();
    disk.create(name).unwrap().write_at(0, &listing(SNAPSHOT)).unwrap();
    let reader = SnapshotStore::open(Arc::new(disk)).unwrap().newest().unwrap().unwrap();
    assert_eq!(reader.meta(), &meta());
    let records: Vec<Bytes> = reader.map(Result::unwrap).collect();
    assert_eq!(records, [&b"one"[..], b"", b"three"]);
}

#[test]
fn identity() {
    let identity = Identity { cluster_id: "prod".into(), node_id: 258, disk_id: *b"0123456789abcdef" };
    let disk = SimDisk::new();
    identity.create(&disk).unwrap();
    assert_eq!(String::from_utf8(disk.contents("identity").unwrap()).unwrap(), IDENTITY);

    let disk = SimDisk::new();
    disk.create("identity").unwrap().write_at(0, IDENTITY.as_bytes()).unwrap();
    assert_eq!(Identity::load(&disk).unwrap(), Some(identity));
}
