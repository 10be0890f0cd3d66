//! Tests jobs: what an import writes, what a profile shows, how jobs end.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::accounting_common::{call, wait};
use dyno_evidence::table::read_table;
use dyno_trace::oracle_10046::evidence::{EARLY_ROWS, FLUSH_ROWS};
use dyno_trace::oracle_10046::job::{Job, JobError, JobOptions, request_from_json};
use dyno_trace::oracle_10046::profile::Request;
use serde_json::Value;

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("dyno-job-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }
}

/// Returns the part that holds the rows of the first file: a separate part, or the part shared with neighbouring files.
fn part(run: &Path, table: &str) -> PathBuf {
    let own = run.join(table).join("f000000-000000.parquet");
    if own.exists() { own } else { run.join(table).join("g000000.parquet") }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn column(path: &Path, name: &str) -> Vec<i64> {
    let mut values = Vec::new();
    for rows in read_table(path, &[name]).unwrap() {
        values.extend(rows.unwrap().i64s(name).unwrap());
    }
    values
}

/// Returns the contents of all files of a run, by path.
fn files(run: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.strip_prefix(run).unwrap().to_owned(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// Lexing, filling and packing are compiled twice, with and without wide registers; the bytes of every table must be
/// equal.
#[test]
fn an_import_is_the_same_by_wide_registers_and_without() {
    let scratch = Scratch::new();
    let (mut text, mut now) = (String::new(), 1_000i64);
    for at in 0..4_000 {
        now += at * at % 7_919 + 10;
        text += &wait(7 + at as u64 % 3, "db file scattered read", at % 97 + 1, now);
        text += &call("FETCH", 7 + at as u64 % 3, at * 31 % 1_009, at % 11, at as u8 % 3, now + 1);
    }
    let file = scratch.file("both.trc", &text);
    let [wide, plain] = [true, false].map(|is_wide| {
        let run = scratch.0.join(format!("wide-{is_wide}"));
        dyno_cpu::choose(is_wide);
        Job::new(JobOptions::of(std::slice::from_ref(&file))).import(&run).unwrap();
        files(&run)
    });
    assert!(wide.len() > 5 && wide.keys().eq(plain.keys()));
    for (name, bytes) in &wide {
        assert!(plain[name] == *bytes, "{} differs", name.display());
    }
}

const STAMP: &str = "*** 2020-06-13T12:20:03.000000+00:00\n";
/// The moment of [`STAMP`] [ns since the UNIX epoch].
const STAMP_NS: i64 = 1_592_050_803_000_000_000;

/// The buffer is larger before the first stamp than after that stamp.
#[test]
fn rows_before_the_first_stamp_are_shifted_as_long_as_they_are_buffered() {
    let scratch = Scratch::new();
    let before = EARLY_ROWS as i64 - 1;
    let records =
        |from: i64| (from..from + before).map(|at| call("EXEC", 1, 0, 0, 0, at) + &wait(1, "latch free", 0, at));
    let text = records(1).chain([STAMP.to_owned()]).chain(records(before + 1)).collect::<String>();
    let run = scratch.0.join("run");
    Job::new(JobOptions::of(&[scratch.file("late.trc", &text)])).import(&run).unwrap();
    for table in ["calls", "waits"] {
        let started = column(&part(&run, table), "started_ns");
        let expected = (1..=2 * before).map(|tim| STAMP_NS + (tim - before - 1) * 1_000);
        assert!(started.iter().copied().eq(expected), "{table}");
    }
}

#[test]
fn links_found_after_a_row_was_written_are_in_a_table_of_their_own() {
    let scratch = Scratch::new();
    let (mut text, mut now, children) = (STAMP.to_owned(), 1_000i64, 2 * FLUSH_ROWS as i64 + 100);
    for _ in 0..children {
        now += 10;
        text += &call("EXEC", 9, 1, 5, 1, now);
        now += 3;
        text += &wait(8, "latch free", 1, now);
    }
    now += 1;
    text += &call("EXEC", 8, children, now - 1_000, 0, now);
    let (file, run) = (scratch.file("long.trc", &text), scratch.0.join("run"));
    Job::new(JobOptions::of(&[file])).import(&run).unwrap();
    let calls = part(&run, "calls");
    let waits = part(&run, "waits");
    let (ids, parents) = (column(&calls, "call"), column(&calls, "parent"));
    let links = part(&run, "links");
    let mut late: HashMap<(bool, i64), i64> = HashMap::new();
    for rows in read_table(&links, &["row_kind", "id", "parent"]).unwrap() {
        let rows = rows.unwrap();
        let (kinds, words) = rows.words("row_kind").unwrap();
        let (ids, parents) = (rows.i64s("id").unwrap(), rows.i64s("parent").unwrap());
        for at in 0..rows.len() {
            let is_call = words[kinds[at] as usize] == "call";
            assert!(late.insert((is_call, ids[at]), parents[at]).is_none(), "told twice");
        }
    }
    let last = *ids.last().unwrap();
    assert_eq!(ids.len() as i64, children + 1);
    let mut found_late = 0;
    for (id, parent) in ids.iter().zip(&parents).filter(|(id, _)| **id != last) {
        let known = if *parent == i64::MIN { late.get(&(true, *id)) } else { Some(parent) };
        assert_eq!(known, Some(&last));
        found_late += i64::from(*parent == i64::MIN);
    }
    for (id, owner) in column(&waits, "wait").iter().zip(column(&waits, "call")) {
        let known = if owner == i64::MIN { late.get(&(false, *id)) } else { Some(&owner) };
        assert_eq!(known, Some(&last));
    }
    assert!(found_late >= 2 * FLUSH_ROWS as i64 - 1, "{found_late}");
    assert_eq!(*column(&calls, "self_elapsed_ns").last().unwrap(), (now - 1_000 - 5 * children) * 1000);
    let left: Vec<_> = run.read_dir().unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("tmp")), "{left:?}");
}

#[test]
fn a_profile_adds_up_whatever_it_is_grouped_by() {
    let scratch = Scratch::new();
    let text = wait(1, "latch free", 5, 1_000)
        + &call("EXEC", 2, 3, 10, 1, 1_010)
        + &call("EXEC", 1, 30, 50, 0, 1_040)
        + &wait(1, "SQL*Net message from client", 2_000_000, 2_001_100);
    let job = Job::new(JobOptions::of(&[scratch.file("a.trc", &text)]));
    for by in ["event", "class", "kind", "statement", "depth", "second", "p1", "file", "session"] {
        let request = request_from_json(&format!("{{\"by\":[\"{by}\"]}}")).unwrap();
        let told: Value = serde_json::from_str(&job.profile(&request).unwrap()).unwrap();
        let total: i64 = told["rows"].as_array().unwrap().iter().map(|r| r["total_ns"].as_i64().unwrap()).sum();
        assert_eq!(Some(total), told["elapsed_ns"].as_i64(), "{by}");
    }
    let told: Value = serde_json::from_str(&job.profile(&Request::default()).unwrap()).unwrap();
    let row = |name: &str| {
        let rows = told["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(row("CPU")["total_ns"], 30_000);
    assert_eq!(row("unaccounted-for within calls")["total_ns"], 15_000);
    assert_eq!((&row("think time")["class"], &row("think time")["count"]), (&"idle".into(), &1.into()));
    assert_eq!(row("unaccounted-for between calls")["total_ns"], 60_000);
}

#[test]
fn waits_by_kind_and_depth_are_those_of_the_innermost_call() {
    let scratch = Scratch::new();
    let text = wait(2, "latch free", 5, 1_005)
        + &call("FETCH", 2, 0, 10, 1, 1_010)
        + &wait(1, "latch free", 7, 1_020)
        + &call("EXEC", 1, 0, 50, 0, 1_040)
        + &wait(1, "latch free", 11, 1_060);
    let job = Job::new(JobOptions::of(&[scratch.file("a.trc", &text)]));
    let asked = r#"{"by":["kind","depth"],"where":"event = 'latch free'"}"#;
    let told: Value = serde_json::from_str(&job.profile(&request_from_json(asked).unwrap()).unwrap()).unwrap();
    let rows: Vec<(Value, Value, i64)> = told["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let key = &row["key"];
            (key["kind"].clone(), key["depth"].clone(), row["total_ns"].as_i64().unwrap())
        })
        .collect();
    let expected =
        [(Value::Null, Value::Null, 11_000), ("exec".into(), 0.into(), 7_000), ("fetch".into(), 1.into(), 5_000)];
    assert_eq!(rows, expected);
}

#[test]
fn a_text_with_another_files_key_is_named_in_the_order_of_the_files() {
    let scratch = Scratch::new();
    let text = |sql: &str| {
        format!(
            "=====================\nPARSING IN CURSOR #5 len={} dep=0 uid=3 oct=3 lid=3 tim=90 \
             hv=1 ad='a'\n{sql}\nEND OF STMT\n",
            sql.len()
        ) + &call("EXEC", 5, 0, 1, 0, 100)
    };
    // The first file is much longer than the others: they are at their texts long before it.
    let long: String = (0..30_000).map(|n| call("EXEC", 6, 0, 1, 0, n * 2)).collect();
    let files = [
        scratch.file("a.trc", &(long + &text("select 1").replace("tim=90", "tim=70000"))),
        scratch.file("b.trc", &text("select 22")),
        scratch.file("c.trc", &text("select 333")),
    ];
    let job = Job::new(JobOptions { threads: Some(3), ..JobOptions::of(&files) });
    let request = request_from_json(r#"{"by":["statement"]}"#).unwrap();
    let told: Value = serde_json::from_str(&job.profile(&request).unwrap()).unwrap();
    assert_eq!(told["statements"]["hv:1"], "select 1");
    assert_eq!(told["statements"]["hv:1~2"], "select 22");
    assert_eq!(told["statements"]["hv:1~3"], "select 333");
}

#[test]
fn a_profile_is_the_same_with_any_number_of_threads_and_any_cut() {
    let scratch = Scratch::new();
    let (mut text, mut now) = (String::new(), 1_000i64);
    for n in 0..600i64 {
        now += 400 + n % 7;
        text += &wait(5, ["latch free", "log file sync", "direct path read"][n as usize % 3], n, now);
        text += &call("EXEC", 6, 1, 3, 1, now + 10);
        // Every 50th call contains all that stands before it, across many cuts.
        let elapsed = if n % 50 == 49 { now - 1_000 } else { 20 };
        text += &call("FETCH", 5, 3, elapsed, 0, now + 12);
    }
    let file = scratch.file("a.trc", &text);
    let request = request_from_json(r#"{"by":["event","depth"]}"#).unwrap();
    let told = |threads, chunk_bytes| {
        let options = JobOptions { threads, chunk_bytes, ..JobOptions::of(&[&file]) };
        Job::new(options).profile(&request).unwrap()
    };
    let alone = told(Some(1), None);
    for (threads, chunk) in [(2, 300), (2, 4_000), (3, 1_000), (6, 500), (6, 20_000)] {
        assert_eq!(told(Some(threads), Some(chunk)), alone, "{threads} threads, {chunk} bytes");
    }
}

#[test]
fn waits_without_a_readable_time_fail_loudly() {
    let scratch = Scratch::new();
    let file = scratch.file("a.trc", "EXEC #1:c=0,e=1,dep=0,tim=5\nWAIT #1: nam='x' took=5 tim=7\n");
    let error = Job::new(JobOptions::of(&[file])).profile(&Request::default()).unwrap_err();
    assert!(matches!(error, JobError::NoElapsed { waits: 1, .. }), "{error}");
}

#[test]
fn a_file_that_is_no_trace_is_named_and_the_others_are_read() {
    let scratch = Scratch::new();
    let files = [scratch.file("a.trc", "hello\n"), scratch.file("b.trc", &call("EXEC", 1, 0, 1, 0, 5))];
    let told = Job::new(JobOptions::of(&files)).profile(&Request::default()).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["files"], told["refused"].as_array().unwrap().len()), (&1.into(), 1));
    let alone = Job::new(JobOptions::of(&files[..1])).profile(&Request::default()).unwrap_err();
    assert!(matches!(alone, JobError::Refused { .. }));
}

#[test]
fn a_job_that_is_told_to_stop_stops() {
    let scratch = Scratch::new();
    let job = Job::new(JobOptions::of(&[scratch.file("b.trc", &call("EXEC", 1, 0, 1, 0, 5))]));
    job.stop();
    assert!(matches!(job.profile(&Request::default()).unwrap_err(), JobError::Stopped));
}

#[test]
fn requests_that_cannot_be_understood_say_why() {
    let told = |text: &str| request_from_json(text).unwrap_err().to_string();
    assert!(told(r#"{"by":["evnt"]}"#).contains("choose from event, class"));
    assert!(told(r#"{"where":"depth"}"#).contains("one of ="));
    assert!(told(r#"{"by":["p1","p2","p3","event","kind"]}"#).contains("at most 4"));
    assert!(JobOptions::from_json("{}").unwrap_err().to_string().contains("files"));
}

#[test]
fn centiseconds_show_in_the_stamps_where_no_header_tells_the_version() {
    let scratch = Scratch::new();
    let text: String = (0..5i64)
        .map(|second| format!("*** 1999-07-12 13:45:0{second}.000\n") + &call("EXEC", 1, 1, 5, 0, 1_000 + second * 100))
        .collect();
    let file = scratch.file("old.trc", &text);
    let told: Value = serde_json::from_str(&Job::new(JobOptions::of(&[&file])).check().unwrap()).unwrap();
    assert_eq!(told["files"][0]["unit_ns"], 10_000_000);
    assert_eq!(told["totals"]["account"]["call_ns"], 5 * 50_000_000);
    let run = scratch.0.join("run");
    Job::new(JobOptions::of(&[file])).import(&run).unwrap();
    assert_eq!(column(&part(&run, "calls"), "elapsed_ns"), [50_000_000; 5]);
}

/// Returns lines of a 9i trace whose clock ticks every 1.024 us, with stamps every two seconds.
fn ticking(version: &str) -> String {
    let lines: String = (0..6i64)
        .map(|at| {
            let tim = 1_000_000 + at * 2_000_000 * 1_000 / 1_024;
            format!("*** 2003-07-12 13:45:{:02}.000\n", at * 2) + &call("EXEC", 1, 10_000, 50_000, 0, tim)
        })
        .collect();
    format!("/u01/x_ora_1.trc\n{version}\n{lines}")
}

const ORACLE_9I: &str = "Oracle9i Enterprise Edition Release 9.2.0.4.0 - Production\n";

#[test]
fn a_9i_clock_of_1024_ns_is_read_as_such_and_said() {
    let scratch = Scratch::new();
    let file = scratch.file("nine.trc", &ticking(ORACLE_9I));
    let told: Value = serde_json::from_str(&Job::new(JobOptions::of(&[&file])).check().unwrap()).unwrap();
    assert_eq!(told["files"][0]["unit_ns"], 1_024);
    let account = &told["totals"]["account"];
    assert_eq!(account["call_ns"], 6 * 51_200_000);
    assert_eq!(account["cpu_ns"], 6 * 10_000_000, "CPU comes from the operating system");
    assert!(told["warnings"].to_string().contains("1.024 us"), "{}", told["warnings"]);
}

#[test]
fn the_users_word_on_the_unit_of_time_counts_more_than_the_stamps() {
    let scratch = Scratch::new();
    let file = scratch.file("nine.trc", &ticking(ORACLE_9I));
    let options = JobOptions { tim_unit_ns: Some(1_000), ..JobOptions::of(&[&file]) };
    let told: Value = serde_json::from_str(&Job::new(options).check().unwrap()).unwrap();
    assert_eq!(told["totals"]["account"]["call_ns"], 6 * 50_000_000);
    assert!(!told["warnings"].to_string().contains("1.024"), "{}", told["warnings"]);
}

#[test]
fn a_clock_off_by_2_percent_in_a_newer_version_is_not_taken_for_ticks() {
    let scratch = Scratch::new();
    let file = scratch.file("ten.trc", &ticking("Oracle Database 10g Release 10.2.0.4.0 - Production\n"));
    let told: Value = serde_json::from_str(&Job::new(JobOptions::of(&[&file])).check().unwrap()).unwrap();
    assert_eq!(told["files"][0]["unit_ns"], 1_000);
}

#[test]
fn small_files_share_parts_and_every_reader_still_finds_their_rows() {
    let scratch = Scratch::new();
    let files: Vec<String> = (0..150i64)
        .map(|n| {
            scratch.file(
                &format!("f{n}.trc"),
                &(wait(1, "log file sync", 40 + n, 1_000) + &call("EXEC", 1, 1, 50 + n, 0, 1_010)),
            )
        })
        .collect();
    let run = scratch.0.join("run");
    Job::new(JobOptions::of(&files)).import(&run).unwrap();
    let parts = std::fs::read_dir(run.join("calls")).unwrap().count();
    assert_eq!(parts, 3, "64 neighbours a part");
    let request = Request::default();
    let of_run: Value =
        serde_json::from_str(&dyno_trace::oracle_10046::profile::profile_run(&run, &request).unwrap()).unwrap();
    let of_files: Value = serde_json::from_str(&Job::new(JobOptions::of(&files)).profile(&request).unwrap()).unwrap();
    assert_eq!(of_run["rows"], of_files["rows"]);
    let out = scratch.0.join("out");
    let told: Value =
        serde_json::from_str(&dyno_trace::oracle_10046::writer::write_trace(&run, &out).unwrap()).unwrap();
    assert!(told["files"].as_array().unwrap().iter().all(|file| file["records"] == 2));
}
