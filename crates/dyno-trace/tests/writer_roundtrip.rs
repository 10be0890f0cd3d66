//! Tests that writing a trace and reading it gives the same evidence, and that writing it again gives the same bytes.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::accounting_common::{call, wait};
use dyno_evidence::table::{Column, Kind, read_table};
use dyno_trace::oracle_10046::evidence::{CALLS, Small, WAITS};
use dyno_trace::oracle_10046::job::{Job, JobError, JobOptions};
use dyno_trace::oracle_10046::writer::write_trace;
use proptest::prelude::*;

/// Columns with positions in the original file, which differ in the written file.
const PLACES: [&str; 8] = ["line", "byte_offset", "bytes", "lines", "first_line", "records", "path", "length_of_file"];

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dyno-writer-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn values(path: &Path, column: &Column) -> Vec<String> {
    let mut found = Vec::new();
    for rows in read_table(path, &[column.name]).unwrap() {
        let rows = rows.unwrap();
        let name = column.name;
        match column.kind {
            Kind::I64 => found.extend(rows.i64s(name).unwrap().iter().map(ToString::to_string)),
            Kind::U64 => found.extend(rows.u64s(name).unwrap().iter().map(ToString::to_string)),
            Kind::U32 => found.extend(rows.u32s(name).unwrap().iter().map(ToString::to_string)),
            Kind::U8 => found.extend(rows.u8s(name).unwrap().iter().map(ToString::to_string)),
            Kind::Bool => found.extend(rows.bools(name).unwrap().iter().map(ToString::to_string)),
            Kind::Words => {
                let (numbers, words) = rows.words(name).unwrap();
                let word = |n: &u32| words.get(*n as usize).cloned().unwrap_or("NULL".to_owned());
                found.extend(numbers.iter().map(word));
            }
            Kind::Text | Kind::Repeated => {
                let texts = rows.texts(name).unwrap().into_iter();
                found.extend(texts.map(|text| format!("{text:?}")));
            }
        }
    }
    found
}

/// Returns all evidence of a run, column by column.
fn evidence(run: &Path) -> Vec<(String, Vec<String>)> {
    let mut told = Vec::new();
    // The file's own part, or the one it shares with its neighbours.
    let part = |table: &str| {
        let own = run.join(table).join("f000000-000000.parquet");
        if own.exists() { own } else { run.join(table).join("g000000.parquet") }
    };
    let mut table = |name: &str, path: PathBuf, columns: &[Column]| {
        for column in columns.iter().filter(|column| !PLACES.contains(&column.name)) {
            if path.exists() {
                told.push((format!("{name}.{}", column.name), values(&path, column)));
            }
        }
    };
    table("calls", part("calls"), &CALLS);
    table("waits", part("waits"), &WAITS);
    for small in Small::ALL.into_iter().filter(|small| *small != Small::Unread) {
        let path = run.join(format!("{}.parquet", small.name()));
        table(small.name(), path, small.columns());
    }
    told
}

fn import(file: &Path, run: &Path) -> Result<(), JobError> {
    let mut options = JobOptions::of(&[file.to_string_lossy()]);
    options.binds = true;
    Job::new(options).import(run).map(drop)
}

fn written(run: &Path, out: &Path) -> PathBuf {
    let told: serde_json::Value = serde_json::from_str(&write_trace(run, out).unwrap()).unwrap();
    PathBuf::from(told["files"][0]["path"].as_str().unwrap())
}

/// Imports a file, writes it, imports and writes the result again, and returns both written texts; `None` if the file
/// is refused. Panics if the evidence differs.
fn round(file: &Path, scratch: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
    let (first, second) = (scratch.join("run1"), scratch.join("run2"));
    match import(file, &first) {
        Ok(()) => {}
        Err(JobError::Refused { .. }) => return None,
        Err(error) => panic!("{}: {error}", file.display()),
    }
    let once = written(&first, &scratch.join("out1"));
    import(&once, &second).unwrap();
    let twice = written(&second, &scratch.join("out2"));
    for ((name, before), (again, after)) in evidence(&first).iter().zip(evidence(&second)) {
        assert_eq!(*name, again);
        assert_eq!(*before, after, "{}: {name}", file.display());
    }
    Some((std::fs::read(once).unwrap(), std::fs::read(twice).unwrap()))
}

fn data() -> Vec<PathBuf> {
    let root = std::env::var_os("DBDYNO_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let Ok(entries) = root.join("traces").read_dir() else {
        eprintln!("skipped: no traces in {} (set DBDYNO_DATA)", root.display());
        return Vec::new();
    };
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains(".trc")).collect()
}

#[test]
fn real_traces_come_back_the_same() {
    for file in data() {
        let scratch = Scratch::new();
        if let Some((once, twice)) = round(&file, &scratch.0) {
            assert!(once == twice, "{}: the second writing differs", file.display());
        }
    }
}

