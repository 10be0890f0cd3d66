//! Tests that a column of flags packed by dbdyno's own encoder is read back unchanged by the library's reader.

#![allow(clippy::unwrap_used)]

use std::fs;

use dyno_evidence::table::{Column, Kind, Table, Values, read_table};
use proptest::prelude::*;

fn written_and_read(name: &str, pieces: &[Vec<bool>]) -> Vec<bool> {
    let dir = std::env::temp_dir().join(format!("dyno-evidence-{name}-{}", std::process::id()));
    fs::remove_dir_all(&dir).ok();
    let mut table = Table::create(&dir, "t", &[Column::new("flag", Kind::Bool)]).unwrap();
    for flags in pieces {
        table.write(&mut [Values::Bool(flags.clone())]).unwrap();
    }
    table.finish().unwrap();
    let mut found = Vec::new();
    for batch in read_table(&dir.join("t.parquet"), &["flag"]).unwrap() {
        found.extend(batch.unwrap().bools("flag").unwrap());
    }
    fs::remove_dir_all(dir).unwrap();
    found
}

/// 400,000 rows give several pages and two row groups; written in pieces of 40,001 rows, no page begins where a piece
/// begins.
#[test]
fn many_flags_over_several_pages_and_row_groups() {
    let flags: Vec<bool> = (0..400_000_u64).map(|at| at * at % 7 < 3).collect();
    let pieces: Vec<Vec<bool>> = flags.chunks(40_001).map(<[bool]>::to_vec).collect();
    assert!(written_and_read("many-flags", &pieces) == flags);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn flags_in_pieces_of_any_length_are_read_back(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 0..40), 1..12),
    ) {
        prop_assert_eq!(written_and_read("flags", &pieces), pieces.concat());
    }
}
