//! The disk seam: both implementations keep one contract, and the simulated one loses what it should.

use std::io::ErrorKind;

use holdfast_node::storage::sim_disk::{Loss, SimDisk};
use holdfast_node::storage::{Disk, RealDisk};

fn contract(disk: &dyn Disk) {
    disk.create_dir("a/b").unwrap();
    disk.create_dir("a/b").unwrap();
    let file = disk.create("a/b/x").unwrap();
    assert_eq!(disk.create("a/b/x").err().map(|e| e.kind()), Some(ErrorKind::AlreadyExists));
    file.write_at(2, b"hello").unwrap();
    let mut buffer = [9; 16];
    assert_eq!(file.read_at(0, &mut buffer).unwrap(), 7);
    assert_eq!(&buffer[..7], b"\0\0hello");
    assert_eq!(file.read_at(7, &mut buffer).unwrap(), 0);
    assert_eq!(file.read_at(99, &mut buffer).unwrap(), 0);
    file.truncate(4).unwrap();
    assert_eq!(file.size().unwrap(), 4);
    file.sync().unwrap();
    disk.create("a/b/w").unwrap();
    disk.create_dir("a/b/dir").unwrap();
    assert_eq!(disk.list("a/b").unwrap(), ["dir", "w", "x"]);
    disk.rename("a/b/x", "a/b/w").unwrap();
    assert_eq!(disk.list("a/b").unwrap(), ["dir", "w"]);
    let again = disk.open("a/b/w").unwrap();
    assert_eq!(again.size().unwrap(), 4);
    disk.remove("a/b/w").unwrap();
    assert_eq!(again.read_at(0, &mut buffer).unwrap(), 4, "an open handle outlives the name");
    assert_eq!(disk.open("a/b/w").err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    assert_eq!(disk.remove("a/b/w").err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    assert_eq!(disk.list("none").err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    disk.sync_dir("a/b").unwrap();
    disk.sync_dir("").unwrap();
}

#[test]
fn both_disks_keep_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract(&RealDisk::new(dir.path().join("new")).unwrap());
    contract(&SimDisk::new());
}

#[test]
fn a_real_disk_refuses_paths_that_leave_its_root() {
    let dir = tempfile::tempdir().unwrap();
    let disk = RealDisk::new(dir.path()).unwrap();
    for path in ["../x", "/x", "a/../../x", "./x"] {
        assert_eq!(disk.create(path).err().map(|e| e.kind()), Some(ErrorKind::InvalidInput), "{path}");
    }
}

#[test]
fn what_was_synced_survives_and_the_rest_does_not() {
    for seed in 0..50 {
        for loss in [Loss::All, Loss::Suffix, Loss::Random] {
            let disk = SimDisk::new();
            let file = disk.create("f").unwrap();
            disk.sync_dir("").unwrap();
            file.write_at(0, &[1; 1000]).unwrap();
            file.sync().unwrap();
            file.write_at(1000, &[2; 3000]).unwrap();
            disk.reboot(loss, seed);
            assert!(file.sync().is_err(), "a handle of the life before is dead");
            let bytes = disk.contents("f").unwrap();
            assert!(bytes[..1000].iter().all(|b| *b == 1));
            assert!(bytes[1000..].iter().all(|b| *b == 2 || (loss == Loss::Random && *b == 0)));
            if loss == Loss::All {
                assert_eq!(bytes.len(), 1000);
            }
        }
    }
}

#[test]
fn a_torn_write_ends_at_a_sector() {
    let lengths: std::collections::BTreeSet<usize> = (0..200)
        .map(|seed| {
            let disk = SimDisk::new();
            let file = disk.create("f").unwrap();
            disk.sync_dir("").unwrap();
            file.write_at(0, &[1; 100]).unwrap();
            file.sync().unwrap();
            file.write_at(100, &[2; 2000]).unwrap();
            disk.reboot(Loss::Suffix, seed);
            disk.contents("f").unwrap().len()
        })
        .collect();
    assert!(lengths.iter().all(|l| *l == 100 || *l == 2100 || l % 512 == 0), "{lengths:?}");
    assert!(lengths.len() > 3, "{lengths:?}");
}

#[test]
fn names_are_lost_without_a_synced_directory() {
    let disk = SimDisk::new();
    disk.create_dir("d").unwrap();
    disk.sync_dir("").unwrap();
    disk.create("d/old").unwrap().sync().unwrap();
    disk.sync_dir("d").unwrap();
    disk.rename("d/old", "d/new").unwrap();
    disk.create("d/other").unwrap().sync().unwrap();
    disk.reboot(Loss::All, 1);
    assert_eq!(disk.list("d").unwrap(), ["old"]);

    disk.create_dir("e").unwrap();
    disk.create("e/f").unwrap();
    disk.sync_dir("e").unwrap();
    disk.reboot(Loss::All, 1);
    assert!(disk.list("e").is_err(), "the directory's own name was not synced");
}

#[test]
fn injected_faults_fire_once_and_where_told() {
    let disk = SimDisk::new();
    let file = disk.create("f").unwrap();
    disk.fail_nth(2, ErrorKind::Other);
    file.write_at(0, b"a").unwrap();
    assert!(file.write_at(1, b"b").is_err());
    file.write_at(1, b"b").unwrap();

    disk.fail_next_sync();
    assert!(file.sync().is_err());
    file.sync().unwrap();

    disk.fail_next_read();
    assert!(file.read_at(0, &mut [0; 2]).is_err());
    file.read_at(0, &mut [0; 2]).unwrap();

    disk.set_capacity(Some(3));
    file.write_at(2, b"c").unwrap();
    assert_eq!(file.write_at(3, b"d").err().map(|e| e.kind()), Some(ErrorKind::StorageFull));
    disk.set_capacity(None);

    disk.sync_dir("").unwrap();
    disk.crash_at(1, true);
    assert!(file.sync().is_err());
    assert!(disk.is_down() && disk.open("f").is_err());
    disk.reboot(Loss::All, 0);
    let found = disk.contents("f").unwrap();
    assert_eq!(
        found, b"\0\0c",
        "a failed sync loses for good; the one at which the power went had its effect"
    );

    assert!(disk.flip_bit("f", 0, 1) && !disk.flip_bit("f", 9, 0) && disk.cut("f", 1));
    assert_eq!(disk.contents("f").unwrap(), b"\x02");
}
