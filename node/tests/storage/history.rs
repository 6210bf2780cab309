//! The history index: answers, bounds, and what happens when sled fails.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_node::storage::history::{
    HistoryBatch, HistoryConfig, HistoryError, HistoryFeed, HistoryId, HistoryPage, HistoryReader,
    HistoryRecord, HistoryThread, RETAINED_NUMBER, RetainedPart, TakeRetained, TellRetained, spawn_history,
};

fn id(nth: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&nth.to_be_bytes());
    id
}

/// The reservation that ended at this revision, of one of three tenants.
fn record(revision: u64) -> HistoryRecord {
    HistoryRecord {
        id: HistoryId::Reservation(id(revision)),
        revision,
        at_ms: revision * 1_000,
        tenant: Some(format!("tenant{}", revision % 3)),
        body: vec![revision as u8; 100],
    }
}

/// One entry with two revisions, of which the second ended something.
fn batch(index: u64) -> HistoryBatch {
    let last = index * 2;
    HistoryBatch {
        since_index: 0,
        index,
        first_revision: last - 1,
        last_revision: last,
        clock_ms: last * 1_000,
        records: vec![record(last)],
    }
}

fn offer(feed: &HistoryFeed, batch: HistoryBatch) {
    feed.offer(batch.index, batch.records.len(), Box::new(move || batch));
}

struct Running {
    feed: HistoryFeed,
    reader: HistoryReader,
    thread: HistoryThread,
}

fn start(dir: &Path, config: HistoryConfig) -> Running {
    start_telling(dir, config, Box::new(|_| Ok(())))
}

/// Starts an index whose book still knows something.
fn start_telling(dir: &Path, config: HistoryConfig, tell: TellRetained) -> Running {
    let (feed, reader, thread) = spawn_history(dir, config, tell).unwrap();
    thread.begin();
    Running { feed, reader, thread }
}

/// What the book at entry 210 still holds: everything that ended from revision 391 on, in two parts.
fn tell_from_391(take: TakeRetained<'_>) -> Result<(), HistoryError> {
    for (nth, ended) in [392..=404, 406..=420u64].into_iter().enumerate() {
        let batch = HistoryBatch {
            since_index: 210,
            index: 210,
            first_revision: 391,
            last_revision: 420,
            clock_ms: 420_000,
            records: ended.step_by(2).map(record).collect(),
        };
        let first_number = RETAINED_NUMBER + nth as u32 * 7;
        take(RetainedPart { batch, first_number, is_last: nth == 1 })?;
    }
    Ok(())
}

/// Waits until the index has taken everything up to a revision.
fn wait(reader: &HistoryReader, revision: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let state = reader.reservation([255; 16]);
        match &state {
            Ok(page) if page.indexed_revision >= revision => return,
            _ => {
                assert!(Instant::now() < deadline, "the index has not reached revision {revision}: {state:?}")
            }
        }
        std::thread::yield_now();
    }
}

/// Waits until the index is complete from a revision on.
fn wait_complete(reader: &HistoryReader, from_revision: u64, context: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let state = reader.reservation([255; 16]);
        if state.as_ref().is_ok_and(|page| page.complete_from_revision == from_revision) {
            return;
        }
        assert!(Instant::now() < deadline, "{context}: not complete from {from_revision}: {state:?}");
        std::thread::yield_now();
    }
}

fn tenant(reader: &HistoryReader, from: u64, since: u64, max: usize) -> (Vec<u64>, HistoryPage) {
    let page = reader.tenant("tenant1", from, since, max).unwrap();
    (page.records.iter().map(|record| record.revision).collect(), page)
}

