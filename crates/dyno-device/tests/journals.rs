//! Power cuts on mounted folders: synced data survive; unsynced data survive, are lost, or are torn.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;

use dyno_device::mount::Mount;
use serde_json::json;

use crate::wall_clock::Folder;

fn with_cuts(folder: &Folder) -> Mount {
    folder.mount(&json!({"cuts": true}))
}

fn cut(mount: &Mount, seed: u64) {
    mount.cut(seed, 512).unwrap();
    mount.unmount(false).unwrap();
}

#[test]
fn what_was_synced_survives_every_cut_and_what_was_not_is_old_new_or_torn() {
    let Some(folder) = Folder::new("synced") else { return };
    let mut fates = BTreeSet::new();
    for seed in 0..60 {
        let mount = with_cuts(&folder);
        let file = File::create(folder.0.join("mounted/f")).unwrap();
        file.write_all_at(&[1; 8_192], 0).unwrap();
        file.sync_all().unwrap();
        File::open(folder.0.join("mounted")).unwrap().sync_all().unwrap();
        file.write_all_at(&[2; 4_096], 4_096).unwrap();
        drop(file);
        cut(&mount, seed);
        let left = fs::read(folder.0.join("back/f")).unwrap();
        assert_eq!(left.len(), 8_192);
        assert!(left[..4_096].iter().all(|&byte| byte == 1), "seed {seed}");
        let sectors: Vec<u8> = left[4_096..].chunks(512).map(|sector| sector[0]).collect();
        assert!(left[4_096..].chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        fates.insert((sectors.contains(&1), sectors.contains(&2)));
        fs::remove_file(folder.0.join("back/f")).unwrap();
    }
    assert_eq!(fates.len(), 3, "{fates:?}");
}

#[test]
fn a_rename_that_no_folder_was_synced_for_may_be_undone_with_what_it_replaced() {
    let Some(folder) = Folder::new("renamed") else { return };
    let mut found = BTreeSet::new();
    for seed in 0..40 {
        let mount = with_cuts(&folder);
        let place = |name: &str| folder.0.join("mounted").join(name);
        for (name, text) in [("a", "old"), ("b", "new")] {
            let mut file = File::create(place(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.sync_all().unwrap();
        }
        File::open(place("")).unwrap().sync_all().unwrap();
        fs::rename(place("b"), place("a")).unwrap();
        assert_eq!(fs::read_to_string(place("a")).unwrap(), "new");
        cut(&mount, seed);
        let back = folder.0.join("back");
        let (a, b) = (fs::read_to_string(back.join("a")).unwrap(), fs::read_to_string(back.join("b")).ok());
        assert!((a == "new") == b.is_none() && (a == "old") == (b.as_deref() == Some("new")), "seed {seed}");
        found.insert(a);
        assert!(!back.join(".dbdyno-removed").exists());
        for name in ["a", "b"] {
            let _ = fs::remove_file(back.join(name));
        }
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn a_synced_folder_keeps_its_names() {
    let Some(folder) = Folder::new("names") else { return };
    for seed in 0..20 {
        let mount = with_cuts(&folder);
        let place = folder.0.join("mounted/sub");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("x"), "x").unwrap();
        File::open(place.join("x")).unwrap().sync_all().unwrap();
        fs::remove_file(place.join("x")).unwrap();
        fs::write(place.join("y"), "y").unwrap();
        File::open(place.join("y")).unwrap().sync_all().unwrap();
        File::open(&place).unwrap().sync_all().unwrap();
        File::open(folder.0.join("mounted")).unwrap().sync_all().unwrap();
        cut(&mount, seed);
        let back = folder.0.join("back/sub");
        assert!(!back.join("x").exists(), "seed {seed}");
        assert_eq!(fs::read_to_string(back.join("y")).unwrap(), "y");
        fs::remove_dir_all(back).unwrap();
    }
}

#[test]
fn a_lying_flush_loses_what_was_synced() {
    let Some(folder) = Folder::new("lying") else { return };
    let lost = (0..20).any(|seed| {
        let mount = folder.mount(&json!({"cuts": true, "faults": [{"kind": "lying-flush"}]}));
        let file = File::create(folder.0.join("mounted/f")).unwrap();
        file.write_all_at(&[1; 4_096], 0).unwrap();
        file.sync_all().unwrap();
        drop(file);
        let rows = mount.faults();
        assert!(rows.iter().any(|row| row.file == "f"), "{rows:?}");
        cut(&mount, seed);
        let left = fs::read(folder.0.join("back/f")).unwrap_or_default();
        let _ = fs::remove_file(folder.0.join("back/f"));
        left != [1; 4_096]
    });
    assert!(lost);
}

#[test]
fn a_flush_that_failed_once_loses_its_pages_although_the_next_succeeds() {
    let Some(folder) = Folder::new("failed") else { return };
    let mut lost = 0;
    for seed in 0..20 {
        fs::write(folder.0.join("back/f"), [0; 4_096]).unwrap();
        let mount = folder.mount(&json!({"cuts": true, "faults": [{"kind": "failed-flush", "path": "f", "count": 1}]}));
        let file = File::options().write(true).open(folder.0.join("mounted/f")).unwrap();
        file.write_all_at(&[1; 4_096], 0).unwrap();
        assert!(file.sync_all().is_err());
        assert!(file.sync_all().is_ok());
        drop(file);
        cut(&mount, seed);
        lost += u32::from(fs::read(folder.0.join("back/f")).unwrap() != [1; 4_096]);
    }
    assert!((1..20).contains(&lost), "{lost} of 20");
}

#[test]
fn the_power_goes_with_the_change_that_was_drawn() {
    let Some(folder) = Folder::new("armed") else { return };
    let mount = with_cuts(&folder);
    let file = File::create(folder.0.join("mounted/f")).unwrap();
    mount.arm(2);
    assert!(file.write_all_at(&[1; 10], 0).is_ok() && file.write_all_at(&[1; 10], 10).is_ok() && !mount.is_off());
    assert!(file.write_all_at(&[1; 10], 20).is_err() && mount.is_off() && file.sync_all().is_err());
    drop(file);
    cut(&mount, 1);
}
