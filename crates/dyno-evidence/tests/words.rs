//! Tests that columns of words packed by dbdyno's own encoder are read back unchanged by the library's reader; other
//! tests read them with `DuckDB` and pyarrow.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use dyno_evidence::table::{Column, Kind, Table, Values, read_table};
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("dyno-evidence-{name}-{}", std::process::id()));
    fs::remove_dir_all(&dir).ok();
    dir
}

fn read_back(dir: &std::path::Path) -> Vec<Option<String>> {
    let mut found = Vec::new();
    for batch in read_table(&dir.join("t.parquet"), &["word"]).unwrap() {
        let (numbers, words) = batch.unwrap().words("word").unwrap();
        found.extend(numbers.iter().map(|&n| words.get(n as usize).cloned()));
    }
    found
}

fn write(dir: &std::path::Path, pieces: Vec<(Vec<u32>, Vec<String>)>) -> Vec<Option<String>> {
    let columns = [Column::optional("word", Kind::Words), Column::new("at", Kind::I64)];
    let mut table = Table::create(dir, "t", &columns).unwrap();
    let mut expected = Vec::new();
    for (numbers, words) in pieces {
        expected.extend(numbers.iter().map(|&n| words.get(n as usize).cloned()));
        let at = Values::I64((0..numbers.len() as i64).collect());
        table.write(&mut [Values::Words(numbers, words), at]).unwrap();
    }
    assert_eq!(table.finish().unwrap(), expected.len() as u64);
    expected
}

/// 70,000 distinct words need numbers of 17 bits; 400,000 rows give several pages and two row groups.
#[test]
fn many_words_over_several_pages_and_row_groups() {
    let dir = folder("many-words");
    let words: Vec<String> = (0..70_000).map(|n| format!("statement {n}")).collect();
    let numbers = (0..400_000_u32).map(|at| at * 7_919 % 70_000).collect();
    let expected = write(&dir, vec![(numbers, words)]);
    assert!(read_back(&dir) == expected);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_column_without_any_word_and_one_without_rows() {
    for numbers in [vec![u32::MAX; 100], Vec::new()] {
        let dir = folder(&format!("no-words-{}", numbers.len()));
        let expected = write(&dir, vec![(numbers, Vec::new())]);
        assert_eq!(read_back(&dir), expected);
        fs::remove_dir_all(dir).unwrap();
    }
}

/// Returns a column of words, in the pieces in which it is written.
fn pieces() -> impl Strategy<Value = Vec<(Vec<u32>, Vec<String>)>> {
    // Runs and changes, few and many words, so that both kinds of packing come, and several widths.
    let numbers = |most: u32| {
        let missing = Just(u32::MAX);
        let run = (prop_oneof![9 => 0..most, 1 => missing], 1usize..60);
        prop::collection::vec(run, 0..80)
            .prop_map(|runs| runs.into_iter().flat_map(|(n, count)| vec![n; 1 + count / 12 * (count % 7)]).collect())
    };
    let piece = (1u32..700).prop_flat_map(move |most| {
        (numbers(most), 0u32..3).prop_map(move |(numbers, turn): (Vec<u32>, u32)| {
            let word = |n: u32| format!("word {} é", (n + turn * 5) % 600);
            (numbers, (0..most).map(word).collect())
        })
    });
    prop::collection::vec(piece, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However the column is split into pieces, another reader (the Parquet library's own) reads the same words.
    #[test]
    fn words_are_read_back_as_they_were_written(pieces in pieces(), seed in any::<u64>()) {
        let dir = folder(&format!("words-{seed}"));
        let expected = write(&dir, pieces);
        let found = read_back(&dir);
        fs::remove_dir_all(&dir).unwrap();
        prop_assert_eq!(found, expected);
    }
}