#[test]
fn what_ended_is_found_by_id_and_by_tenant_and_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = start(dir.path(), HistoryConfig::default());
    (1..=30).for_each(|index| offer(&running.feed, batch(index)));
    wait(&running.reader, 60);
    for life in 0..2 {
        let page = running.reader.reservation(id(10)).unwrap();
        assert_eq!(page.records, [record(10)]);
        assert_eq!((page.complete_from_revision, page.indexed_revision, page.more), (1, 60, false));
        assert!(running.reader.reservation(id(11)).unwrap().records.is_empty());

        let (revisions, page) = tenant(&running.reader, 0, 0, 4);
        assert_eq!((revisions, page.more), (vec![4, 10, 16, 22], true));
        let (revisions, page) = tenant(&running.reader, 23, 0, 4);
        assert_eq!((revisions, page.more), (vec![28, 34, 40, 46], true));
        let (revisions, page) = tenant(&running.reader, 0, 41_000, 400);
        assert_eq!((revisions, page.more), (vec![46, 52, 58], false));
        assert!(running.reader.tenant("tenant", 0, 0, 9).unwrap().records.is_empty(), "no prefix of a name");
        running.thread.stop();
        if life == 0 {
            running = start(dir.path(), HistoryConfig::default());
            wait(&running.reader, 60);
            assert_eq!(running.reader.dropped(), 0);
            // The log is applied again from a snapshot: nothing is indexed twice, nothing counts as a gap.
            running.feed.start_after(20);
            (21..=30).for_each(|index| offer(&running.feed, batch(index)));
        } else {
            assert!(matches!(running.reader.reservation(id(1)), Err(HistoryError::Unavailable(_))));
            return;
        }
    }
}

#[test]
fn a_page_never_ends_within_a_revision() {
    let dir = tempfile::tempdir().unwrap();
    let running = start(dir.path(), HistoryConfig::default());
    let event = |number: u64, revision| HistoryRecord {
        id: HistoryId::Event(number),
        tenant: Some("tenant1".into()),
        ..record(revision)
    };
    let records = vec![event(1, 1), event(2, 2), event(3, 2), event(4, 2), event(5, 3)];
    offer(
        &running.feed,
        HistoryBatch { index: 1, first_revision: 1, last_revision: 3, records, ..Default::default() },
    );
    wait(&running.reader, 3);
    for (from, max, expected) in
        [(0, 1, vec![1]), (0, 3, vec![1]), (0, 4, vec![1, 2, 2, 2]), (2, 2, vec![2, 2])]
    {
        assert_eq!(tenant(&running.reader, from, 0, max).0, expected, "from {from}, at most {max}");
    }
    running.thread.stop();
}

#[test]
fn records_left_out_are_counted_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let running = start(dir.path(), HistoryConfig::default());
    offer(&running.feed, batch(1));
    wait(&running.reader, 2);
    // As if the queue had been full at 2: the feed goes on after it.
    running.feed.start_after(2);
    offer(&running.feed, batch(3));
    wait(&running.reader, 6);
    assert_eq!(running.reader.reservation(id(2)).unwrap().complete_from_revision, 5);
    // Entries without effects between two batches are no gap.
    offer(
        &running.feed,
        HistoryBatch { index: 4, first_revision: 7, last_revision: 8, ..Default::default() },
    );
    offer(&running.feed, batch(5));
    wait(&running.reader, 10);
    assert_eq!(running.reader.reservation(id(2)).unwrap().complete_from_revision, 5);
    running.thread.stop();
}

#[test]
fn a_full_queue_drops_and_never_waits() {
    let dir = tempfile::tempdir().unwrap();
    let running = start(
        dir.path(),
        HistoryConfig { queue_max: 1, records_per_second_max: u32::MAX, ..HistoryConfig::default() },
    );
    let offered = 5_000;
    (1..=offered).for_each(|index| offer(&running.feed, batch(index)));
    let left_out = running.reader.left_out();
    assert!(left_out > 0);
    // What is said to be complete is complete.
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut next = offered + 1;
    loop {
        offer(&running.feed, batch(next));
        match running.reader.reservation([255; 16]) {
            Ok(page) if page.indexed_revision > 2 * offered => break,
            _ => assert!(Instant::now() < deadline, "no batch was taken any more"),
        }
        next += 1;
    }
    let page = running.reader.reservation([255; 16]).unwrap();
    for revision in page.complete_from_revision..=page.indexed_revision {
        if revision % 2 == 0 {
            assert_eq!(running.reader.reservation(id(revision)).unwrap().records.len(), 1, "{revision}");
        }
    }
    running.thread.stop();
}

