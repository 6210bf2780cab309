//! Bytes that change or vanish behind the log's back.

use holdfast_node::storage::log::LogOpenError;
use holdfast_node::storage::sim_disk::SimDisk;

use super::log_world::{Life, Step, World, small_config};

fn segment(number: u64) -> String {
    format!("log/{number:020}.seg")
}

fn number_at(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// (offset, sequence number, synced mark) of each frame, read without the code under test.
fn frames(bytes: &[u8]) -> Vec<(usize, u64, u64)> {
    let mut frames = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        assert_eq!(&bytes[at..at + 4], b"HLOG");
        frames.push((at, number_at(bytes, at + 16, 8), number_at(bytes, at + 32, 8)));
        at += 40 + number_at(bytes, at + 8, 4) as usize;
    }
    frames
}

/// A life over three segments, its files, and where the part begins that no mark vouches for.
fn written(clean_end: bool) -> (Life, Vec<Vec<u8>>, usize) {
    let disk = SimDisk::new();
    let mut world = World::open(disk.clone(), small_config()).unwrap();
    for _ in 0..5 {
        world
            .run(&[Step::Append(3, 200), Step::Vote, Step::Commit, Step::Run, Step::Append(1, 20), Step::Run])
            .unwrap();
    }
    if clean_end {
        world.log.close();
        world.worker.close().unwrap();
    }
    let life = world.end();
    let files: Vec<Vec<u8>> = (1..).map_while(|number| disk.contents(&segment(number))).collect();
    assert!(files.len() >= 3, "{}", files.len());
    let last = frames(files.last().unwrap());
    let synced = last.iter().map(|(_, _, synced)| *synced).max().unwrap();
    let doubtful =
        last.iter().find(|(_, seq, _)| *seq > synced).map_or(files.last().unwrap().len(), |(at, ..)| *at);
    (life, files, doubtful)
}

fn put(disk: &SimDisk, number: u64, bytes: &[u8]) {
    assert!(disk.edit(&segment(number), |file| {
        file.clear();
        file.extend_from_slice(bytes);
        true
    }));
}

fn assert_refused(life: &Life, context: &str) -> LogOpenError {
    let before: Vec<_> = (1..9).map(|number| life.disk.contents(&segment(number))).collect();
    let Err(error) = World::open(life.disk.clone(), life.config.clone()) else {
        panic!("{context}: opened in spite of damage to something synced");
    };
    let after: Vec<_> = (1..9).map(|number| life.disk.contents(&segment(number))).collect();
    assert_eq!(before, after, "{context}: a refusal changes nothing");
    error
}

#[test]
fn a_flipped_bit_in_a_synced_frame_is_refused_wherever_it_is() {
    let (life, files, doubtful) = written(false);
    for (nth, bytes) in files.iter().enumerate() {
        let end = if nth + 1 == files.len() { doubtful } else { bytes.len() };
        for at in 0..end {
            let number = nth as u64 + 1;
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            put(&life.disk, number, &changed);
            let context = format!("segment {number}, byte {at}");
            match assert_refused(&life, &context) {
                LogOpenError::Damaged { file, offset, .. } => {
                    let begins = frames(bytes).iter().rev().map(|f| f.0).find(|begin| *begin <= at).unwrap();
                    assert_eq!((file, offset), (segment(number), begins as u64), "{context}");
                }
                other => panic!("{context}: {other}"),
            }
            put(&life.disk, number, bytes);
        }
    }
    life.reopen("undamaged");
}

#[test]
fn damage_to_the_tail_that_nothing_vouches_for_is_cut_off_and_never_served() {
    let (mut life, files, doubtful) = written(false);
    let (number, bytes) = (files.len() as u64, files.last().unwrap());
    // No program can tell a torn write from damage there: the group may be gone, but nothing else and nothing by halves.
    life.acked -= 1;
    assert!(doubtful < bytes.len());
    for at in doubtful..bytes.len() {
        for change in 0..3 {
            let mut changed = bytes.clone();
            match change {
                0 => changed[at] ^= 1 << (at % 8),
                1 => changed.truncate(at),
                _ => changed[at..].fill(0),
            }
            put(&life.disk, number, &changed);
            life.reopen(&format!("byte {at}, change {change}"));
        }
    }
}

