//! The log on the machine's disk, driven by its thread.

use std::sync::Arc;
use std::sync::mpsc::channel;

use holdfast_node::storage::RealDisk;
use holdfast_node::storage::log::{Log, LogConfig, LogVote, spawn_sync_thread};

use super::log_world::{Model, entry};

fn config() -> LogConfig {
    LogConfig { segment_bytes: 50_000, cache_bytes: 5_000, ..LogConfig::default() }
}

#[test]
fn appends_while_others_read_and_everything_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::new(dir.path()).unwrap());
    let (log, worker) = Log::open(disk.clone(), config()).unwrap();
    let thread = spawn_sync_thread(worker).unwrap();
    let (sender, durable) = channel();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let log = log.clone();
            scope.spawn(move || {
                while log.bounds().unwrap().last.map(|last| last.index) != Some(1_999) {
                    let entries = log.read_limited(0..u64::MAX, 20_000).unwrap();
                    assert!(entries.iter().zip(0..).all(|(e, index)| *e == entry(1, index, 100)));
                }
            });
        }
        for batch in 0..200u64 {
            let entries = (batch * 10..batch * 10 + 10).map(|index| entry(1, index, 100)).collect();
            let sender = sender.clone();
            let done = move |result: std::io::Result<()>| {
                result.unwrap();
                sender.send(batch).unwrap();
            };
            log.append(entries, Some(Box::new(done))).unwrap();
        }
    });
    log.save_vote(LogVote { term: 3, node: 2, committed: true }, None).unwrap();
    for batch in 0..200 {
        assert_eq!(durable.recv().unwrap(), batch);
    }
    let before = Model::of(&log);
    thread.stop(&log).unwrap();
    assert!(log.append(Vec::new(), None).unwrap_err().to_string().contains("closed"));

    let (log, _worker) = Log::open(disk, config()).unwrap();
    assert_eq!(Model::of(&log), before);
    assert_eq!(before.entries.len(), 2_000);
}