#[test]
fn old_records_go_by_age_and_by_size() {
    let by_age = HistoryConfig { retention_ms: 20_000, ..HistoryConfig::default() };
    let by_size = HistoryConfig { bytes_max: 3_000, ..HistoryConfig::default() };
    for config in [by_age, by_size] {
        let dir = tempfile::tempdir().unwrap();
        let running = start(dir.path(), config.clone());
        (1..=100).for_each(|index| offer(&running.feed, batch(index)));
        wait(&running.reader, 200);
        let complete = running.reader.reservation(id(1)).unwrap().complete_from_revision;
        assert!(complete > 150, "{complete}");
        for revision in (2..=200).step_by(2) {
            let found = !running.reader.reservation(id(revision)).unwrap().records.is_empty();
            assert_eq!(found, revision >= complete, "{revision}, complete from {complete}");
        }
        let (revisions, _) = tenant(&running.reader, 0, 0, 1_000);
        assert!(revisions.iter().all(|revision| *revision >= complete));
        running.thread.stop();
        // The sums were kept: it opens again without being dropped.
        let running = start(dir.path(), config);
        wait(&running.reader, 200);
        assert_eq!(running.reader.dropped(), 0);
        running.thread.stop();
    }
}

/// Fills an index and closes it.
fn filled(dir: &Path) {
    let running = start(dir, HistoryConfig::default());
    (1..=200).for_each(|index| offer(&running.feed, batch(index)));
    wait(&running.reader, 400);
    running.thread.stop();
}

/// Starts on an index that must be dropped, and checks that it is rebuilt from what the book still knows.
fn assert_rebuilt(dir: &Path, context: &str) {
    assert_rebuilt_with(dir, HistoryConfig::default(), context);
}

fn assert_rebuilt_with(dir: &Path, config: HistoryConfig, context: &str) {
    let running = start_telling(dir, config, Box::new(tell_from_391));
    running.feed.start_after(210);
    offer(&running.feed, batch(211));
    wait(&running.reader, 422);
    wait_complete(&running.reader, 391, context);
    assert_eq!(running.reader.dropped(), 1, "{context}");
    assert_eq!(running.reader.reservation(id(10)).unwrap().records.len(), 0, "{context}: it was dropped");
    for revision in (392..=422).step_by(2) {
        assert_eq!(
            running.reader.reservation(id(revision)).unwrap().records,
            [record(revision)],
            "{context}"
        );
    }
    let page = running.reader.reservation(id(422)).unwrap();
    assert_eq!(page.statements_from_revision, 421, "{context}: a book tells no statements");
    running.thread.stop();
}

/// A teller that counts how often it is asked.
fn counted(tell: fn(TakeRetained<'_>) -> Result<(), HistoryError>) -> (Arc<AtomicUsize>, TellRetained) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let tell = move |take: TakeRetained<'_>| {
        counter.fetch_add(1, Ordering::Relaxed);
        tell(take)
    };
    (asked, Box::new(tell))
}

#[test]
fn an_index_that_lost_nothing_asks_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let (asked, tell) = counted(tell_from_391);
    let running = start_telling(dir.path(), HistoryConfig::default(), tell);
    running.feed.start_after(150);
    (151..=201).for_each(|index| offer(&running.feed, batch(index)));
    wait(&running.reader, 402);
    let page = running.reader.reservation(id(10)).unwrap();
    assert_eq!((page.records.len(), page.complete_from_revision, page.statements_from_revision), (1, 1, 1));
    running.thread.stop();
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn an_index_behind_the_restored_book_asks_it_although_nothing_more_comes() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let running = start_telling(dir.path(), HistoryConfig::default(), Box::new(tell_from_391));
    running.feed.start_after(210);
    wait(&running.reader, 420);
    let page = running.reader.reservation(id(420)).unwrap();
    assert_eq!(page.records, [record(420)]);
    // What it had reaches to 400, what the book knows back to 391: nothing is missing but statements.
    assert_eq!((page.complete_from_revision, page.statements_from_revision), (1, 421));
    assert_eq!(running.reader.reservation(id(10)).unwrap().records.len(), 1);
    running.thread.stop();
}

