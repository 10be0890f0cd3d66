//! Tests that the records are the same however a file is cut, however many threads read it, and whether lines take the
//! fast or the careful path. Both real and damaged files are read.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use crate::lexer_common::{Dice, Reading, damage, read_in, read_path, real_files};
use dyno_trace::oracle_10046::files::ReadOptions;
use dyno_trace::oracle_10046::lexer::Options;
use proptest::prelude::*;

const OPTIONS: Options = Options { binds: true, cap: 16 << 20, careful: false };

/// Checks that two readings are equal, including the samples of their unread stretches.
fn assert_same(expected: &Reading, found: &Reading, what: &str) {
    for (a, b) in expected.records.iter().zip(&found.records) {
        assert_eq!(a, b, "{what}");
    }
    for (a, b) in expected.unread.iter().zip(&found.unread) {
        assert_eq!(a, b, "{what}");
    }
    let counts = |r: &Reading| (r.records.len(), r.unread.len(), r.bytes, r.lines);
    assert_eq!(counts(expected), counts(found), "{what}");
}

/// Reads a text in every way, compares the results, and returns the reading.
fn read_every_way(text: &[u8], options: Options, dice: &mut Dice, what: &str) -> Reading {
    let whole = read_in(text, &[usize::MAX], options);
    let careful = Options { careful: true, ..options };
    assert_same(&whole, &read_in(text, &[usize::MAX], careful), &format!("{what}, careful"));
    let sizes: Vec<usize> = (0..7).map(|_| 1 + dice.below(3000)).collect();
    assert_same(&whole, &read_in(text, &sizes, options), &format!("{what}, chunks {sizes:?}"));
    whole
}

#[test]
fn real_files_read_the_same_however_they_are_cut() {
    for path in real_files() {
        let text = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        let whole = read_every_way(&text, OPTIONS, &mut Dice(7), &name);
        for size in [100, 777, 4096, 65_536] {
            assert_same(&whole, &read_in(&text, &[size], OPTIONS), &format!("{name}, {size}"));
        }
        if text.len() < 10_000 {
            assert_same(&whole, &read_in(&text, &[1], OPTIONS), &format!("{name}, bytes"));
        }
    }
}

#[test]
fn real_files_read_the_same_with_any_number_of_threads() {
    for path in real_files() {
        let name = path.display().to_string();
        let read = |threads, chunk_bytes| {
            let options = ReadOptions { binds: true, threads, chunk_bytes, ..Default::default() };
            read_path(&path, &options).unwrap()
        };
        let alone = read(0, 1 << 20);
        for (threads, chunk) in [(0, 900), (1, 1000), (2, 1000), (2, 5000), (3, 50_000)] {
            assert_same(&alone, &read(threads, chunk), &format!("{name}, {threads}, {chunk}"));
        }
    }
}

