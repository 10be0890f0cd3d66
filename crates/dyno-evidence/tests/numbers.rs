//! Tests that columns of whole numbers packed by dbdyno's own encoder are read back unchanged by the library's reader;
//! other tests read them with `DuckDB` and pyarrow.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use dyno_evidence::NONE;
use dyno_evidence::table::{Column, Kind, Table, Values, read_table};
use proptest::prelude::*;

const COLUMNS: [Column; 5] = [
    Column::optional("optional", Kind::I64),
    Column::new("wide", Kind::I64),
    Column::new("unsigned", Kind::U64),
    Column::new("narrow", Kind::U32),
    Column::optional("tiny", Kind::U8),
];

fn folder(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("dyno-evidence-numbers-{name}-{}", std::process::id()));
    fs::remove_dir_all(&dir).ok();
    dir
}

/// Returns columns with the same bits, truncated where a column is narrower.
fn values(numbers: &[i64]) -> [Values; 5] {
    [
        Values::I64(numbers.to_vec()),
        Values::I64(numbers.to_vec()),
        Values::U64(numbers.iter().map(|n| *n as u64).collect()),
        Values::U32(numbers.iter().map(|n| *n as u32).collect()),
        Values::U8(numbers.iter().map(|n| *n as u8).collect()),
    ]
}

fn write(dir: &Path, pieces: &[Vec<i64>]) {
    let mut table = Table::create(dir, "t", &COLUMNS).unwrap();
    for piece in pieces {
        table.write(&mut values(piece)).unwrap();
    }
    assert_eq!(table.finish().unwrap(), pieces.iter().map(Vec::len).sum::<usize>() as u64);
}

fn assert_read_back(dir: &Path, numbers: &[i64]) {
    let names = COLUMNS.map(|column| column.name);
    let (mut at, path) = (0, dir.join("t.parquet"));
    for rows in read_table(&path, &names).unwrap() {
        let rows = rows.unwrap();
        let part = &numbers[at..at + rows.len()];
        at += rows.len();
        assert_eq!(rows.i64s("optional").unwrap(), part);
        assert_eq!(rows.i64s("wide").unwrap(), part);
        assert_eq!(rows.u64s("unsigned").unwrap(), part.iter().map(|n| *n as u64).collect::<Vec<_>>());
        assert_eq!(rows.u32s("narrow").unwrap(), part.iter().map(|n| *n as u32).collect::<Vec<_>>());
        assert_eq!(rows.u8s("tiny").unwrap(), part.iter().map(|n| *n as u8).collect::<Vec<_>>());
    }
    assert_eq!(at, numbers.len());
}

/// 600,000 rows give three row groups of several pages each.
#[test]
fn many_numbers_over_several_pages_and_row_groups() {
    let dir = folder("many");
    let numbers: Vec<i64> = (0..600_000).map(|at: i64| if at % 7 == 0 { NONE } else { at * at % 7_919 * at }).collect();
    let pieces: Vec<Vec<i64>> = numbers.chunks(32_768).map(<[i64]>::to_vec).collect();
    write(&dir, &pieces);
    assert_read_back(&dir, &numbers);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_column_without_any_number_and_one_without_rows() {
    for numbers in [vec![NONE; 100_000], Vec::new(), vec![NONE], vec![5]] {
        let dir = folder(&format!("none-{}", numbers.len()));
        write(&dir, std::slice::from_ref(&numbers));
        assert_read_back(&dir, &numbers);
        fs::remove_dir_all(dir).unwrap();
    }
}

/// Returns a column of numbers, in the pieces in which it is written: runs, even steps, random bits, extreme values.
fn pieces() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let ends = prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(0), Just(-1), Just(i64::from(u32::MAX)), Just(255)];
    let stretch = prop_oneof![
        (any::<i64>(), 1usize..300).prop_map(|(n, count)| vec![n; count]),
        (any::<i64>(), any::<i64>(), 1usize..300)
            .prop_map(|(n, step, count)| (0..count as i64).map(|at| n.wrapping_add(at.wrapping_mul(step))).collect()),
        prop::collection::vec(any::<i64>(), 1..80),
        (0u32..63, prop::collection::vec(any::<i64>(), 1..300))
            .prop_map(|(bits, numbers)| numbers.into_iter().map(|n| n & ((1 << bits) - 1)).collect()),
        prop::collection::vec(ends, 1..80),
    ];
    let piece = prop::collection::vec(stretch, 0..6).prop_map(|stretches| stretches.concat());
    prop::collection::vec(piece, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// However the column is split into pieces, another reader (the Parquet library's own) reads the same numbers.
    #[test]
    fn numbers_are_read_back_as_they_were_written(pieces in pieces(), seed in any::<u64>()) {
        let dir = folder(&format!("any-{seed}"));
        write(&dir, &pieces);
        assert_read_back(&dir, &pieces.concat());
        fs::remove_dir_all(&dir).unwrap();
    }
}
