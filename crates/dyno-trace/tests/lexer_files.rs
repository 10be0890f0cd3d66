//! Tests files as they occur in practice: compressed, in directories, by pattern, duplicate, damaged, or not traces at
//! all.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::lexer_common::{read_path, real_files};
use dyno_trace::oracle_10046::compression::Compression;
use dyno_trace::oracle_10046::files::{ReadOptions, read_file};
use dyno_trace::oracle_10046::input::{Source, expand};
use dyno_trace::oracle_10046::record::Reason;
use dyno_trace::oracle_10046::refusal::Refusal;

const CLOSE: &str = "CLOSE #7:c=0,e=1,dep=0,type=0,tim=5793511831311\n";

/// Function that returns true for the expected refusal.
type Expected = fn(&Refusal) -> bool;

/// A temporary directory that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dyno-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn gz(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bz2(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn refused(path: &Path) -> Refusal {
    read_path(path, &ReadOptions::default()).unwrap_err()
}

fn compression(path: &Path) -> Compression {
    let source = Source::File(path.to_owned());
    read_file::<Refusal>(&source, &ReadOptions::default(), &mut Ok).unwrap().compression
}

#[test]
fn compression_is_told_by_content_and_may_have_several_parts() {
    let folder = Folder::new("packed");
    let text = CLOSE.repeat(3000);
    let half = text.len() / 2;
    let (first, second) = text.as_bytes().split_at(half);
    let plain = read_path(&folder.file("plain", &text), &ReadOptions::default()).unwrap();
    let zst = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    let packed = [
        (Compression::Gzip, [gz(first), gz(second)].concat()),
        (Compression::Bzip2, [bz2(first), bz2(second)].concat()),
        (Compression::Zstd, [zst(first), zst(second)].concat()),
    ];
    for (expected, bytes) in packed {
        let path = folder.file("packed.trc", bytes);
        for (threads, chunk_bytes) in [(0, 256 * 1024), (1, 256 * 1024), (1, 1000)] {
            let options = ReadOptions { threads, chunk_bytes, ..ReadOptions::default() };
            assert_eq!(read_path(&path, &options).unwrap(), plain, "{expected}");
        }
        assert_eq!(compression(&path), expected);
    }
}

#[test]
fn xz_lzma_and_the_others_give_the_records_of_real_files() {
    let folder = Folder::new("real");
    let Some(root) = real_files().first().map(|file| file.parent().unwrap().to_owned()) else {
        return;
    };
    let packed = [
        ("priitp2__trctools__tests_traces_lobread.trc.xz", Compression::Xz),
        ("priitp2__trctools__tests_traces_lobread.trc.lzma", Compression::Lzma),
        ("priitp2__trctools__tests_traces_mixed_execs.trc.bz2", Compression::Bzip2),
        ("priitp2__trctools__tests_traces_two_statements_one_cursor.trc.gz", Compression::Gzip),
    ];
    let readings = packed.map(|(name, expected)| {
        let path = root.join(name);
        assert_eq!(compression(&path), expected);
        read_path(&path, &ReadOptions::default()).unwrap()
    });
    assert_eq!(readings[0], readings[1]);
    let plain = root.join("priitp2__trctools__tests_traces_two_statements_one_cursor.trc");
    assert_eq!(readings[3], read_path(&plain, &ReadOptions::default()).unwrap());
    let xz = std::fs::read(root.join(packed[0].0)).unwrap();
    let twice = read_path(&folder.file("twice", xz.repeat(2)), &ReadOptions::default()).unwrap();
    assert_eq!(twice.records.len(), 2 * readings[0].records.len());
}

#[test]
fn damaged_compression_is_told_and_what_came_before_is_given() {
    let folder = Folder::new("damaged");
    let lines: String = (0..60_000).map(|i| CLOSE.replace("831311", &format!("{i:06}"))).collect();
    let packed = gz(lines.as_bytes());
    let path = folder.file("cut.trc.gz", &packed[..packed.len() / 2]);
    let mut records = 0;
    let source = Source::File(path.clone());
    let result = read_file::<Refusal>(&source, &ReadOptions::default(), &mut |batch| {
        records += batch.records.len();
        Ok(batch)
    });
    let refusal = result.unwrap_err();
    assert!(matches!(refusal, Refusal::Damaged { compression: Compression::Gzip, .. }));
    assert!(refusal.to_string().contains("cut.trc.gz"), "{refusal}");
    assert!(records > 1000, "{records}");
}