#[test]
fn a_statement_that_holds_records_is_read_the_same_by_threads() {
    let path = std::env::temp_dir().join(format!("dyno-lexer-{}.trc", std::process::id()));
    let inner = "FETCH #1:c=0,e=1,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=0,tim=9\nEND OF STMT \n";
    let statement = |lines: usize| {
        let sql = format!("select '\n{}'", inner.repeat(lines));
        format!(
            "=====================\nPARSING IN CURSOR #7 len={} dep=0 uid=0 oct=3 lid=0 tim=5 hv=1 \
             ad='0'\n{sql}\nEND OF STMT\nXCTEND rlbk=0, rd_only=1, tim=9\n",
            sql.len()
        )
    };
    let text = (0..60).map(|number| statement(number * 7)).collect::<Vec<_>>().concat();
    std::fs::write(&path, &text).unwrap();
    let read = |threads, chunk_bytes| {
        let options = ReadOptions { threads, chunk_bytes, ..Default::default() };
        read_path(&path, &options).unwrap()
    };
    let alone = read(0, 1 << 20);
    assert_eq!(alone.records.len(), 120);
    for chunk in [500, 1111, 4096, 30_000] {
        assert_same(&alone, &read(2, chunk), &format!("chunk {chunk}"));
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn damaged_files_read_the_same_however_they_are_cut() {
    let files = real_files();
    let mut dice = Dice(20_261_121);
    for round in 0..600 {
        let Some(path) = files.get(dice.below(files.len())) else { return };
        let mut text = std::fs::read(path).unwrap();
        let from = dice.below(text.len());
        text.drain(..from);
        text.truncate(12_000);
        for _ in 0..=dice.below(12) {
            damage(&mut text, &mut dice);
        }
        // A cap that long lines and texts reach.
        let cap = [400, 2000, 16 << 20][dice.below(3)];
        let options = Options { binds: dice.below(2) == 0, cap, ..OPTIONS };
        read_every_way(&text, options, &mut dice, &format!("round {round}"));
    }
}

#[test]
fn damaged_files_read_the_same_by_threads() {
    let files = real_files();
    let mut dice = Dice(3);
    let path = std::env::temp_dir().join(format!("dyno-damaged-{}.trc", std::process::id()));
    for round in 0..60 {
        let Some(real) = files.get(dice.below(files.len())) else { return };
        let mut text = std::fs::read(real).unwrap();
        for _ in 0..=dice.below(30) {
            damage(&mut text, &mut dice);
        }
        std::fs::write(&path, &text).unwrap();
        let read = |threads, chunk_bytes, cap| {
            let options = ReadOptions { binds: true, threads, chunk_bytes, cap, ..Default::default() };
            read_path(&path, &options).map_err(|refusal| refusal.to_string())
        };
        let cap = [600, 16 << 20][dice.below(2)];
        let alone = read(0, 1 << 20, cap);
        for chunk in [700, 3000, 20_000] {
            assert_eq!(alone, read(2, chunk, cap), "round {round}, chunk {chunk}");
        }
    }
    std::fs::remove_file(&path).ok();
}

/// Returns a piece of a line, for assembling unusual files.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "(FETCH|EXEC|PARSE|CLOSE|UNMAP) #[0-9]{1,20}:c=[0-9]{1,9},e=[0-9]{1,19},p=0,cr=1,cu=0,mis=[0-9]{1,3},r=[0-9]{1,3},dep=[0-2],og=1(,plh=[0-9]{1,10})?,tim=[0-9]{1,20}(\r?\n|W)",
        "CLOSE #[0-9]{1,20}:c=[0-9]{1,3},e=-?[0-9]{1,3},dep=[0-9]{1,3},type=[0-3],tim=[0-9]{1,16}\r?\n",
        "WAIT #[0-9]{1,19}: nam='[a-z:* ]{0,20}'?' ela= ?-?[0-9]{1,9}( [a-z# ]{0,5}=-?[0-9]{1,20}){0,3}( obj#=-?[0-9]{0,20})?( tim=[0-9]{0,20})? ?\r?\n",
        "WAIT #[0-9]: nam='[a-z]{0,3}' ela= [0-9] p1=[0-9] p2=[0-9] p3=[0-9]\n",
        "\\*\\*\\* (MODULE NAME:\\([a-z()]{0,5}\\) )?20[0-9]{2}-0[1-9]-1[0-9](T| )1[0-9]:00:00\\.[0-9]{3,6}([+-]0[0-9]:00)?\n",
        "PARSING IN CURSOR #[0-9] len=[0-9]{1,3} dep=0 uid=0 oct=3 lid=0 tim=[0-9]{1,9} hv=[0-9]{1,9} ad='[0-9a-f]{1,8}'\r?\n",
        "PARSE ERROR #[0-9]:len=[0-9]{1,2} dep=0 uid=0 oct=3 lid=0 tim=[0-9]{1,9} err=[0-9]{1,5}\n",
        "[ -~]{0,40}(\r?\n)?",
        "END OF STMT\r?\n",
        "=====================\n",
        "BINDS #[0-9]:\n( Bind#[0-9]\n  oacdty=0[12] avl=[0-9]{1,2}\n(  value=\"?[a-z]{0,5}\"?\n)?){0,3}",
        "STAT #[0-9] id=[0-9] cnt=[0-9]{1,3} pid=0 pos=1 obj=-?[0-9]{1,5} op='[A-Z ()=a-z0-9]{0,20}'?\n",
        "XCTEND rlbk=[01], rd_only=[0-2](, tim=[0-9]{1,9})?\n",
        "\0{1,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn made_up_files_read_the_same_however_they_are_cut(
        pieces in proptest::collection::vec(piece(), 0..40),
        seed in any::<u64>(),
        cap in prop_oneof![Just(16_usize << 20), Just(200), Just(60)],
    ) {
        let text = pieces.concat();
        let options = Options { cap, ..OPTIONS };
        read_every_way(text.as_bytes(), options, &mut Dice(seed), "made up");
    }

    #[test]
    fn any_bytes_pass(text in proptest::collection::vec(any::<u8>(), 0..2000), seed in any::<u64>()) {
        read_every_way(&text, OPTIONS, &mut Dice(seed), "bytes");
    }
}

/// Damages files for a minute: reading never panics, and every way of reading gives the same result. The seed of a
/// failure is printed.
#[test]
#[ignore = "takes a minute; part of the soak"]
fn soak_fuzz_reader() {
    let mut files = real_files();
    files.push(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/orders.trc").into());
    let seed = std::env::var("DBDYNO_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x5eed);
    eprintln!("soak_fuzz_reader: DBDYNO_SEED={seed}");
    let mut dice = Dice(seed);
    let start = Instant::now();
    let mut rounds = 0_u64;
    while start.elapsed().as_secs() < 60 {
        let mut text = std::fs::read(&files[dice.below(files.len())]).unwrap();
        let from = dice.below(text.len());
        text.drain(..from);
        text.truncate(1 + dice.below(40_000));
        for _ in 0..=dice.below(40) {
            damage(&mut text, &mut dice);
        }
        let cap = [64, 300, 5000, 16 << 20][dice.below(4)];
        let options = Options { binds: dice.below(2) == 0, cap, ..OPTIONS };
        read_every_way(&text, options, &mut dice, &format!("seed {seed}, round {rounds}"));
        rounds += 1;
    }
    eprintln!("soak_fuzz_reader: {rounds} damaged files");
}
