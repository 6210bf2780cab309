//! The log's calls, one by one.

use std::io::ErrorKind;
use std::sync::Arc;

use holdfast_node::storage::log::{Log, LogConfig, LogVote};
use holdfast_node::storage::sim_disk::{Loss, SimDisk, SplitMix};

use super::log_world::{Model, Step, World, entry, position, small_config};

fn open(disk: &SimDisk) -> World {
    World::open(disk.clone(), small_config()).unwrap()
}

#[test]
fn a_new_log_is_empty_and_takes_any_first_index() {
    for first in [0, 1, 7] {
        let mut world = open(&SimDisk::new());
        assert_eq!(world.model(), &Model::default());
        world.log.append(vec![entry(1, first, 10)], None).unwrap();
        assert_eq!(world.log.bounds().unwrap().last, Some(position(1, first)));
        assert_eq!(world.log.read(0..u64::MAX).unwrap(), [entry(1, first, 10)]);
        world.worker.run_once().unwrap();
        let life = world.end();
        let (log, _worker) = Log::open(Arc::new(life.disk.clone()), small_config()).unwrap();
        assert_eq!(log.read(0..u64::MAX).unwrap(), [entry(1, first, 10)]);
    }
}

#[test]
fn an_append_is_readable_before_it_is_written_and_acknowledged_after() {
    let mut world = open(&SimDisk::new());
    world.step(&Step::Append(3, 100)).unwrap();
    world.check_reads(&mut SplitMix::new(1));
    assert_eq!(world.acked.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert!(world.worker.write_group().unwrap());
    assert_eq!(world.acked.load(std::sync::atomic::Ordering::SeqCst), 0, "written is not durable");
    world.worker.finish_group().unwrap();
    assert_eq!(world.acked.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(!world.worker.run_once().unwrap(), "nothing is queued");
}

#[test]
fn one_sync_covers_everything_queued() {
    let disk = SimDisk::new();
    let mut world = World::open(disk.clone(), LogConfig::default()).unwrap();
    for step in [Step::Append(2, 10), Step::Vote, Step::Append(5, 10), Step::Truncate(2), Step::Append(1, 10)]
    {
        world.step(&step).unwrap();
    }
    disk.record(true);
    world.worker.run_once().unwrap();
    let calls = disk.record(false);
    assert_eq!(calls.len(), 2, "one write and one sync: {calls:?}");
    assert_eq!(world.acked.load(std::sync::atomic::Ordering::SeqCst), 5);
}

#[test]
fn a_committed_position_waits_for_company() {
    let disk = SimDisk::new();
    let mut world = open(&disk);
    world.run(&[Step::Append(2, 10), Step::Run, Step::Commit]).unwrap();
    assert_eq!(world.log.committed().unwrap(), Some(position(1, 1)));
    let before = disk.calls();
    assert!(!world.worker.run_once().unwrap());
    assert_eq!(disk.calls(), before, "it causes no write of its own");
    world.run(&[Step::Vote, Step::Run]).unwrap();
    disk.reboot(Loss::All, 0);
    let world = world.end().reopen("committed");
    assert_eq!(world.log.committed().unwrap(), Some(position(1, 1)));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut world = open(&SimDisk::new());
    world.run(&[Step::Append(4, 10), Step::Purge(2)]).unwrap();
    let before = Model::of(&world.log);
    let refused = [
        world.log.append(vec![entry(1, 9, 1)], None),
        world.log.append(vec![entry(1, 4, 1), entry(1, 6, 1)], None),
        world.log.append(vec![entry(1, 3, 1)], None),
        world.log.truncate_after(Some(position(1, 0)), None),
        world.log.truncate_after(None, None),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(Model::of(&world.log), before);
    world.worker.run_once().unwrap();
    world.log.health().unwrap();
}

#[test]
fn no_op_truncations_and_purges_still_complete() {
    let mut world = open(&SimDisk::new());
    world.run(&[Step::Append(4, 10), Step::Truncate(0), Step::Purge(3), Step::Purge(0), Step::Run]).unwrap();
    assert_eq!(world.acked.load(std::sync::atomic::Ordering::SeqCst), 4);
    world.check_reads(&mut SplitMix::new(1));
}

#[test]
fn purged_segments_are_deleted_and_the_rest_stays_readable() {
    let disk = SimDisk::new();
    let mut world = open(&disk);
    world.step(&Step::Vote).unwrap();
    for _ in 0..30 {
        world.run(&[Step::Append(2, 300), Step::Run]).unwrap();
    }
    let before = world.log.stats();
    assert!(before.segments > 8, "{before:?}");
    world.run(&[Step::Purge(55), Step::Run]).unwrap();
    let after = world.log.stats();
    assert!(after.segments < 5 && after.bytes < before.bytes / 3, "{after:?}");
    world.check_reads(&mut SplitMix::new(1));
    let world = world.end().reopen("purged");
    assert!(world.model().vote.is_some(), "the vote's own segment is gone; each head repeats it");
    assert_eq!(world.log.stats().segments, after.segments);
}

#[test]
fn a_purge_point_outlives_the_segment_that_told_it() {
    let disk = SimDisk::new();
    let mut world = open(&disk);
    world.run(&[Step::Append(2, 700), Step::Purge(2), Step::Run]).unwrap();
    world.run(&vec![Step::Vote; 20]).unwrap();
    world.run(&[Step::Append(4, 600), Step::Run]).unwrap();
    let segments = world.log.stats().segments;
    // Deleting is taken up again after a restart: the segment goes, its purge record with it.
    let mut world = world.end().reopen("with the record");
    world.run(&[Step::Vote, Step::Run]).unwrap();
    assert!(world.log.stats().segments < segments);
    let world = world.end().reopen("without it");
    assert_eq!(world.model().purged, Some(position(1, 1)));
}

#[test]
fn the_cache_keeps_its_bound_and_never_drops_what_is_not_written() {
    let disk = SimDisk::new();
    let mut world = open(&disk);
    world.step(&Step::Append(20, 100)).unwrap();
    assert_eq!(world.log.stats().cache_entries, 20);
    world.worker.write_group().unwrap();
    let stats = world.log.stats();
    assert!(stats.cache_bytes <= 500, "{stats:?}");
    assert!(stats.unsynced_bytes > 0);
    world.worker.finish_group().unwrap();
    assert_eq!(world.log.stats().unsynced_bytes, 0);
    world.check_reads(&mut SplitMix::new(1));
}

#[test]
fn a_disk_that_falls_too_far_behind_is_reported() {
    let config = LogConfig { unsynced_bytes_max: 1_000, ..small_config() };
    let mut world = World::open(SimDisk::new(), config).unwrap();
    world.step(&Step::Append(5, 100)).unwrap();
    assert!(world.step(&Step::Append(5, 100)).unwrap_err().to_string().contains("does not keep up"));
    world.step(&Step::Run).unwrap();
    world.step(&Step::Append(5, 100)).unwrap();
}

#[test]
fn an_error_ends_the_log_for_good() {
    type Fault = fn(&SimDisk);
    let faults: [Fault; 3] = [
        |disk| disk.fail_next_sync(),
        |disk| disk.fail_nth(1, ErrorKind::Other),
        |disk| disk.set_capacity(Some(0)),
    ];
    for fault in faults {
        let disk = SimDisk::new();
        let mut world = open(&disk);
        world.run(&[Step::Append(2, 10), Step::Run, Step::Append(2, 10), Step::Vote]).unwrap();
        fault(&disk);
        world.step(&Step::Run).unwrap_err();
        let calls = disk.calls();
        disk.set_capacity(None);
        assert_eq!(world.acked.load(std::sync::atomic::Ordering::SeqCst), 1);
        for step in [Step::Run, Step::Append(1, 1), Step::Vote, Step::Commit, Step::Run] {
            assert!(world.step(&step).unwrap_err().to_string().contains("the log has failed"));
        }
        assert!(world.log.read(0..9).is_err() && world.log.vote().is_err() && world.log.health().is_err());
        assert_eq!(disk.calls(), calls, "nothing is written or synced after an error");
        world.end().reopen("after an error");
    }
}

#[test]
fn a_read_error_or_a_damaged_entry_ends_the_log_too() {
    let disk = SimDisk::new();
    let mut world = open(&disk);
    world.run(&[Step::Append(20, 100), Step::Run]).unwrap();
    disk.fail_next_read();
    assert!(world.log.read(0..3).is_err());
    assert!(world.log.health().is_err());

    let mut world = open(&disk);
    world.run(&[Step::Append(20, 100), Step::Run]).unwrap();
    assert!(disk.flip_bit("log/00000000000000000001.seg", 300, 3));
    let error = world.log.read(0..3).unwrap_err().to_string();
    assert!(error.contains("00000000000000000001.seg is damaged"), "{error}");
    assert!(world.worker.run_once().is_err());
}

#[test]
fn a_failed_sync_is_not_believed_after_a_restart() {
    // The process dies of the error, the machine lives on: the pages are readable and count as clean.
    let disk = SimDisk::new();
    let mut world = open(&disk);
    world.run(&[Step::Append(2, 10), Step::Run, Step::Append(3, 400), Step::Vote]).unwrap();
    disk.fail_next_sync();
    world.step(&Step::Run).unwrap_err();
    let world = world.end().reopen("same machine");
    let mut life = world.end();
    assert_eq!(life.states[0].entries.len(), 5);
    // What the reopened log counted as its own must be on the disk now.
    life.acked = 0;
    disk.reboot(Loss::All, 0);
    life.reopen("power lost afterwards");
}

#[test]
fn a_worker_that_is_gone_leaves_nobody_waiting() {
    let world = open(&SimDisk::new());
    let (sender, receiver) = std::sync::mpsc::channel();
    let vote = LogVote { term: 1, node: 1, committed: false };
    world.log.save_vote(vote, Some(Box::new(move |result| sender.send(result).unwrap()))).unwrap();
    drop(world.worker);
    assert!(receiver.recv().unwrap().is_err());
    assert!(world.log.append(Vec::new(), None).is_err());
}

#[test]
fn the_wake_function_is_told_of_work() {
    let world = open(&SimDisk::new());
    let (sender, receiver) = std::sync::mpsc::channel();
    world.log.set_wake(Arc::new(move || sender.send(()).unwrap()));
    world.log.append(vec![entry(1, 0, 1)], None).unwrap();
    receiver.try_recv().unwrap();
    world.log.save_committed(None).unwrap();
    assert!(receiver.try_recv().is_err(), "a committed position is no work");
}
