//! Tests of the redo probe on media with known times.
//!
//! They cover group commit, the race, its counters, and the order of durability.

#![allow(clippy::unwrap_used)] // a test may

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dyno_load::probe::{Acknowledged, Counts, Medium, Probe, ProbeReport, ProbeSpec};
use dyno_load::{Length, Slice};

/// Events in the order in which they occur: a write became durable on a path, or commits were acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Durable { path: usize, sequence: u64 },
    Acknowledged { commits: u64 },
}

type Journal = Arc<Mutex<Vec<Event>>>;
/// Contents of a path: bytes by offset.
type Content = Arc<Mutex<BTreeMap<u64, Vec<u8>>>>;

/// Path that sleeps for a time that depends on the number of the write, and keeps the bytes written.
struct Known {
    path: usize,
    sleep_us: fn(u64) -> u64,
    fails_at: u64,
    journal: Journal,
    content: Content,
}

impl Medium for Known {
    fn write_durably(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let sequence = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        let micros = (self.sleep_us)(sequence);
        if micros > 0 {
            thread::sleep(Duration::from_micros(micros));
        }
        if sequence == self.fails_at {
            return Err(io::Error::other("the medium is gone"));
        }
        self.content.lock().unwrap().insert(offset, bytes.to_vec());
        self.journal.lock().unwrap().push(Event::Durable { path: self.path, sequence });
        Ok(())
    }
}

struct Told(Journal);

impl Acknowledged for Told {
    fn commits(&mut self, _arm: u16, commits: u64) {
        self.0.lock().unwrap().push(Event::Acknowledged { commits });
    }
}

struct Bench {
    probe: Probe,
    journal: Journal,
    content: Vec<Content>,
}

impl Bench {
    /// Creates a test bench; `arm` contains the arm's keys as JSON, except its name.
    fn new(arm: &str, sleeps_us: &[fn(u64) -> u64]) -> Self {
        Self::failing(arm, sleeps_us, [0, 0])
    }