#[test]
fn after_a_clean_end_every_frame_is_vouched_for() {
    let (life, files, doubtful) = written(true);
    let (number, bytes) = (files.len() as u64, files.last().unwrap());
    let frames = frames(bytes);
    assert_eq!(doubtful, frames.last().unwrap().0, "only the closing mark itself is not");
    let mut changed = bytes.clone();
    changed[doubtful - 1] ^= 1;
    put(&life.disk, number, &changed);
    assert_refused(&life, "last frame before the mark");
    put(&life.disk, number, &bytes[..doubtful]);
    life.reopen("without the mark");
}

#[test]
fn a_lost_sector_or_end_of_a_synced_segment_is_refused() {
    let (life, files, _) = written(false);
    let bytes = &files[0];
    for sector in (0..bytes.len()).step_by(512) {
        let mut changed = bytes.clone();
        changed[sector..(sector + 512).min(bytes.len())].fill(0);
        put(&life.disk, 1, &changed);
        assert_refused(&life, &format!("sector at {sector} zeroed"));
    }
    for size in 0..bytes.len() {
        put(&life.disk, 1, &bytes[..size]);
        let error = assert_refused(&life, &format!("cut to {size}")).to_string();
        assert!(error.contains(&segment(1)) && error.contains("had been synced"), "{error}");
    }
}

#[test]
fn missing_files_are_refused_by_name() {
    use holdfast_node::storage::Disk;
    let (life, files, _) = written(false);
    let remove = |number: u64| life.disk.remove(&segment(number)).unwrap();
    let restore = |number: u64| {
        life.disk.create(&segment(number)).unwrap();
        put(&life.disk, number, &files[number as usize - 1]);
    };
    remove(2);
    let error = assert_refused(&life, "middle").to_string();
    assert!(error.contains(&segment(2)), "{error}");
    remove(1);
    let error = assert_refused(&life, "oldest two").to_string();
    assert!(error.contains("older segments of the log are missing"), "{error}");
    for number in 3..=files.len() as u64 {
        remove(number);
    }
    // As if the whole directory had gone: what says that there was a log lies outside.
    assert!(life.disk.list("log").unwrap().is_empty());
    let error = assert_refused(&life, "all").to_string();
    assert!(error.contains("every segment"), "{error}");
    restore(1);
    restore(2);
    put(&life.disk, 1, &[]);
    assert_refused(&life, "emptied");
}

#[test]
fn a_log_emptied_by_hand_is_not_taken_for_a_new_one() {
    let disk = SimDisk::new();
    let mut world = World::open(disk.clone(), small_config()).unwrap();
    world.run(&[Step::Vote, Step::Run]).unwrap();
    let life = world.end();
    put(&disk, 1, &[]);
    assert_refused(&life, "its only segment is empty");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (life, files, _) = written(false);
    let mut changed = files[0].clone();
    let (at, ..) = frames(&changed)[1];
    let length = number_at(&changed, at + 8, 4) as usize;
    changed[at + 4] = 2;
    let frame = &mut changed[at..at + 40 + length];
    let crc = crc32c::crc32c_append(crc32c::crc32c(&frame[..12]), &frame[16..]);
    frame[12..16].copy_from_slice(&crc.to_le_bytes());
    put(&life.disk, 1, &changed);
    let error = assert_refused(&life, "version 2").to_string();
    assert!(error.contains("version 2") && error.contains("up to version 1"), "{error}");
}

#[test]
fn another_groups_log_is_refused() {
    let (mut life, ..) = written(false);
    life.config.group = 9;
    let error = assert_refused(&life, "group").to_string();
    assert!(error.contains("group 0 in the log of group 9"), "{error}");
}