#[test]
fn directories_and_patterns_are_expanded_in_natural_order() {
    let folder = Folder::new("expand");
    for name in ["x_ora_10.trc", "x_ora_9.trc", "x_ora_9.trm", "alert.log", "sub/x_ora_11.trc.gz"] {
        folder.file(name, CLOSE);
    }
    let names = |given: &[PathBuf]| {
        let (sources, refusals) = expand(given);
        assert!(refusals.is_empty(), "{refusals:?}");
        let bare = |source: &Source| source.path().strip_prefix(&folder.0).unwrap().to_owned();
        sources.iter().map(|source| bare(source).display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(std::slice::from_ref(&folder.0)), ["sub/x_ora_11.trc.gz", "x_ora_9.trc", "x_ora_10.trc"]);
    assert_eq!(names(&[folder.0.join("*.trc")]), ["x_ora_9.trc", "x_ora_10.trc"]);
    assert_eq!(names(&[folder.0.join("alert.log")]), ["alert.log"]);
    assert_eq!(expand(&["-"]).0, [Source::Stdin]);
}

#[test]
fn what_cannot_be_found_is_refused_and_the_others_stay() {
    let folder = Folder::new("missing");
    let file = folder.file("a.trc", CLOSE);
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    let given = [file.clone(), folder.0.join("none*.trc"), folder.0.join("empty"), file.clone()];
    let (sources, refusals) = expand(&given);
    assert_eq!(sources, [Source::File(file)]);
    assert!(matches!(refusals[..], [Refusal::NoMatch { .. }, Refusal::NoTraces { .. }, Refusal::Twice { .. }]));
    assert!(matches!(refused(&folder.0.join("gone.trc")), Refusal::Unreadable { .. }));
}

#[test]
fn what_is_no_trace_is_refused_with_a_sentence() {
    let folder = Folder::new("refused");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(CLOSE.bytes().flat_map(|b| [b, 0])).collect();
    let sqlnet = "--- TRACE CONFIGURATION INFORMATION FOLLOWS ---\n(1) [21-NOV-2026] nscon: entry\n";
    let yashan = "YashanDB\nPARSE #12 c=1,e=2,yct=3\n";
    let cases: [(&[u8], Expected); 8] = [
        (b"", |r| matches!(r, Refusal::Empty { .. })),
        (&program[..200_000], |r| matches!(r, Refusal::Binary { .. })),
        (&utf16, |r| matches!(r, Refusal::Utf16 { .. })),
        (sqlnet.as_bytes(), |r| matches!(r, Refusal::SqlNet { .. })),
        (yashan.as_bytes(), |r| matches!(r, Refusal::Yashan { .. })),
        (b"TKPROF: Release 19.0.0.0.0\n", |r| matches!(r, Refusal::Report { .. })),
        (b"Registered qb: SEL$1\n", |r| matches!(r, Refusal::Optimizer { .. })),
        (b"*** 2017-01-18 12:24:14.701\nhello\n", |r| matches!(r, Refusal::NoRecords { .. })),
    ];
    for (content, expected) in cases {
        let path = folder.file("x.trc", content);
        let refusal = refused(&path);
        assert!(expected(&refusal), "{refusal:?}");
        assert!(refusal.to_string().starts_with(&path.display().to_string()), "{refusal}");
        assert!(refusal.next_step().ends_with('.'));
        assert_eq!(refusal.path(), Some(path.as_path()));
    }
}

#[test]
fn optimizer_traces_of_any_length_are_refused_but_mixed_ones_are_read() {
    let folder = Folder::new("optimizer");
    let long = "Registered qb: SEL$1 0x8bda8f18 (PARSER)\n".repeat(60_000);
    assert!(matches!(refused(&folder.file("a.trc", &long)), Refusal::Optimizer { .. }));
    let mixed = read_path(&folder.file("b.trc", long + CLOSE), &ReadOptions::default()).unwrap();
    assert!(mixed.shown().last().unwrap().starts_with("Call"));
    let Some(real) = real_files().first().map(|file| file.with_file_name("not-10046")) else {
        return;
    };
    for entry in real.read_dir().unwrap() {
        assert!(matches!(refused(&entry.unwrap().path()), Refusal::Optimizer { .. }));
    }
}

#[test]
fn a_file_that_was_rotated_begins_with_nuls_and_is_read() {
    let folder = Folder::new("rotated");
    let path = folder.file("x.trc", [vec![0; 3 << 20], CLOSE.into()].concat());
    for threads in [0, 2] {
        let options = ReadOptions { threads, ..ReadOptions::default() };
        let reading = read_path(&path, &options).unwrap();
        assert_eq!((reading.records.len(), reading.unread.len()), (1, 1));
    }
}

#[test]
fn a_file_cut_inside_its_last_clock_loses_that_record_only() {
    let folder = Folder::new("cut");
    let path = folder.file("x.trc", CLOSE.repeat(500) + &CLOSE[..CLOSE.len() - 4]);
    for threads in [0, 2] {
        let options = ReadOptions { threads, chunk_bytes: 4000, ..ReadOptions::default() };
        let reading = read_path(&path, &options).unwrap();
        assert_eq!((reading.records.len(), reading.reasons()), (500, vec![Reason::Truncated]));
        assert_eq!(reading.unread[0].1, 501);
    }
}

#[test]
fn progress_counts_the_bytes_on_disk() {
    let folder = Folder::new("progress");
    let text = CLOSE.repeat(100_000);
    let packed = gz(text.as_bytes());
    for (path, bytes) in [(folder.file("x.trc", &text), text.len()), (folder.file("y.trc.gz", &packed), packed.len())] {
        let options = ReadOptions { threads: 2, ..ReadOptions::default() };
        read_path(&path, &options).unwrap();
        assert_eq!(options.taken.load(Ordering::Relaxed), bytes as u64);
    }
}

#[test]
fn an_error_of_the_taker_ends_the_reading() {
    let folder = Folder::new("ends");
    let path = folder.file("x.trc", CLOSE.repeat(100_000));
    for threads in [0, 1, 3] {
        let options = ReadOptions { threads, chunk_bytes: 10_000, ..ReadOptions::default() };
        let mut batches = 0;
        let source = Source::File(path.clone());
        let result = read_file(&source, &options, &mut |batch| {
            batches += 1;
            if batches == 3 { Err(Refusal::Empty { path: PathBuf::new() }) } else { Ok(batch) }
        });
        assert!(result.is_err());
        assert_eq!(batches, 3);
    }
}

#[test]
fn a_small_archive_that_unpacks_without_end_is_stopped_while_it_is_read() {
    let folder = Folder::new("bomb");
    let text = [CLOSE.as_bytes(), &b"\n".repeat(98_000_000)].concat();
    for (name, packed) in [("gzip", gz(&text)), ("zstd", zstd::encode_all(&text[..], 1).unwrap())] {
        let path = folder.file(&format!("bomb-{name}.trc"), &packed);
        let mut bytes = 0;
        let ended = read_file::<Refusal>(&Source::File(path), &ReadOptions::default(), &mut |batch| {
            bytes += batch.bytes.len();
            Ok(batch)
        });
        let refusal = ended.unwrap_err();
        assert!(matches!(refusal, Refusal::TooDense { .. }), "{refusal}");
        assert!(refusal.next_step().contains("unpack it"), "a trace all the same has a way in");
        assert!(bytes < 80 << 20 && bytes < text.len(), "{bytes}");
    }
}

/// Archives of every kind with flipped bits are read or refused; reading never panics.
#[test]
#[ignore = "takes a minute; part of the soak"]
fn soak_fuzz_archives() {
    let folder = Folder::new("fuzz-archives");
    let text = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/orders.trc")).unwrap();
    let kinds = [gz(&text), bz2(&text), zstd::encode_all(&text[..], 3).unwrap()];
    let mut state = u64::from(std::process::id()) | 1;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let (start, mut rounds) = (std::time::Instant::now(), 0);
    while start.elapsed().as_secs() < 60 {
        let mut bytes = kinds[below(kinds.len())].clone();
        for _ in 0..=below(8) {
            let at = below(bytes.len());
            bytes[at] ^= 1 << below(8);
        }
        bytes.truncate(1 + below(bytes.len()));
        let path = folder.file("damaged.trc", &bytes);
        let options = ReadOptions { threads: below(2), ..ReadOptions::default() };
        let ended = read_file::<Refusal>(&Source::File(path), &options, &mut Ok);
        assert!(ended.is_ok() || !ended.unwrap_err().to_string().is_empty());
        rounds += 1;
    }
    eprintln!("soak_fuzz_archives: {rounds} damaged archives");
}
