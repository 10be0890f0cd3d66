//! Tests of the files in numbered folders.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use dyno_evidence::numbered::{BlockTotals, NumberedFiles, Wanted, numbered_files};

const ALL: RangeInclusive<i64> = 0..=i64::MAX;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("dyno-numbered-{}-{name}", std::process::id()));
    fs::remove_dir_all(&path).ok();
    path
}

fn listed(folder: &Path, blocks: &RangeInclusive<i64>, known: &HashMap<i64, (i64, i64)>) -> NumberedFiles {
    numbered_files(folder, "m", Wanted { length: 10, blocks, known }).unwrap()
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
    let found = listed(&folder, &ALL, &HashMap::new());
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
    assert_eq!(listed(&folder("missing"), &ALL, &HashMap::new()).files, []);
}

#[test]
fn blocks_that_are_known_are_looked_at_only_if_they_are_asked_for_or_their_folders_differ() {
    let folder = folder("known");
    for number in [3, 4, 12, 25] {
        fs::create_dir_all(folder.join(number.to_string())).unwrap();
        fs::write(folder.join(number.to_string()).join("m"), "").unwrap();
    }
    let seen = |known: &[(i64, (i64, i64))]| {
        let found = listed(&folder, &(2..=2), &known.iter().copied().collect());
        (found.files.iter().map(|file| file.number).collect::<Vec<_>>(), found.unseen)
    };
    assert_eq!(seen(&[(0, (2, 7)), (1, (1, 12)), (2, (1, 25))]), (vec![25], vec![0, 1]));
    assert_eq!(seen(&[(0, (2, 8)), (1, (1, 12))]), (vec![3, 4, 25], vec![1]));
    assert_eq!(seen(&[(1, (2, 12))]), (vec![3, 4, 12, 25], vec![]));
    fs::remove_dir_all(&folder).unwrap();
}
