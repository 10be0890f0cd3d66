//! Tests that a part is complete or absent, and that its content is read back unchanged.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use dyno_evidence::{Call, CallKind, CallsWriter, EvidenceError, Failure, NONE, read_calls};
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("dyno-evidence-{name}-{}", std::process::id()));
    fs::remove_dir_all(&dir).ok();
    dir
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|w| (*w).to_owned()).collect()
}

#[test]
fn what_is_written_is_read_back() {
    let dir = folder("roundtrip");
    let mut part = CallsWriter::create(&dir, "p", &words(&["base", "new"]), &words(&["s1", "s2"])).unwrap();
    let calls = [
        Call { started_ns: 10, elapsed_ns: 5, arm: 1, statement: 1, rows: 3, ..Call::new() },
        Call { intended_ns: 9, kind: CallKind::Commit, error: 1, redo_bytes: 77, ..Call::new() },
    ];
    part.push(&calls, &[Failure { expected: Some(true), ..String::from("40001").into() }]).unwrap();
    assert_eq!(part.finish().unwrap(), 2);
    let read = read_calls(&dir.join("p.parquet")).unwrap();
    let word = |n: u32| read.words[n as usize].as_str();
    assert_eq!(word(read.arm[0]), "new");
    assert_eq!(word(read.kind[1]), "commit");
    assert_eq!((read.error[0], word(read.error[1])), (u32::MAX, "40001"));
    assert_eq!((read.expected[0], read.expected.len()), (None, 2));
    assert_eq!((read.rows[0], read.rows[1]), (3, NONE));
    assert_eq!((read.redo_bytes[1], read.intended_ns[1]), (77, 9));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn nothing_is_in_place_before_the_part_is_finished() {
    let dir = folder("aside");
    let mut part = CallsWriter::create(&dir, "p", &words(&["a"]), &words(&["s"])).unwrap();
    part.push(&[Call::new()], &[]).unwrap();
    assert!(!dir.join("p.parquet").exists());
    drop(part);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "a dropped part leaves nothing");
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_torn_part_is_an_error_that_names_the_file() {
    let dir = folder("torn");
    let mut part = CallsWriter::create(&dir, "p", &words(&["a"]), &words(&["s"])).unwrap();
    part.push(&[Call::new(); 200], &[]).unwrap();
    part.finish().unwrap();
    let path = dir.join("p.parquet");
    let whole = fs::read(&path).unwrap();
    for cut in [0, 3, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = read_calls(&path).unwrap_err();
        assert!(matches!(error, EvidenceError::Part { .. }), "{error}");
        assert!(error.to_string().contains("p.parquet"), "{error}");
    }
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_place() {
    let Err(error) = CallsWriter::create("/proc/no/such".as_ref(), "p", &[], &[]) else {
        panic!("created below /proc")
    };
    assert!(error.to_string().starts_with("/proc/no/such"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Flipped bytes give an error or columns of equal length, never a panic.
    #[test]
    fn a_damaged_part_never_panics(at in 0usize..4000, bits in 1u8..=255) {
        let dir = folder(&format!("fuzz-{at}-{bits}"));
        let mut part = CallsWriter::create(&dir, "p", &words(&["a"]), &words(&["s"])).unwrap();
        part.push(&[Call::new(); 50], &[]).unwrap();
        part.finish().unwrap();
        let path = dir.join("p.parquet");
        let mut bytes = fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= bits;
        fs::write(&path, bytes).unwrap();
        let read = read_calls(&path);
        fs::remove_dir_all(dir).unwrap();
        if let Ok(columns) = read {
            prop_assert_eq!(columns.elapsed_ns.len(), columns.arm.len());
        }
    }
}
