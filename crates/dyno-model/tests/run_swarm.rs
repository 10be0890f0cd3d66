//! Runs random settings of the built-in machines under random work, from a seed. A run that is not refused runs to its
//! end without violating an invariant (the run itself asserts this), and the same seed gives the same run.
//!
//! `DYNO_SWARM=10000 cargo test --release -p dyno-model --test tests -- run_swarm::` runs it for longer.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use dyno_model::kernel::{Stream, Streams};
use dyno_model::machine::{Machine, ParameterLine, built_in, built_in_names};
use dyno_model::run::{Control, Run, RunError};
use serde_json::{Map, Value, json};

/// Parameters that make a machine large, or make it take long to fill a flash card; they are left unchanged.
const LARGE: [&str; 7] =
    ["count", "capacity_mb", "dies", "disks", "modules", "simulated_mb", "over_provisioning_ratio"];

fn setting(line: &ParameterLine, machine: &Machine, dice: &mut Stream) -> Option<String> {
    let key = line.path.rsplit('.').next()?;
    if LARGE.contains(&key) {
        return None;
    }
    let words: &[&str] = match key {
        "redo" | "data" | "temp" => {
            let parts = machine.describe().parts;
            let part = &parts[dice.below(parts.len() as u64) as usize];
            return Some(part.name.clone());
        }
        "mode" => &["write-back", "write-through", "none"],
        "scheduler" => &["fifo", "elevator", "nearest"],
        "start" => &["steady", "fresh"],
        "partial_pages" => &["through", "buffered"],
        "collector" => &["greedy", "cost-benefit", "fifo"],
        "redundancy" => &["external", "normal", "high"],
        "caching" => &["none", "default", "keep"],
        "on" => &["disk", "flash"],
        "replacement" => &["lru", "touch-count"],
        _ => &[],
    };
    if !words.is_empty() {
        return Some(words[dice.below(words.len() as u64) as usize].into());
    }
    let factor = [0.0, 0.1, 0.5, 2.0, 10.0][dice.below(5) as usize];
    match line.value.as_ref()? {
        toml::Value::Boolean(flag) => Some((!flag).to_string()),
        toml::Value::Integer(whole) => Some(((*whole as f64 * factor) as i64).to_string()),
        toml::Value::Float(float) => Some((float * factor).to_string()),
        _ => None,
    }
}

fn workload(dice: &mut Stream) -> Value {
    match dice.below(6) {
        0 => json!({"kind": "commit-loop", "redo_bytes": "512"}),
        1 => json!({"kind": "commit-loop", "redo_bytes": "4KiB..4MiB", "think_ms": 1.0}),
        2 => json!({"kind": "update-loop"}),
        3 => json!({"kind": "key-lookup"}),
        4 => json!({"kind": "scan-jobs", "bytes": 3 << 20}),
        _ => json!({"kind": "sort"}),
    }
}

/// Returns the specification of a run: a machine, up to four settings, and a workload.
fn spec(seed: u64) -> String {
    let mut dice = Streams::new(seed).named("swarm");
    let names: Vec<&str> = built_in_names().collect();
    let text = built_in(names[dice.below(names.len() as u64) as usize]).unwrap();
    let machine = Machine::parse(text).unwrap();
    let lines = machine.describe().parameters;
    let mut settings = Map::new();
    for _ in 0..dice.below(5) {
        let line = &lines[dice.below(lines.len() as u64) as usize];
        if let Some(text) = setting(line, &machine, &mut dice) {
            settings.insert(line.path.clone(), Value::String(text));
        }
    }
    let arm = json!({
        "name": "only", "settings": settings, "sessions": 1 + dice.below(8),
        "workload": workload(&mut dice),
    });
    json!({
        "machine": text, "seed": seed, "arms": [arm],
        "transactions": 1 + dice.below(20), "warmup_transactions": dice.below(3),
    })
    .to_string()
}

/// Runs a specification for at most a few seconds and returns its hash; `None` if it was refused or took too long.
fn hash(seed: u64, folder: &std::path::Path) -> Option<String> {
    let text = spec(seed);
    let asked: Value = serde_json::from_str(&text).unwrap();
    println!("seed {seed}: {}", asked["arms"][0]);
    let run = match Run::from_json(&text) {
        Ok(run) => run,
        Err(error @ (RunError::Machine(_) | RunError::Spec(_))) => {
            println!("  refused: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let control = Control::default();
    std::thread::scope(|scope| {
        let (told, watched) = std::sync::mpsc::channel::<()>();
        let stop = &control.stop;
        scope.spawn(move || {
            if watched.recv_timeout(Duration::from_secs(5)).is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        });
        let done = run.block(0, folder, &control);
        told.send(()).ok();
        let done = done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        if done.stopped {
            println!("  too long");
            return None;
        }
        assert!(done.invariants.little && done.invariants.ledgers && done.invariants.conservation);
        Some(done.hash)
    })
}

#[test]
fn whatever_is_set_a_run_is_refused_or_whole() {
    let count = std::env::var("DYNO_SWARM").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let first = std::env::var("DYNO_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let folder = std::env::temp_dir().join(format!("dyno-swarm-{}", std::process::id()));
    let mut whole = 0;
    for seed in first..first + count {
        let Some(once) = hash(seed, &folder) else { continue };
        whole += 1;
        if seed % 10 == 0 {
            assert_eq!(hash(seed, &folder), Some(once), "seed {seed} replays");
        }
    }
    std::fs::remove_dir_all(&folder).ok();
    println!("{whole} of {count} ran");
    assert!(whole * 2 > count, "too many are refused to tell anything");
}
