//! Tests that runs become evidence: equal seeds give equal runs, arms use the same random numbers, and no partial
//! results remain.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use dyno_evidence::read_calls;
use dyno_model::machine::{built_in, built_in_names};
use dyno_model::run::{Block, Control, Run};
use serde_json::{Value, json};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dyno-runs-{}-{name}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn arm(name: &str, settings: &Value, workload: &Value) -> Value {
    json!({"name": name, "settings": settings, "sessions": 5, "workload": workload})
}

fn spec(machine: &str, seed: u64, arms: &[Value]) -> String {
    json!({
        "machine": built_in(machine).unwrap(),
        "seed": seed,
        "transactions": 60,
        "warmup_transactions": 10,
        "arms": arms,
    })
    .to_string()
}

fn commits() -> Value {
    json!({"kind": "commit-loop", "redo_bytes": "512..64KiB", "think_ms": 0.2})
}

fn race(seed: u64) -> Run {
    let off = arm("off", &json!({"cells.flash_log.enabled": "false"}), &commits());
    Run::from_json(&spec("exadata-x2", seed, &[off, arm("on", &json!({}), &commits())])).unwrap()
}

fn block(run: &Run, index: u32, folder: &Path) -> Block {
    run.block(index, folder, &Control::default()).unwrap()
}

fn bytes(folder: &Path, index: u32) -> Vec<Vec<u8>> {
    let part = |room: &str| fs::read(folder.join(format!("{room}/b{index:06}.parquet"))).unwrap();
    ["calls", "waits", "metrics"].map(part).into()
}

#[test]
fn equal_seeds_give_equal_runs_to_the_byte_whatever_runs_beside_them() {
    let (run, again) = (race(7), race(7));
    let (one, two) = (Folder::new("one"), Folder::new("two"));
    let alone: Vec<Block> = (0..4).map(|index| block(&run, index, &one.0)).collect();
    let beside: Vec<Block> = std::thread::scope(|scope| {
        let start = |index| {
            scope.spawn({
                let (again, two) = (&again, &two);
                move || block(again, index, &two.0)
            })
        };
        let threads: Vec<_> = (0..4).rev().map(start).collect();
        threads.into_iter().rev().map(|thread| thread.join().unwrap()).collect()
    });
    for index in 0..4 {
        assert_eq!(alone[index].hash, beside[index].hash);
        assert_eq!(bytes(&one.0, index as u32), bytes(&two.0, index as u32));
    }
    let hashes: std::collections::BTreeSet<&str> = alone.iter().map(|block| block.hash.as_str()).collect();
    assert_eq!(hashes.len(), 4, "blocks are different replications");
    assert_ne!(block(&race(8), 0, &two.0).hash, alone[0].hash);
}

/// Two equal arms have the same times to the nanosecond; a factor changes only what it affects.
#[test]
fn arms_meet_the_same_dice() {
    let folder = Folder::new("dice");
    let arms = [
        arm("a", &json!({}), &commits()),
        arm("b", &json!({}), &commits()),
        arm("c", &json!({"storage.redo": "log_flash"}), &commits()),
    ];
    let run = Run::from_json(&spec("sas-and-flash", 3, &arms)).unwrap();
    block(&run, 0, &folder.0);
    let calls = read_calls(&folder.0.join("calls/b000000.parquet")).unwrap();
    let of = |arm: u32, column: &[i64]| -> Vec<i64> {
        let rows = calls.arm.iter().zip(column).filter(|(own, _)| **own == arm);
        rows.map(|(_, value)| *value).collect()
    };
    assert_eq!(of(0, &calls.elapsed_ns), of(1, &calls.elapsed_ns));
    assert_ne!(of(0, &calls.elapsed_ns), of(2, &calls.elapsed_ns));
    let mut sizes = [of(0, &calls.redo_bytes), of(2, &calls.redo_bytes)];
    for sizes in &mut sizes {
        sizes.sort_unstable();
    }
    assert_eq!(sizes[0], sizes[1], "sizes are drawn alike");
}

