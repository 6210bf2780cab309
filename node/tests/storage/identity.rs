//! The identity file and the directory's lock.

use holdfast_node::storage::sim_disk::{Loss, SimDisk};
use holdfast_node::storage::{DirectoryLock, Disk, Identity, IdentityError, LockError, RealDisk};

fn identity() -> Identity {
    Identity { cluster_id: "prod".into(), node_id: 3, disk_id: [7; 16] }
}

#[test]
fn it_is_written_once_and_checked() {
    let disk = SimDisk::new();
    assert_eq!(Identity::load_expected(&disk, "prod", 3).unwrap(), None);
    identity().create(&disk).unwrap();
    assert_eq!(Identity::load_expected(&disk, "prod", 3).unwrap(), Some(identity()));
    assert!(matches!(identity().create(&disk), Err(IdentityError::Exists(found)) if found == identity()));

    let error = Identity::load_expected(&disk, "test", 3).unwrap_err().to_string();
    assert!(error.contains("\"prod\"") && error.contains("\"test\""), "{error}");
    let error = Identity::load_expected(&disk, "prod", 4).unwrap_err().to_string();
    assert!(error.contains("node 3") && error.contains("node 4"), "{error}");
}

#[test]
fn data_without_an_identity_is_never_adopted() {
    let disk = SimDisk::new();
    disk.create("lock").unwrap();
    disk.create_dir("lost+found").unwrap();
    disk.create_dir("history").unwrap();
    assert_eq!(Identity::load(&disk).unwrap(), None);
    disk.create_dir("log").unwrap();
    for result in [Identity::load(&disk).map(|_| ()), identity().create(&disk)] {
        assert!(matches!(result, Err(IdentityError::NotEmpty { found }) if found == "log"));
    }
}

#[test]
fn the_cluster_id_has_a_bound() {
    for (length, fits) in [(0, false), (1, true), (255, true), (256, false)] {
        let identity = Identity { cluster_id: "x".repeat(length), ..identity() };
        assert_eq!(identity.create(&SimDisk::new()).is_ok(), fits, "{length}");
    }
    let lines = Identity { cluster_id: "a\nnode 9".into(), ..identity() };
    assert!(matches!(lines.create(&SimDisk::new()), Err(IdentityError::ClusterId)));
}

#[test]
fn damage_and_newer_formats_are_refused() {
    let disk = SimDisk::new();
    identity().create(&disk).unwrap();
    let bytes = disk.contents("identity").unwrap();
    for at in 0..bytes.len() as u64 {
        assert!(disk.flip_bit("identity", at, (at % 8) as u8));
        assert!(matches!(Identity::load(&disk), Err(IdentityError::Damaged { .. })), "byte {at}");
        assert!(disk.flip_bit("identity", at, (at % 8) as u8));
    }
    for size in 0..bytes.len() as u64 {
        let disk = SimDisk::new();
        identity().create(&disk).unwrap();
        assert!(disk.cut("identity", size));
        assert!(matches!(Identity::load(&disk), Err(IdentityError::Damaged { .. })), "cut to {size}");
    }
    disk.edit("identity", |file| {
        let body = b"holdfast identity 2\nwhatever comes\n";
        *file = [&body[..], format!("crc32c {:08x}\n", crc32c::crc32c(body)).as_bytes()].concat();
        true
    });
    let error = Identity::load(&disk).unwrap_err().to_string();
    assert!(error.contains("version 2") && error.contains("up to version 1"), "{error}");
}

#[test]
fn the_power_may_go_at_any_call_of_its_creation() {
    let clean = SimDisk::new();
    identity().create(&clean).unwrap();
    for nth in 1..=clean.calls() {
        for effect in [false, true] {
            for loss in [Loss::All, Loss::Suffix, Loss::Random, Loss::Nothing] {
                for seed in 0..8 {
                    let disk = SimDisk::new();
                    disk.crash_at(nth, effect);
                    identity().create(&disk).unwrap_err();
                    disk.reboot(loss, seed);
                    let context = format!("call {nth}, effect {effect}, {loss:?}, seed {seed}");
                    match Identity::load(&disk) {
                        Ok(Some(found)) => assert_eq!(found, identity(), "{context}"),
                        Ok(None) => {
                            identity().create(&disk).unwrap_or_else(|error| panic!("{context}: {error}"))
                        }
                        Err(error) => panic!("{context}: {error}"),
                    }
                    disk.reboot(Loss::All, seed);
                    assert_eq!(Identity::load(&disk).unwrap(), Some(identity()), "{context}");
                }
            }
        }
    }
}

#[test]
fn a_directory_is_locked_for_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let lock = DirectoryLock::acquire(&path).unwrap();
    let error = DirectoryLock::acquire(&path).unwrap_err();
    assert!(matches!(error, LockError::InUse { .. }));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert_eq!(Identity::load(&RealDisk::new(&path).unwrap()).unwrap(), None, "the lock's file is not data");
    drop(lock);
    DirectoryLock::acquire(&path).unwrap();
}