    fn failing(arm: &str, sleeps_us: &[fn(u64) -> u64], fails_at: [u64; 2]) -> Self {
        let text = format!(r#"{{"seed": 5, "arms": [{{"name": "a", {arm}}}]}}"#);
        let spec = ProbeSpec::from_json(&text).unwrap();
        let journal = Journal::default();
        let content = vec![Arc::default(), Arc::default()];
        let probe = Probe::on_media(&spec, 9, |_, path| {
            Box::new(Known {
                path,
                sleep_us: sleeps_us[path],
                fails_at: fails_at[path],
                journal: Arc::clone(&journal),
                content: Arc::clone(&content[path]),
            })
        });
        Self { probe: probe.unwrap(), journal, content }
    }

    fn run(&mut self, length: Length) -> Result<ProbeReport, String> {
        let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut told = Told(Arc::clone(&self.journal));
        let slices = [Slice { arm: 0, slice: 0, length }];
        let report = self.probe.run(0, &slices, &stop, &progress, &mut told);
        if let Ok(report) = &report {
            assert_eq!(progress.load(Ordering::Relaxed), report.arms[0].transactions);
        }
        report.map_err(|e| e.to_string())
    }

    fn commits(&mut self, count: u64) -> Counts {
        self.run(Length::Transactions(count)).unwrap();
        self.counts()
    }

    fn counts(&self) -> Counts {
        self.probe.counts()[0].clone()
    }
}

const ONE: &str = r#""paths": ["one"]"#;
const TWO: &str = r#""paths": ["one", "two"]"#;
const RACE: &str = r#""paths": ["one", "two"], "rule": "first""#;

fn none(_: u64) -> u64 {
    0
}

#[test]
fn every_commit_is_counted_once_and_its_redo_fills_whole_blocks() {
    let mut bench = Bench::new(&format!(r#"{ONE}, "size": "1000", "block_bytes": 512"#), &[none]);
    let counts = bench.commits(50);
    assert_eq!((counts.commits, counts.writes, counts.redo_bytes), (50, 50, 50_000));
    // 1000 bytes need three blocks of 464; 392 bytes of the third stay unused.
    assert_eq!((counts.blocks, counts.wasted_bytes), (150, 50 * 392));
    assert_eq!(counts.bytes, [150 * 512, 0]);
}

#[test]
fn a_commit_larger_than_a_write_takes_several_and_is_acknowledged_by_the_last() {
    let mut bench = Bench::new(&format!(r#"{ONE}, "size": "2500KiB""#), &[none]);
    let counts = bench.commits(2);
    assert_eq!((counts.commits, counts.writes), (2, 6));
    let journal = bench.journal.lock().unwrap();
    let first = journal.iter().position(|e| *e == Event::Acknowledged { commits: 1 });
    assert_eq!(first, Some(3), "{journal:?}");
}

#[test]
fn the_log_goes_round_and_no_write_straddles_its_end() {
    let arm = format!(r#"{ONE}, "size": "5000", "block_bytes": 4096, "file_bytes": 65536"#);
    let mut bench = Bench::new(&arm, &[none]);
    let counts = bench.commits(20);
    // 15 slots and two blocks per write: seven writes per lap, the last slot stays unused.
    assert_eq!(counts.laps, 2);
    let content = bench.content[0].lock().unwrap();
    let offsets: Vec<u64> = content.keys().copied().collect();
    assert_eq!(offsets, (0..7).map(|at| 4096 + at * 8192).collect::<Vec<_>>());
    let sequence = |offset: u64| u64::from_le_bytes(content[&offset][16..24].try_into().unwrap());
    assert_eq!(sequence(4096), 15, "the third lap begins with the fifteenth write");
}

/// Closed form of group commit in a closed loop.
///
/// While a write is in progress all other sessions queue. So with n sessions without think time, every write after the
/// first contains the commits of all n, and a commit waits for exactly one write.
#[test]
fn group_commit_of_sessions_that_do_not_think_carries_them_all() {
    let arm = format!(r#"{ONE}, "sessions": 8"#);
    let mut bench = Bench::new(&arm, &[|_| 1000]);
    let counts = bench.commits(400);
    assert_eq!(counts.writes, 50);
}

/// Closed form of group commit in an open loop with constant writes of length d.
///
/// If rate x d is well above 1, the log writer is never idle, so a write contains on average the commits that arrive
/// during one write.
#[test]
fn group_commit_of_an_open_loop_carries_the_arrivals_of_one_write() {
    let arm = format!(r#"{ONE}, "sessions": 1000, "rate_per_s": 5000.0"#);
    let mut bench = Bench::new(&arm, &[|_| 2000]);
    let report = bench.run(Length::DurationNs(1_000_000_000)).unwrap();
    let counts = bench.counts();
    let per_write = counts.commits as f64 / counts.writes as f64;
    let wall_ns = (report.ended_ns - report.started_ns) as f64;
    let write_s = wall_ns / 1e9 / counts.writes as f64;
    assert!(write_s >= 0.002);
    // About 5000 arrivals: their standard deviation is 71, that of the mean per write is 71 / writes.
    let error = 71.0 / counts.writes as f64;
    let expected = 5000.0 * write_s;
    assert!(
        (per_write - expected).abs() < 4.0 * error + 0.02 * expected,
        "{per_write} commits per write, expected {expected} +- {error}"
    );
}

#[test]
fn an_open_loop_gives_up_what_found_no_session() {
    let arm = format!(r#"{ONE}, "sessions": 1, "rate_per_s": 10000.0"#);
    let mut bench = Bench::new(&arm, &[|_| 5000]);
    let report = bench.run(Length::DurationNs(100_000_000)).unwrap();
    let arm = &report.arms[0];
    assert!(arm.transactions >= 2 && arm.skipped > arm.transactions, "{arm:?}");
}

#[test]
fn mirrored_writes_wait_for_both_copies() {
    let mut bench = Bench::new(TWO, &[none, |_| 3000]);
    bench.commits(10);
    let journal = bench.journal.lock().unwrap();
    for commits in 1..=10 {
        let told = journal.iter().position(|e| *e == Event::Acknowledged { commits }).unwrap();
        let durable = journal[..told].iter().filter(|e| matches!(e, Event::Durable { .. })).count();
        assert_eq!(durable as u64, 2 * commits);
    }
}

#[test]
fn nothing_is_acknowledged_before_one_copy_is_durable_and_nobody_waits_for_the_slow_one() {
    let mut bench = Bench::new(RACE, &[|_| 4000, none]);
    let counts = bench.commits(40);
    let journal = bench.journal.lock().unwrap();
    let mut early = 0;
    for commits in 1..=40 {
        let told = journal.iter().position(|e| *e == Event::Acknowledged { commits }).unwrap();
        let durable = |path| {
            let wanted = Event::Durable { path, sequence: commits };
            journal[..told].contains(&wanted)
        };
        assert!(durable(0) || durable(1), "commit {commits} is nowhere");
        early += u64::from(!durable(0));
    }
    // If this thread is delayed for milliseconds, both copies may be durable before it checks.
    assert!(early >= 20, "the second path alone had most of them: {early}");
    assert!(counts.won[1] >= 20 && counts.won.iter().sum::<u64>() == 40, "{:?}", counts.won);
}

#[test]
fn the_first_path_gets_every_write_in_order() {
    let mut bench = Bench::new(RACE, &[|n| n % 3 * 700, |n| (n + 1) % 4 * 500]);
    bench.commits(60);
    let journal = bench.journal.lock().unwrap();
    let order: Vec<u64> = journal
        .iter()
        .filter_map(|e| match e {
            Event::Durable { path: 0, sequence } => Some(*sequence),
            _ => None,
        })
        .collect();
    assert_eq!(order, (1..=60).collect::<Vec<_>>());
}

#[test]
fn every_race_has_one_winner() {
    for (first, second) in [
        (none as fn(u64) -> u64, none as fn(u64) -> u64),
        (|n| n % 2 * 2000, |n| (n + 1) % 2 * 2000),
        (|_| 1000, |_| 1000),
    ] {
        let mut bench = Bench::new(RACE, &[first, second]);
        let counts = bench.commits(60);
        assert_eq!(counts.won[0] + counts.won[1] + counts.skipped_busy, counts.writes);
        assert_eq!(counts.skipped_busy, 0);
    }
    let mut bench = Bench::new(RACE, &[|n| n % 2 * 4000, |n| (n + 1) % 2 * 4000]);
    for _ in 0..20 {
        bench.commits(1); // each slice ends when both copies are durable, so no write queues
    }
    let counts = bench.counts();
    assert!(counts.won[0] > 0 && counts.won[1] > 0, "{counts:?}");
}

#[test]
fn outliers_are_told_apart_by_who_was_slow() {
    // 10 ms on the first path at writes 5 and 15, on the second at 10 and 15.
    let arm = format!(r#"{RACE}, "outlier_ns": 10000000"#);
    let mut bench = Bench::new(
        &arm,
        &[|n| if n == 5 || n == 15 { 11_000 } else { 0 }, |n| if n == 10 || n == 15 { 11_000 } else { 0 }],
    );
    for _ in 0..20 {
        bench.commits(1); // each slice ends when both copies are durable, so no write queues
    }
    let counts = bench.counts();
    let found = (counts.prevented_outliers, counts.second_only_outliers, counts.actual_outliers);
    assert_eq!(found, (1, 1, 1), "{counts:?}");
    assert_eq!(counts.slow, [2, 2]);
}

#[test]
fn a_second_path_that_is_too_far_behind_is_skipped_and_catches_up() {
    let arm = format!(r#"{RACE}, "backlog_bytes": 16384"#);
    let mut bench = Bench::new(&arm, &[none, |n| if n == 1 { 30_000 } else { 0 }]);
    bench.run(Length::DurationNs(90_000_000)).unwrap();
    let counts = bench.counts();
    assert!(counts.skipped_busy > 0, "{counts:?}");
    assert!(counts.won[0] + counts.won[1] > 4, "it took part again: {counts:?}");
    assert_eq!(counts.won[0] + counts.won[1] + counts.skipped_busy, counts.writes);
    assert!(counts.behind_max[1] <= 16384);
    // Skipped writes are on the first path only.
    assert_eq!(counts.bytes[0] - counts.bytes[1], counts.skipped_busy * 4096);
}

#[test]
fn a_first_path_that_is_too_far_behind_holds_writes_back_and_misses_none() {
    let arm = format!(r#"{RACE}, "backlog_bytes": 16384"#);
    let mut bench = Bench::new(&arm, &[|_| 1000, none]);
    let counts = bench.commits(60);
    assert!(counts.held_back > 20, "{counts:?}");
    assert_eq!(counts.behind_max[0], 16384);
    assert_eq!(counts.bytes[0], 60 * 4096);
}

#[test]
fn a_failed_write_is_not_acknowledged_and_ends_the_probe() {
    for fails_at in [[7, 0], [0, 7]] {
        let mut bench = Bench::failing(TWO, &[none, none], fails_at);
        let error = bench.run(Length::Transactions(100)).unwrap_err();
        let path = if fails_at[0] > 0 { "one" } else { "two" };
        assert!(error.starts_with(&format!("{path}: write 7 of the log failed")), "{error}");
        assert!(error.contains("the medium is gone"), "{error}");
        let journal = bench.journal.lock().unwrap();
        assert!(!journal.contains(&Event::Acknowledged { commits: 7 }));
    }
}

#[test]
fn the_same_seed_draws_the_same_sizes() {
    let arm = format!(r#"{ONE}, "size": "exp(5000)""#);
    let totals: Vec<u64> = (0..2).map(|_| Bench::new(&arm, &[none]).commits(500).redo_bytes).collect();
    assert_eq!(totals[0], totals[1]);
}