#[test]
fn a_block_writes_what_it_says_and_holds_its_invariants() {
    let folder = Folder::new("rows");
    let done = block(&race(1), 2, &folder.0);
    let calls = read_calls(&folder.0.join("calls/b000002.parquet")).unwrap();
    assert_eq!(calls.elapsed_ns.len() as u64, done.rows);
    // 2 arms x 5 sessions x 60 transactions, each told as a transaction and as a commit.
    assert_eq!(done.rows, 2 * 5 * 60 * 2);
    let arms: Vec<u64> = done.report.arms.iter().map(|arm| arm.transactions).collect();
    assert_eq!(arms, [300, 300]);
    assert!(done.invariants.little && done.invariants.ledgers && done.invariants.conservation);
    assert!(done.invariants.stations > 100 && done.invariants.sessions == 10);
    assert_eq!(done.started_ns, 2 * 86_400_000_000_000);
    assert!(calls.started_ns.iter().all(|at| (done.started_ns..done.ended_ns).contains(at)));
}

/// Runs every machine with every kind of workload; the run itself asserts the invariants.
#[test]
fn every_built_in_machine_runs_every_workload() {
    let folder = Folder::new("all");
    let workloads = [
        json!({"kind": "commit-loop", "redo_bytes": "4KiB,1MiB"}),
        json!({"kind": "update-loop"}),
        json!({"kind": "key-lookup"}),
        json!({"kind": "scan-jobs", "bytes": 4 << 20}),
        // Four areas, which spill: where another database has a load of its own, it runs as long as this one's sorts.
        json!({"kind": "sort", "bytes": 8 << 20}),
    ];
    for name in built_in_names() {
        for (index, workload) in workloads.iter().enumerate() {
            println!("{name}, {}", workload["kind"]);
            let text = json!({
                "machine": built_in(name).unwrap(), "seed": 5, "transactions": 4,
                "arms": [{"name": "only", "sessions": 3, "workload": workload}],
            });
            let run = Run::from_json(&text.to_string()).unwrap();
            let done = block(&run, index as u32, &folder.0);
            assert_eq!(done.report.arms[0].transactions, 12);
        }
    }
}

#[test]
fn a_stopped_block_leaves_nothing_behind() {
    let folder = Folder::new("stop");
    let control = Control::default();
    control.stop.store(true, Ordering::Relaxed);
    let done = race(1).block(0, &folder.0, &control).unwrap();
    assert!(done.stopped);
    for room in ["calls", "waits", "metrics"] {
        let left = fs::read_dir(folder.0.join(room)).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{room}");
    }
}

#[test]
fn progress_counts_transactions_of_all_arms() {
    let folder = Folder::new("progress");
    let control = Control::default();
    race(1).block(0, &folder.0, &control).unwrap();
    assert_eq!(control.progress.load(Ordering::Relaxed), 600);
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let refused = |arm: Value| Run::from_json(&spec("exadata-x2", 1, &[arm])).unwrap_err().to_string();
    for (settings, workload, words) in [
        (json!({"flash_lag.enabled": "true"}), commits(), "flash_log"),
        (json!({"cells.count": "1"}), commits(), "each in a cell of its own"),
        (json!({"cells.flash_log.enabled": "maybe"}), commits(), "true or false"),
        (json!({}), json!({"kind": "commit-loop", "redo_bytes": "many"}), "redo_bytes"),
        (json!({}), json!({"kind": "comit-loop"}), "commit-loop"),
        (json!({}), json!({"kind": "commit-loop", "redo_byte": "1"}), "redo_bytes"),
    ] {
        let error = refused(arm("a", &settings, &workload));
        println!("{error}\n");
        assert!(error.contains(words), "{words}");
    }
    assert!(Run::from_json(&spec("san", 1, &[])).unwrap_err().to_string().contains("one arm"));
    assert!(Run::from_json("{").is_err());
}

/// Evidence that cannot be written is an error, not a silent loss.
#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let error = race(1).block(0, Path::new("/proc/nowhere"), &Control::default()).unwrap_err();
    assert!(error.to_string().contains("/proc/nowhere"), "{error}");
}