fn of_text(text: &str) -> (String, String) {
    let scratch = Scratch::new();
    std::fs::create_dir_all(&scratch.0).unwrap();
    let file = scratch.0.join("made.trc");
    std::fs::write(&file, text).unwrap();
    let (once, twice) = round(&file, &scratch.0).unwrap();
    (String::from_utf8(once).unwrap(), String::from_utf8(twice).unwrap())
}

#[test]
fn a_trace_in_canonical_form_is_written_as_it_was() {
    let text = "Trace file /u01/x_ora_1.trc\n\
        Oracle Database 19c Enterprise Edition Release 19.0.0.0.0 - Production\n\
        Version 19.12.0.0.0\n\n\
        *** 2020-06-13T12:20:03.212067+01:00 (PDB(3))\n\
        *** SESSION ID:(155.25441) 2020-06-13T12:20:03.212092+01:00\n\
        *** MODULE NAME:(a (b) c) 2020-06-13T12:20:03.212101+01:00\n\
        =====================\n\
        PARSING IN CURSOR #18446744071422692152 len=13 dep=0 uid=0 oct=3 lid=0 tim=100 hv=26 \
        ad='7' sqlid='acmvv4fhdc9zh'\nselect *\nfrom\nEND OF STMT\n\
        PARSE #18446744071422692152:c=1,e=2,p=3,cr=4,cu=5,mis=1,r=0,dep=0,og=4,plh=7,tim=100\n\
        WAIT #18446744071422692152: nam='db file sequential read' ela= 5 file#=1 block#=2 \
        blocks=1 obj#=-40016363 tim=107\n\
        LOBREAD: type=PERSISTENT LOB,bytes=8,c=1,e=10,p=1,cr=0,cu=0,tim=110\n\
        STAT #18446744071422692152 id=1 cnt=0 pid=0 pos=1 obj=0 op='SORT (cr=1 pr=0 pw=0 us)'\n\
        XCTEND rlbk=0, rd_only=1, tim=111\n\
        ERROR #18446744071422692152:err=54 tim=112\n\
        CLOSE #18446744071422692152:c=0,e=1,dep=0,type=1,tim=120\n";
    assert_eq!(of_text(text).0, text);
}

/// Returns a strategy for a record of any kind: the values from which [`text_of`] makes its text.
fn record() -> impl Strategy<Value = (u8, u64, i64, i64, u8)> {
    (0u8..14, 1u64..4, 0i64..2_000, 0i64..900, 0u8..3)
}

fn text_of((kind, cursor, step, value, dep): (u8, u64, i64, i64, u8), tim: i64) -> String {
    let moment = format!("2020-06-13T12:20:{:02}.{:06}+01:00", value % 60, step);
    match kind {
        0..=2 => call("EXEC", cursor, value / 2, value, dep, tim),
        3 => call("FETCH", cursor, value, value, dep, tim),
        4 => wait(cursor, "SQL*Net message from client", value, tim),
        5 => wait(0, "direct path read", value, tim),
        6 => {
            let sql = format!("select {value}\n  from t{cursor}");
            format!(
                "=====================\nPARSING IN CURSOR #{cursor} len={} dep={dep} uid=1 oct=3 \
                 lid=2 tim={tim} hv={value} ad='ff' sqlid='{value:013}'\n{sql}\nEND OF STMT\n",
                sql.len()
            )
        }
        7 => format!("*** {moment} (X({dep}))\n"),
        8 => format!("*** MODULE NAME:(m{dep}) {moment}\n*** SESSION ID:(7.{dep}) {moment}\n"),
        9 => format!("STAT #{cursor} id=1 cnt={value} pid=0 pos=1 obj=5 op='T (cr=1 pr=0)'\n"),
        10 => format!("XCTEND rlbk=0, rd_only={}, tim={tim}\n", value % 2),
        11 => format!("ERROR #{cursor}:err={value} tim={tim}\n"),
        12 => format!(
            "BINDS #{cursor}:\n\n Bind#0\n  oacdty=01 mxl=32(04)\n  kxs=7f bln=32  avl=04  flg=05\n  \
             value=\"a{value}\"\n Bind#1\n  No oacdef for this bind.\n"
        ),
        _ => format!("LOBWRITE: type=TEMPORARY LOB,bytes={value},c=1,e={value},p=0,cr=0,cu=7,tim={tim}\n"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn traces_of_any_records_come_back_the_same(records in prop::collection::vec(record(), 1..60)) {
        let mut tim = 5_000_000;
        let mut text = call("EXEC", 1, 0, 1, 0, tim);
        for record in records {
            tim += record.2;
            text += &text_of(record, tim);
        }
        let (once, twice) = of_text(&text);
        prop_assert_eq!(once, twice);
    }
}