#[test]
fn a_rebuild_that_was_cut_off_claims_nothing_and_is_made_good() {
    let dir = tempfile::tempdir().unwrap();
    let cut_off = |take: TakeRetained<'_>| {
        let mut parts = 0;
        tell_from_391(&mut |part| {
            parts += 1;
            if parts == 2 { Err(HistoryError::Unavailable("the process ends".into())) } else { take(part) }
        })
    };
    let (asked, tell) = counted(cut_off);
    let running = start_telling(dir.path(), HistoryConfig::default(), tell);
    running.feed.start_after(210);
    let deadline = Instant::now() + Duration::from_secs(60);
    while running.reader.reservation(id(404)).map_or(0, |page| page.records.len()) == 0 {
        assert!(Instant::now() < deadline, "the first part was not taken");
        std::thread::yield_now();
    }
    assert_eq!(running.reader.reservation(id(404)).unwrap().complete_from_revision, 0);
    running.thread.stop();
    assert_eq!(asked.load(Ordering::Relaxed), 1);

    let running = start_telling(dir.path(), HistoryConfig::default(), Box::new(tell_from_391));
    running.feed.start_after(210);
    wait_complete(&running.reader, 391, "after the restart");
    assert_eq!(running.reader.dropped(), 0);
    let (revisions, _) = tenant(&running.reader, 0, 0, 100);
    assert_eq!(revisions, [394, 400, 406, 412, 418], "each once");
    running.thread.stop();
}

#[test]
fn an_index_of_another_disk_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let config = HistoryConfig { disk_id: [7; 16], ..HistoryConfig::default() };
    assert_rebuilt_with(dir.path(), config, "another disk");
}

#[test]
fn nothing_is_touched_before_it_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let (_feed, _, thread) = spawn_history(&history, HistoryConfig::default(), Box::new(|_| Ok(()))).unwrap();
    thread.stop();
    assert!(!history.exists());
}

#[test]
fn markers_of_an_abort_drop_the_index() {
    for marker in ["opening", "suspect"] {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path());
        assert!(!dir.path().join(marker).exists(), "a clean life leaves none");
        std::fs::write(dir.path().join(marker), "left").unwrap();
        assert_rebuilt(dir.path(), marker);
        assert!(!dir.path().join(marker).exists());
    }
}

#[test]
fn damaged_files_drop_the_index_or_are_noticed_and_never_end_the_process() {
    let template = tempfile::tempdir().unwrap();
    filled(template.path());
    let source = template.path().join("db").join("db");
    let bytes = std::fs::read(&source).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut dropped = 0;
    for nth in 0..24 {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("db")).unwrap();
        for name in ["conf", "db"] {
            std::fs::copy(template.path().join("db").join(name), dir.path().join("db").join(name)).unwrap();
        }
        let mut changed = bytes.clone();
        let at = used * nth / 24;
        match nth % 3 {
            0 => changed[at] ^= 0x10,
            1 => changed[at..(at + 4_096).min(used)].fill(0),
            _ => changed.truncate(at),
        }
        std::fs::write(dir.path().join("db").join("db"), changed).unwrap();
        let running = start(dir.path(), HistoryConfig::default());
        running.feed.start_after(200);
        offer(&running.feed, batch(201));
        wait(&running.reader, 402);
        let page = running.reader.reservation(id(402)).unwrap();
        assert_eq!(page.records, [record(402)]);
        for revision in page.complete_from_revision..=page.indexed_revision {
            if revision % 2 == 0 {
                let found = running.reader.reservation(id(revision)).unwrap();
                assert_eq!(found.records, [record(revision)], "change {nth}: said to be complete");
            }
        }
        dropped += running.reader.dropped();
        running.thread.stop();
    }
    assert!(dropped > 0, "no damage was ever noticed");
}

#[test]
fn other_files_damaged_drop_it_too() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    std::fs::write(dir.path().join("db").join("conf"), b"nothing that sled would write here").unwrap();
    assert_rebuilt(dir.path(), "conf");
}
