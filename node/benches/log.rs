//! How fast the log takes entries and opens again.
//!
//! `cargo bench -p holdfast-node --bench log`. The directory of the benchmark is `HOLDFAST_BENCH_DIR`, or the
//! system's temporary directory: put it on the disk that matters, and on a memory file system to see what the
//! software alone costs.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast_node::storage::RealDisk;
use holdfast_node::storage::log::{
    EntryKind, Log, LogConfig, LogEntry, LogPosition, SyncThread, spawn_sync_thread,
};

const REOPEN_ENTRIES: u64 = 1_000_000;
const PAYLOAD_BYTES: usize = 300;

fn directory() -> tempfile::TempDir {
    match std::env::var_os("HOLDFAST_BENCH_DIR") {
        Some(dir) => tempfile::tempdir_in(dir).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

fn entries(from: u64, count: u64, payload: &Bytes) -> Vec<LogEntry> {
    (from..from + count)
        .map(|index| LogEntry {
            position: LogPosition { term: 1, leader_node: 1, index },
            kind: EntryKind::Normal,
            payload: payload.clone(),
        })
        .collect()
}

fn payload() -> Bytes {
    Bytes::from((0..PAYLOAD_BYTES).map(|nth| (nth * 7) as u8).collect::<Vec<u8>>())
}

fn open(dir: &tempfile::TempDir) -> (Log, SyncThread) {
    let disk = Arc::new(RealDisk::new(dir.path()).unwrap());
    let (log, worker) = Log::open(disk, LogConfig::default()).unwrap();
    (log, spawn_sync_thread(worker).unwrap())
}

/// Appends batches one after the other, each when the one `window` before it is durable.
fn append(log: &Log, next: &mut u64, batch: u64, batches: u64, window: u64, payload: &Bytes) -> Duration {
    let (sender, durable) = channel();
    let begun = Instant::now();
    let mut under_way = 0;
    for _ in 0..batches {
        if under_way == window {
            durable.recv().unwrap();
            under_way -= 1;
        }
        let sender = sender.clone();
        let done = move |result: std::io::Result<()>| {
            result.unwrap();
            sender.send(()).unwrap();
        };
        log.append(entries(*next, batch, payload), Some(Box::new(done))).unwrap();
        *next += batch;
        under_way += 1;
    }
    for _ in 0..under_way {
        durable.recv().unwrap();
    }
    let elapsed = begun.elapsed();
    log.purge(LogPosition { term: 1, leader_node: 1, index: *next - 1 }, None).unwrap();
    elapsed
}

fn appends(criterion: &mut Criterion) {
    let payload = payload();
    for (name, window) in [("append, one after the other", 1), ("append, four under way", 4)] {
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).measurement_time(Duration::from_secs(4));
        for batch in [1, 16, 256] {
            group.throughput(Throughput::Elements(batch));
            group.bench_function(format!("{batch} entries"), |bencher| {
                let dir = directory();
                let (log, thread) = open(&dir);
                let mut next = 0;
                bencher.iter_custom(|batches| append(&log, &mut next, batch, batches, window, &payload));
                thread.stop(&log).unwrap();
            });
        }
        group.finish();
    }
}

fn reopen(criterion: &mut Criterion) {
    let payload = payload();
    let dir = directory();
    let (log, thread) = open(&dir);
    for from in (0..REOPEN_ENTRIES).step_by(256) {
        log.append(entries(from, 256.min(REOPEN_ENTRIES - from), &payload), None).unwrap();
    }
    thread.stop(&log).unwrap();
    let mut group = criterion.benchmark_group("reopen");
    group.sample_size(10).throughput(Throughput::Elements(REOPEN_ENTRIES));
    group.bench_function("1000000 entries", |bencher| {
        bencher.iter(|| {
            let disk = Arc::new(RealDisk::new(dir.path()).unwrap());
            let (log, _worker) = Log::open(disk, LogConfig::default()).unwrap();
            assert_eq!(log.bounds().unwrap().last.map(|last| last.index), Some(REOPEN_ENTRIES - 1));
        });
    });
    group.bench_function("read 1000000 entries in pieces of 1 MiB", |bencher| {
        let disk = Arc::new(RealDisk::new(dir.path()).unwrap());
        let (log, _worker) = Log::open(disk, LogConfig::default()).unwrap();
        bencher.iter(|| {
            let mut next = 0;
            while next < REOPEN_ENTRIES {
                next += log.read_limited(next..u64::MAX, 1 << 20).unwrap().len() as u64;
            }
        });
    });
    group.finish();
}

criterion_group!(benches, appends, reopen);
criterion_main!(benches);
