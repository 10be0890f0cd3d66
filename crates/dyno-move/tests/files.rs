//! Tests that a file returns the rows that were hashed when it was written, and that an abandoned file disappears.

use std::path::PathBuf;
use std::sync::Arc;

use dyno_move::{Ahead, Columns, Cutter, Sink, TableSpec, Tally, hash_batch, read_back};

const KINDS: [&str; 16] = [
    "bool",
    "int2",
    "int4",
    "int8",
    "oid",
    "float4",
    "float8",
    "decimal",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "text",
    "jsonb",
    "uuid",
    "bytea",
];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("dyno-move-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn table() -> TableSpec {
    let columns = KINDS.iter().map(|kind| {
        format!(r#"{{"name": "{kind}", "kind": "{kind}", "precision": 12, "scale": 2, "pg_type": "{kind}"}}"#)
    });
    let text = format!(r#"{{"columns": [{}]}}"#, columns.collect::<Vec<_>>().join(","));
    serde_json::from_str(&text).expect("a table")
}

/// Returns the bytes of a valid value of this kind, derived from `seed`.
fn value(kind: &str, seed: u8) -> Vec<u8> {
    match kind {
        "bool" => vec![seed & 1],
        "int2" => vec![seed, 1],
        "int4" | "oid" | "float4" | "date" => vec![0, 0, seed, 7],
        "int8" | "float8" | "time" | "timestamp" | "timestamptz" => vec![0, 0, 0, 0, 0, 9, seed, 1],
        "decimal" => vec![0, 1, 0, 0, 0, 0, 0, 2, 0, seed],
        "jsonb" => [b"\x01{\"a\": ", seed.to_string().as_bytes(), b"}"].concat(),
        "uuid" => vec![seed; 16],
        "text" => format!("é{seed}").into_bytes(),
        _ => vec![0xff, seed],
    }
}

fn stream(rows: impl Iterator<Item = u8>, nulls: bool) -> Vec<u8> {
    let mut out = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for seed in rows {
        out.extend((KINDS.len() as i16).to_be_bytes());
        for (place, kind) in KINDS.iter().enumerate() {
            if nulls && (usize::from(seed) + place) % 3 == 0 {
                out.extend((-1_i32).to_be_bytes());
                continue;
            }
            let bytes = value(kind, seed);
            out.extend((bytes.len() as i32).to_be_bytes());
            out.extend(bytes);
        }
    }
    out.extend((-1_i16).to_be_bytes());
    out
}

fn write(path: &std::path::Path, bytes: &[u8], batch_bytes: usize) -> Tally {
    let table = table();
    let mut columns = Columns::new(&table, batch_bytes);
    let mut sink = Sink::create(path, Arc::clone(columns.schema()), 1, 1 << 20).expect("a file");
    let mut tally = Tally::default();
    let mut cutter = Cutter::new(KINDS.len());
    let mut give = |columns: &mut Columns| {
        let batch = columns.take().expect("a batch");
        tally = tally.plus(hash_batch(&batch).expect("a hash"));
        sink.write(&batch).expect("is written");
    };
    for part in bytes.chunks(1_000) {
        cutter
            .push(part, |row| {
                if columns.push(row)? {
                    give(&mut columns);
                }
                Ok(())
            })
            .expect("rows");
    }
    give(&mut columns);
    sink.finish().expect("a whole file");
    tally
}

#[test]
fn the_file_gives_back_what_came() {
    let folder = folder("back");
    for (name, nulls, batch) in [("plain", false, 1 << 20), ("nulls", true, 500)] {
        let place = folder.join(format!("{name}.parquet"));
        let came = write(&place, &stream(0..200, nulls), batch);
        assert_eq!(came.rows, 200);
        assert_eq!(read_back(&place).expect("reads"), came);
        let backwards = write(&place, &stream((0..200).rev(), nulls), batch);
        assert_eq!(backwards, came, "the order of rows makes no difference");
        for other in [0..199_u8, 1..201] {
            assert_ne!(write(&place, &stream(other, nulls), batch).sum, came.sum);
        }
    }
    std::fs::remove_dir_all(folder).ok();
}

#[test]
fn files_are_one_stream_and_the_one_that_is_refused_comes_after_all_before_it() {
    let folder = folder("ahead");
    let files = [("a", 0..90_u8), ("none", 0..0), ("b", 90..200)];
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.join(format!("{name}.parquet"))).collect();
    let came: Vec<Tally> =
        files.iter().zip(&paths).map(|((_, rows), path)| write(path, &stream(rows.clone(), true), 500)).collect();
    let given = |paths: &[PathBuf]| {
        let ahead = Ahead::of_copy(paths.to_vec(), 1_000);
        let pieces: Vec<u8> = std::iter::from_fn(|| ahead.next().expect("a piece")).collect::<Vec<_>>().concat();
        (pieces, ahead.tallies())
    };
    let alone: Vec<Vec<u8>> = paths.iter().map(|path| given(std::slice::from_ref(path)).0).collect();
    let (head, end) = (&alone[1][..19], &alone[1][19..]);
    assert_eq!((head, end), (&stream(0..0, true)[..19], &[0xff_u8, 0xff][..]));
    let rows: Vec<u8> = alone.iter().map(|one| &one[19..one.len() - 2]).collect::<Vec<_>>().concat();
    assert_eq!(given(&paths), ([head, &rows, end].concat(), (200, came.clone())), "one head, one end");
    let lost = Ahead::of_copy(vec![paths[0].clone(), folder.join("lost.parquet")], 1_000);
    let mut bytes = 0;
    let error = loop {
        match lost.next() {
            Ok(piece) => bytes += piece.expect("no end before the error").len(),
            Err(error) => break error,
        }
    };
    assert_eq!(bytes, alone[0].len() - 2, "all of the first, without an end");
    assert!(error.to_string().contains("lost.parquet"), "{error}");
    assert_eq!(lost.tallies().1, came[..1]);
    // A receiver that leaves is not waited for.
    drop(Ahead::of_copy(paths, 1_000));
    std::fs::remove_dir_all(folder).ok();
}

#[test]
fn a_file_that_was_given_up_is_not_there() {
    let folder = folder("given-up");
    let place = folder.join("a.parquet");
    let columns = Columns::new(&table(), 1 << 20);
    drop(Sink::create(&place, Arc::clone(columns.schema()), 1, 1 << 20).expect("a file"));
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
    std::fs::remove_dir_all(folder).ok();
}

#[test]
fn what_arrow_cannot_hold_is_named() {
    let mut table = table();
    table.columns.retain(|column| column.name == "timestamp");
    for (bits, word) in [(i64::MAX, "infinity"), (i64::MIN, "-infinity"), (i64::MAX - 1, "294246")] {
        let mut bytes = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x08".to_vec();
        bytes.extend(bits.to_be_bytes());
        let mut columns = Columns::new(&table, 1 << 20);
        let error = Cutter::new(1).push(&bytes, |row| columns.push(row).map(|_| ())).expect_err("is refused");
        assert!(error.to_string().contains(word), "{error}");
    }
}
