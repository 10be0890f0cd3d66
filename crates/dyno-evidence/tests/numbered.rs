//! Files of numbered folders.

use std::fs;
use std::path::PathBuf;

use dyno_evidence::numbered::{BlockTotals, numbered_files};

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-numbered-{}-{name}", std::process::id()));
    fs::remove_dir_all(&path).ok();
    path
}

#[test]
fn files_are_listed_by_number_and_added_up_by_block() {
    let folder = folder("listed");
    for (name, text) in [("000012", Some("abc")), ("000007", Some("ab")), ("13", None), ("²", Some("no"))] {
        fs::create_dir_all(folder.join(name)).unwrap();
        if let Some(text) = text {
            fs::write(folder.join(name).join("m"), text).unwrap();
        }
    }
    fs::write(folder.join("99"), "no folder").unwrap();
    let found = numbered_files(&folder, "m").unwrap();
    let listed: Vec<_> = found.files.iter().map(|file| (file.number, file.size)).collect();
    assert_eq!(listed, [(7, 2), (12, 3)]);
    assert_eq!(found.newest, Some(99));
    let seconds = |at: usize| found.files[at].changed_ns / 1_000_000_000;
    let rest = |at: usize| found.files[at].changed_ns % 1_000_000_000;
    let whole = found.totals(100);
    let (seconds_sum, rest_sum) = (seconds(0) + seconds(1), rest(0) + rest(1));
    let expected =
        BlockTotals { block: 0, count: 2, numbers: 19, sizes: 5, seconds: seconds_sum, nanoseconds: rest_sum };
    assert_eq!(whole, [expected]);
    let blocks: Vec<_> = found.totals(10).iter().map(|one| (one.block, one.count, one.numbers)).collect();
    assert_eq!(blocks, [(0, 1, 7), (1, 1, 12)]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_folder_that_is_missing_has_no_files() {
    assert_eq!(numbered_files(&folder("missing"), "m").unwrap().files, []);
}
