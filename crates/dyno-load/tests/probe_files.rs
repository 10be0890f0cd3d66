//! Tests of the redo probe on real files: what it writes, what it refuses, and what remains after it is killed.

#![allow(clippy::unwrap_used)] // a test may

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use dyno_load::probe::{Acknowledged, Probe, ProbeSpec, recover};
use dyno_load::{Length, Slice};

const MIB: u64 = 1 << 20;

/// Private folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn spec(paths: &[PathBuf], more: &str) -> ProbeSpec {
    let paths = serde_json::to_string(paths).unwrap();
    let text = format!(
        r#"{{"seed": 3, "arms": [{{"name": "a", "paths": {paths}, "file_bytes": {MIB},
           "sync": "dsync", {more}}}]}}"#
    );
    ProbeSpec::from_json(&text).unwrap()
}

fn commit(probe: &mut Probe, length: Length, told: &mut dyn Acknowledged) {
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    probe.run(0, &[Slice { arm: 0, slice: 0, length }], &stop, &progress, told).unwrap();
}

fn refusal(paths: &[PathBuf], more: &str) -> String {
    let error = Probe::new(&spec(paths, more), 1).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("\n  next: "), "{error:?}");
    error
}

#[test]
fn every_way_of_writing_leaves_what_was_written() {
    let folder = Folder::new("ways");
    for sync in ["dsync", "fdatasync", "direct+dsync", "direct+fdatasync", "direct"] {
        for block in [512, 4096] {
            let file = folder.file("log");
            let more = format!(r#""keep": true, "size": "1..9000", "block_bytes": {block}"#);
            let text = spec(std::slice::from_ref(&file), &more);
            let mut text = text;
            sync.clone_into(&mut text.arms[0].sync);
            let mut probe = Probe::new(&text, 11).unwrap();
            commit(&mut probe, Length::Transactions(40), &mut ());
            assert_eq!(fs::metadata(&file).unwrap().len(), MIB);
            drop(probe);
            let found = recover(std::slice::from_ref(&file)).unwrap();
            assert_eq!((found.first_sequence, found.last_sequence), (1, 40), "{sync} {block}");
            assert_eq!(found.last_commit, 40);
            assert_eq!((found.copies[0].broken, found.copies[0].holes), (0, 0));
            fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn a_log_that_went_round_gives_back_its_last_writes() {
    let folder = Folder::new("round");
    let file = folder.file("log");
    let mut probe = Probe::new(&spec(std::slice::from_ref(&file), r#""keep": true, "size": "20000""#), 5).unwrap();
    commit(&mut probe, Length::Transactions(200), &mut ());
    drop(probe);
    let found = recover(&[file]).unwrap();
    assert_eq!((found.last_sequence, found.last_commit), (200, 200));
    // 255 slots and five blocks per write: 51 writes per lap.
    assert_eq!(found.first_sequence, 200 - 50);
}

#[test]
fn files_go_at_the_end_unless_they_are_to_be_kept() {
    let folder = Folder::new("end");
    let file = folder.file("log");
    drop(Probe::new(&spec(std::slice::from_ref(&file), r#""size": "1""#), 1).unwrap());
    assert!(!file.exists());
    drop(Probe::new(&spec(std::slice::from_ref(&file), r#""keep": true"#), 1).unwrap());
    assert!(file.exists());
    drop(Probe::new(&spec(std::slice::from_ref(&file), r#""keep": false"#), 2).unwrap());
    assert!(!file.exists(), "a file of an earlier probe is used again, and removed");
}

#[test]
fn what_the_probe_did_not_make_is_refused_and_stays() {
    let folder = Folder::new("foreign");
    let file = folder.file("precious");
    fs::write(&file, "ten years of photographs").unwrap();
    assert!(refusal(std::slice::from_ref(&file), r#""size": "1""#).contains("was not made by the probe"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "ten years of photographs");
    let link = folder.file("link");
    symlink(&file, &link).unwrap();
    assert!(refusal(&[link], r#""size": "1""#).contains("symbolic link"));
    assert!(refusal(&["/dev/null".into()], r#""size": "1""#).contains("is a device"));
    assert!(refusal(std::slice::from_ref(&folder.0), r#""size": "1""#).contains("is a folder"));
    let nowhere = folder.file("none/log");
    assert!(refusal(&[nowhere], r#""size": "1""#).contains("cannot be made"));
}

#[test]
fn too_little_room_is_told_before_anything_is_written() {
    let folder = Folder::new("room");
    let file = folder.file("log");
    let mut wanted = spec(std::slice::from_ref(&file), r#""size": "1""#);
    wanted.arms[0].file_bytes = 1 << 50;
    let error = Probe::new(&wanted, 1).err().unwrap().to_string();
    assert!(error.contains("1024 TiB and 16 MiB to spare are needed there, "), "{error}");
    assert!(error.contains("iB are free"), "{error}");
    assert!(!file.exists());
}

#[test]
fn direct_io_in_memory_is_refused_with_the_way_round_it() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let file = memory.join(format!("dyno-probe-{}", std::process::id()));
    let mut wanted = spec(std::slice::from_ref(&file), r#""size": "1""#);
    "direct+dsync".clone_into(&mut wanted.arms[0].sync);
    let error = Probe::new(&wanted, 1).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("lies in memory") && error.contains("--sync dsync"), "{error}");
    assert!(!file.exists());
    "dsync".clone_into(&mut wanted.arms[0].sync);
    drop(Probe::new(&wanted, 1).unwrap());
}

#[test]
fn only_copies_of_one_log_are_recovered_together() {
    let folder = Folder::new("strangers");
    let (one, two) = (folder.file("one"), folder.file("two"));
    for (run, file) in [(1, &one), (2, &two)] {
        let kept = spec(std::slice::from_ref(file), r#""keep": true, "size": "1""#);
        drop(Probe::new(&kept, run).unwrap());
    }
    let error = recover(&[one.clone(), two]).unwrap_err().to_string();
    assert!(error.contains("is not the other copy of the log"), "{error}");
    let error = recover(&[one.clone(), one]).unwrap_err().to_string();
    assert!(error.contains("is not the other copy of the log"), "{error}");
    let text = folder.file("text");
    fs::write(&text, "x").unwrap();
    assert!(recover(&[text]).unwrap_err().to_string().contains("is not a log of a probe"));
}

/// Writes the number of every acknowledged commit to standard output, which outlives the process.
struct Aloud;

impl Acknowledged for Aloud {
    fn commits(&mut self, _arm: u16, number: u64) {
        std::io::stdout().write_all(&number.to_le_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    }
}

/// Not a test in itself: the process that the next tests kill.
#[test]
fn a_child_that_races_until_it_is_killed() {
    let Ok(paths) = std::env::var("DYNO_PROBE_CHILD") else { return };
    let more = std::env::var("DYNO_PROBE_ARM").unwrap();
    let paths: Vec<PathBuf> = paths.split(':').map(PathBuf::from).collect();
    let mut probe = Probe::new(&spec(&paths, &more), 77).unwrap();
    std::io::stdout().write_all(b"BEGIN---").unwrap();
    commit(&mut probe, Length::DurationNs(60_000_000_000), &mut Aloud);
}

/// Starts the child, kills it after `after`, and returns the last commit that it acknowledged.
fn killed(paths: &[PathBuf], more: &str, after: Duration) -> u64 {
    let joined: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["probe_files::a_child_that_races_until_it_is_killed", "--exact", "--nocapture", "--quiet"])
        .env("DYNO_PROBE_CHILD", joined.join(":"))
        .env("DYNO_PROBE_ARM", more)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        said.read_to_end(&mut all).map(|_| all).unwrap_or_default()
    });
    // The time counts from when its files exist; the wait for them is bounded.
    for _ in 0..2000 {
        if paths.iter().all(|path| recover(std::slice::from_ref(path)).is_ok()) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let all = reader.join().unwrap();
    let begin = all.windows(8).position(|w| w == b"BEGIN---").map_or(all.len(), |at| at + 8);
    let whole = all[begin..].chunks_exact(8);
    whole.last().map_or(0, |last| u64::from_le_bytes(last.try_into().unwrap()))
}

fn kill_again_and_again(times: u64, seed: u64, more: &str) {
    println!("seed {seed}");
    let folder = Folder::new(&format!("kill-{seed}"));
    let paths = [folder.file("one"), folder.file("two")];
    let mut dice = dyno_script::Rng::new(seed);
    let (mut commits, mut from_second, mut torn) = (0, 0, 0);
    for round in 0..times {
        let after = Duration::from_micros(dice.up_to(40_000));
        let last = killed(&paths, more, after);
        let found = recover(&paths).unwrap();
        assert!(found.last_commit >= last, "seed {seed}, round {round}: commit {last} was acknowledged, {found:?}");
        assert_eq!(found.copies[0].holes, 0, "the first path has none: {found:?}");
        // Any order of the paths gives the same result.
        assert_eq!(recover(&[paths[1].clone(), paths[0].clone()]).unwrap(), found);
        commits += last;
        from_second += u64::from(found.from_second > 0);
        torn += found.copies.iter().map(|copy| copy.broken).sum::<u64>();
        for path in &paths {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(commits > times, "the child did next to nothing: {commits} commits");
    println!("{commits} commits; {from_second} of {times} needed the second path; {torn} torn");
}

#[test]
fn killed_at_random_instants_no_acknowledged_commit_is_lost() {
    let more = r#""rule": "first", "keep": true, "sessions": 4, "size": "100..30000",
                  "block_bytes": 512, "backlog_bytes": 100000"#;
    kill_again_and_again(50, 20_261_121, more);
}

#[test]
fn the_same_for_copies_that_are_both_waited_for() {
    let more = r#""keep": true, "sessions": 2, "size": "5000""#;
    kill_again_and_again(10, 4, more);
}
