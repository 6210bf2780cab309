//! Snapshot files: whole or refused, and the directory keeps what it must.

use std::sync::Arc;

use bytes::Bytes;
use holdfast_node::storage::sim_disk::{Loss, SimDisk};
use holdfast_node::storage::snapshot::{SnapshotError, SnapshotFile, SnapshotMeta, SnapshotStore};
use holdfast_node::storage::{Disk, disk::read_whole};

use super::log_world::position;

fn meta(index: u64) -> SnapshotMeta {
    SnapshotMeta {
        group: 3,
        last: Some(position(2, index)),
        revision: index * 10,
        membership: Bytes::from_static(b"members"),
    }
}

fn records(count: usize, bytes: usize) -> Vec<Bytes> {
    (0..count).map(|nth| Bytes::from(vec![nth as u8; bytes + nth % 3])).collect()
}

fn open(disk: &SimDisk) -> SnapshotStore {
    SnapshotStore::open(Arc::new(disk.clone())).unwrap()
}

fn newest(store: &SnapshotStore) -> Option<(SnapshotMeta, Vec<Bytes>)> {
    store.newest().unwrap().map(|reader| {
        let meta = reader.meta().clone();
        (meta, reader.map(Result::unwrap).collect())
    })
}

fn path(store: &SnapshotStore) -> String {
    format!("snapshots/{}", store.names().unwrap()[0])
}

#[test]
fn what_is_written_is_read_and_the_newest_two_are_kept() {
    let disk = SimDisk::new();
    let store = open(&disk);
    assert_eq!(newest(&store), None);
    let empty = store.write(SnapshotMeta::default(), []).unwrap();
    assert_eq!(newest(&store), Some((SnapshotMeta::default(), Vec::new())));
    assert_eq!(store.verify_newest().unwrap(), Some(empty));
    for (index, records) in [(0, records(1, 0)), (9, records(3_000, 400)), (100, records(3, 1_000_000))] {
        let written = store.write(meta(index), records.clone()).unwrap();
        assert_eq!(newest(&store), Some((meta(index), records)));
        assert_eq!(store.verify_newest().unwrap(), Some(written.clone()));
        let file = disk.contents(&path(&store)).unwrap();
        assert_eq!((file.len() as u64, crc32c::crc32c(&file)), (written.bytes, written.crc32c));
    }
    let names = store.names().unwrap();
    assert_eq!(names.len(), 2);
    assert!(names[0].starts_with("00000000000000000101-") && names[1].starts_with("00000000000000000010-"));
    assert!(store.read(&names[1]).unwrap().all(|record| record.is_ok()));
}

#[test]
fn unfinished_files_go_when_dropped_and_at_the_next_start() {
    let disk = SimDisk::new();
    let store = open(&disk);
    let mut writer = store.create(meta(1)).unwrap();
    writer.push(b"x").unwrap();
    assert_eq!(disk.list("snapshots").unwrap().len(), 1);
    drop(writer);
    assert_eq!(disk.list("snapshots").unwrap().len(), 0);

    let writer = store.create(meta(1)).unwrap();
    disk.sync_dir("snapshots").unwrap();
    disk.crash();
    drop(writer);
    disk.reboot(Loss::Nothing, 0);
    assert_eq!(disk.list("snapshots").unwrap().len(), 1);
    let store = open(&disk);
    assert_eq!(disk.list("snapshots").unwrap().len(), 0);
    assert_eq!(newest(&store), None);
}

#[test]
fn oversize_records_are_refused() {
    let store = open(&SimDisk::new());
    let mut writer = store.create(meta(1)).unwrap();
    assert!(matches!(writer.push(&vec![0; (16 << 20) + 1]), Err(SnapshotError::Invalid { .. })));
}

fn small() -> (SimDisk, SnapshotStore, SnapshotFile) {
    let disk = SimDisk::new();
    let store = open(&disk);
    let written = store.write(meta(5), records(40, 20)).unwrap();
    (disk, store, written)
}

#[test]
fn every_flipped_byte_and_every_cut_is_refused_by_name() {
    let (disk, store, _) = small();
    let path = path(&store);
    let bytes = disk.contents(&path).unwrap();
    let check = |context: String| {
        let result = store.newest().and_then(|reader| reader.unwrap().collect::<Result<Vec<_>, _>>());
        match result {
            Err(SnapshotError::Damaged { file, offset, .. }) => {
                assert!(file == path && offset <= bytes.len() as u64, "{context}");
            }
            other => panic!("{context}: {other:?}"),
        }
        assert!(store.verify_newest().is_err());
    };
    for at in 0..bytes.len() {
        assert!(disk.flip_bit(&path, at as u64, (at % 8) as u8));
        check(format!("byte {at}"));
        assert!(disk.flip_bit(&path, at as u64, (at % 8) as u8));
    }
    for size in 0..bytes.len() {
        assert!(disk.cut(&path, size as u64));
        check(format!("cut to {size}"));
        disk.edit(&path, |file| {
            file.clone_from(&bytes);
            true
        });
    }
    disk.edit(&path, |file| {
        file.push(0);
        true
    });
    check("a byte more".into());
}

#[test]
fn a_damaged_newest_one_is_not_replaced_by_an_older_one() {
    let (disk, store, _) = small();
    store.write(meta(50), records(4, 20)).unwrap();
    assert!(disk.flip_bit(&path(&store), 100, 1));
    assert!(store.verify_newest().is_err());
    assert_eq!(store.names().unwrap().len(), 2, "the operator still has the older one");
}

#[test]
fn blocks_in_another_order_and_files_under_another_name_are_refused() {
    let disk = SimDisk::new();
    let store = open(&disk);
    // Records of one block each, all of one length.
    store.write(meta(5), (0..3u8).map(|nth| Bytes::from(vec![nth; 300_000]))).unwrap();
    let path = path(&store);
    let block = 12 + 4 + 300_000;
    let start = disk.contents(&path).unwrap().len() - 40 - 3 * block;
    disk.edit(&path, |file| {
        let (first, second) = file[start..].split_at_mut(block);
        first.swap_with_slice(&mut second[..block]);
        true
    });
    let error = store.verify_newest().unwrap_err().to_string();
    assert!(error.contains("checksum") && error.contains(&format!("byte {start}")), "{error}");

    let (disk, store, _) = small();
    let path = format!("snapshots/{}", store.names().unwrap()[0]);
    // Without its only block: header and end are whole, only the totals tell.
    disk.edit(&path, |file| {
        let block = 12 + (0..40).map(|nth| 4 + 20 + nth % 3).sum::<usize>();
        let end = file.len() - 40;
        file.drain(end - block..end);
        true
    });
    let error = store.verify_newest().unwrap_err().to_string();
    assert!(error.contains("totals"), "{error}");

    let (disk, store, _) = small();
    let name = &store.names().unwrap()[0];
    let other = name.replace("06-", "07-");
    disk.rename(&format!("snapshots/{name}"), &format!("snapshots/{other}")).unwrap();
    assert!(store.newest().err().unwrap().to_string().contains("its header belongs to"));
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (disk, store, _) = small();
    let path = path(&store);
    disk.edit(&path, |file| {
        file[4] = 2;
        let body = u32::from_le_bytes(file[8..12].try_into().unwrap()) as usize;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&file[..12]), &file[16..16 + body]);
        file[12..16].copy_from_slice(&crc.to_le_bytes());
        true
    });
    let error = store.newest().err().unwrap().to_string();
    assert!(error.contains("version 2") && error.contains("up to version 1"), "{error}");
}

#[test]
fn a_received_file_is_checked_before_it_has_a_name() {
    let (source, from, written) = small();
    let bytes = read_whole(source.open(&path(&from)).unwrap().as_ref(), 1 << 20).unwrap();
    let disk = SimDisk::new();
    let store = open(&disk);

    let mut receiver = store.receive(written.bytes, written.crc32c).unwrap();
    for (nth, chunk) in bytes.chunks(100).enumerate() {
        assert!(receiver.write(nth as u64 * 100 + 1, chunk).is_err(), "out of order");
        receiver.write(nth as u64 * 100, chunk).unwrap();
    }
    assert!(receiver.write(written.bytes, b"x").is_err(), "more than announced");
    assert_eq!(receiver.received_bytes(), written.bytes);
    assert_eq!(receiver.finish().unwrap(), written);
    assert_eq!(newest(&store), newest(&from));

    let refused = |bytes: &[u8], announced: u64, crc: u32| {
        let mut receiver = store.receive(announced, crc).unwrap();
        receiver.write(0, bytes).unwrap();
        receiver.finish().unwrap_err();
        assert_eq!(store.names().unwrap().len(), 1);
        assert_eq!(disk.list("snapshots").unwrap().len(), 1, "what was refused leaves nothing behind");
    };
    refused(&bytes[..200], written.bytes, written.crc32c);
    refused(&bytes, written.bytes, written.crc32c ^ 1);
    let mut damaged = bytes.clone();
    damaged[150] ^= 1;
    refused(&damaged, written.bytes, crc32c::crc32c(&damaged));
}

#[test]
fn the_power_may_go_at_any_call() {
    let script = |disk: &SimDisk| -> Result<(), SnapshotError> {
        let store = SnapshotStore::open(Arc::new(disk.clone()))?;
        for index in 0..4 {
            store.write(meta(index), records(30, 50))?;
            disk.create(&format!("done{index}"))?;
            disk.sync_dir("")?;
        }
        Ok(())
    };
    let clean = SimDisk::new();
    script(&clean).unwrap();
    for nth in 1..=clean.calls() {
        for effect in [false, true] {
            for loss in [Loss::All, Loss::Suffix, Loss::Random] {
                for seed in 0..4 {
                    let context = format!("call {nth}, effect {effect}, {loss:?}, seed {seed}");
                    let disk = SimDisk::new();
                    disk.crash_at(nth, effect);
                    assert!(script(&disk).is_err(), "{context}");
                    disk.reboot(loss, seed + nth);
                    let done =
                        (0..4).take_while(|index| disk.contents(&format!("done{index}")).is_some()).count();
                    let store = open(&disk);
                    let found = newest(&store);
                    let index = found.as_ref().map(|(meta, _)| meta.last.unwrap().index);
                    assert!(
                        index.map_or(0, |index| index as usize + 1) >= done,
                        "{context}: {done} done, {index:?} found"
                    );
                    if let Some((found, found_records)) = found {
                        assert_eq!(
                            (found, found_records),
                            (meta(index.unwrap()), records(30, 50)),
                            "{context}"
                        );
                    }
                    assert!(store.names().unwrap().len() <= 3, "{context}");
                    for name in store.names().unwrap() {
                        store
                            .read(&name)
                            .unwrap()
                            .verify()
                            .unwrap_or_else(|error| panic!("{context}: {error}"));
                    }
                }
            }
        }
    }
}

#[test]
fn a_failed_sync_names_nothing() {
    let disk = SimDisk::new();
    let store = open(&disk);
    let writer = store.create(meta(1)).unwrap();
    disk.fail_next_sync();
    assert!(matches!(writer.finish(), Err(SnapshotError::Io(_))));
    assert_eq!(store.names().unwrap().len(), 0);
}
