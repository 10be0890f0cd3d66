//! Tests that everything that a check accepts can run: numbers anywhere within their ranges, ends included, on every
//! built-in machine under every workload. Runs end, are stopped, or are refused with a reason; nothing overflows (the
//! crate is compiled with overflow checks), panics, or breaks an invariant.
//!
//! `DYNO_SWARM=5000 cargo test --release -p dyno-model --test tests -- accepted::` tries more cases; `DYNO_SEED` sets
//! the first seed, so that a failing case can be run again.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use dyno_model::kernel::{SimError, Stream, Streams};
use dyno_model::machine::{Machine, built_in, built_in_names};
use dyno_model::run::{Block, Control, Run, RunError};
use dyno_model::workload::Workload;
use serde_json::{Map, Value, json};

/// Returns the text of a machine with a disk and a database, with further lines for the disk and for the machine.
fn machine(disk: &str, more: &str) -> String {
    format!(
        "title = \"t\"\n[database]\n[devices.d]\nkind = \"disk\"\n{disk}\n{more}\n[storage]\nredo = \"d\"\ndata = \"d\""
    )
}

fn refusal(text: &str) -> String {
    Machine::parse(text).map_or_else(|error| error.to_string(), |_| String::new())
}

#[test]
fn a_time_that_would_wrap_is_refused_beside_its_parameter() {
    for time in ["1e13", "1e14", "1e15", "1e300"] {
        let found = refusal(&machine(&format!("overhead_us = {time}"), ""));
        assert!(found.contains("devices.d.overhead_us"), "{found}");
        assert!(found.contains("from 0 to 3600000000"), "{found}");
        assert!(found.len() < 200, "1e300 has few digits: {found}");
    }
    assert_eq!(refusal(&machine("overhead_us = 3.6e9", "")), "");
}

#[test]
fn dies_that_have_no_page_are_refused() {
    let flash = |dies: u64, mb: u64| format!("[devices.f]\nkind = \"flash\"\ndies = {dies}\ncapacity_mb = {mb}");
    let found = refusal(&machine("", &flash(4_096, 1)));
    assert!(found.contains("4096 dies share 1 MB") && found.contains("capacity_mb = 1024 or more"), "{found}");
    assert_eq!(refusal(&machine("", &flash(4_096, 1_024))), "");
    let cells = "title = \"t\"\n[database]\n[cells.flash]\ndies = 4096\n[storage]\nredo = \"RECO\"\ndata = \"DATA\"";
    assert!(refusal(cells).contains("4096 dies"), "{}", refusal(cells));
}

#[test]
fn a_number_within_a_structure_has_bounds_too() {
    let device = |times: &str| {
        format!(
            "[devices.e]\nkind = \"empirical\"\ncapacity_gb = 1.0\nservers = 1\n[[devices.e.regimes]]\nstay_ms = 0.0\n\
             read = {{ kind = \"constant\", us = 5.0 }}\nwrite = {times}"
        )
    };
    let found = |times: &str| refusal(&machine("", &device(times)));
    assert_eq!(found("{ kind = \"exponential\", mean_us = 400.0 }"), "");
    assert!(found("{ kind = \"exponential\", mean_us = 1e15 }").contains("`mean_us` from 0 to 3600000000"));
    assert!(found("{ kind = \"lognormal\", median_us = 1.0, sigma = 900.0 }").contains("`sigma` from 0 to 5"));
    assert!(found("{ kind = \"constant\", us = -1.0 }").contains("`us` from 0"));
}

#[test]
fn a_machine_that_would_not_fit_into_memory_is_refused() {
    let many = "[devices.f]\nkind = \"flash\"\ncapacity_mb = 1000000\npage_bytes = 512";
    assert!(refusal(&machine("", many)).contains("pages of flash, at most"));
    let rack =
        "title = \"t\"\n[database]\n[cells]\ncount = 1000\ndisks = 256\n[storage]\nredo = \"RECO\"\ndata = \"DATA\"";
    assert!(refusal(rack).contains("devices, at most"), "{}", refusal(rack));
}

#[test]
fn a_workload_has_ranges_and_a_limit_of_memory() {
    let found = |value: Value| serde_json::from_value::<Workload>(value).unwrap().check().map_err(|e| e.to_string());
    assert!(found(json!({"kind": "commit-loop", "think_ms": 1e300})).unwrap_err().contains("1e300"));
    assert!(found(json!({"kind": "commit-loop", "cpu_us": -1.0})).unwrap_err().contains("cpu_us"));
    assert!(found(json!({"kind": "commit-loop", "redo_mb_s": 0.0})).is_err());
    assert!(found(json!({"kind": "key-lookup", "keys": 4_000_000_000_u64})).is_ok());
    assert!(found(json!({"kind": "key-lookup", "keys": 4_000_000_000_u64, "skew": 1.0})).is_err());
    assert!(found(json!({"kind": "sort", "bytes": 1_000_000_000_000_u64, "area_kb": 1})).is_err());
}

#[test]
fn a_run_that_would_outlast_virtual_time_is_refused() {
    let spec = json!({
        "machine": machine("", ""), "seed": 1, "transactions": 2_000,
        "arms": [{"name": "a", "sessions": 1, "workload": {"kind": "commit-loop", "think_ms": 3.6e6}}],
    });
    let folder = std::env::temp_dir().join(format!("dyno-endless-{}", std::process::id()));
    let found = Run::from_json(&spec.to_string()).unwrap().block(0, &folder, &Control::default());
    std::fs::remove_dir_all(&folder).ok();
    let told = found.unwrap_err().to_string();
    assert!(told.contains("virtual time would pass 30 days"), "{told}");
}

#[test]
fn buffers_that_are_hot_at_once_do_not_send_a_search_round_for_ever() {
    let update = json!({"kind": "update-loop", "blocks": 100});
    let buffers = "[database.buffers]\nbuffers = 8\nhot_touches = 1";
    let spec = json!({
        "machine": machine("", buffers), "seed": 1, "transactions": 50,
        "arms": [{"name": "a", "sessions": 2, "workload": update}],
    });
    let folder = std::env::temp_dir().join(format!("dyno-hot-{}", std::process::id()));
    let done = Run::from_json(&spec.to_string()).unwrap().block(0, &folder, &Control::default()).unwrap();
    std::fs::remove_dir_all(&folder).ok();
    assert_eq!(done.report.arms[0].transactions, 100);
    assert!(refusal(&machine("", "[database.buffers]\nhot_touches = 0")).contains("from 1 to"));
}

/// Returns a random number from a range: one of its ends, or a number between them whose order of magnitude is
/// uniformly distributed.
fn number(dice: &mut Stream, (low, high): (f64, f64), whole: bool) -> f64 {
    let low_above_0 = if low > 0.0 { low } else { 1e-3_f64.min(high) };
    let value = match dice.below(8) {
        0 => low,
        1 => high,
        _ => (low_above_0.ln() + dice.unit() * (high / low_above_0).ln()).exp(),
    };
    let value = if whole { value.round() } else { value };
    value.clamp(low, high)
}

/// Returns random parameters of a workload within their ranges; counts are small, so that most runs end soon.
fn workload(dice: &mut Stream) -> Value {
    let kinds = Workload::KINDS;
    let kind = kinds[dice.below(kinds.len() as u64) as usize];
    let plain: Workload = serde_json::from_value(json!({ "kind": kind })).unwrap();
    let defaults = serde_json::to_value(&plain).unwrap();
    let mut found = Map::from_iter([("kind".to_owned(), json!(kind))]);
    for row in plain.table() {
        let Some(default) = defaults[row.key].as_number().filter(|_| dice.below(3) == 0) else { continue };
        let whole = default.is_u64();
        let value = number(dice, row.range(), whole);
        found.insert(row.key.into(), if whole { json!(value as u64) } else { json!(value) });
    }
    Value::Object(found)
}

/// Returns a specification with a workload and a built-in machine; up to six numbers of the machine are replaced by
/// random ones.
fn spec(seed: u64) -> Value {
    let mut dice = Streams::new(seed).named("accepted");
    let names: Vec<&str> = built_in_names().collect();
    let text = built_in(names[dice.below(names.len() as u64) as usize]).unwrap();
    let lines = Machine::parse(text).unwrap().describe().parameters;
    let mut settings = Map::new();
    for _ in 0..=dice.below(6) {
        let line = &lines[dice.below(lines.len() as u64) as usize];
        let Some(range) = line.range else { continue };
        let whole = line.default.as_ref().is_some_and(toml::Value::is_integer);
        settings.insert(line.path.clone(), json!(number(&mut dice, range, whole).to_string()));
    }
    let arm = json!({
        "name": "only", "settings": settings, "sessions": 1 + dice.below(8), "workload": workload(&mut dice),
    });
    json!({
        "machine": text, "seed": seed, "arms": [arm], "transactions": 1 + dice.below(10),
        "warmup_transactions": dice.below(3),
    })
}

/// Returns how a specification ended, in a word; panics for forbidden outcomes.
fn ended(seed: u64, patience: Duration, folder: &std::path::Path) -> &'static str {
    let spec = spec(seed);
    println!("seed {seed}: {}", spec["arms"][0]);
    let run = match Run::from_json(&spec.to_string()) {
        Ok(run) => run,
        Err(RunError::Machine(_) | RunError::Spec(_)) => return "refused",
        Err(error) => panic!("seed {seed}: {error}"),
    };
    match run_for(&run, patience, folder) {
        Ok(Block { stopped: true, .. }) => "stopped",
        Ok(block) => {
            let held = block.invariants;
            assert!(held.little && held.ledgers && held.conservation, "seed {seed}");
            "whole"
        }
        Err(RunError::Simulation { source: SimError::Endless { .. } | SimError::Standstill { .. }, .. }) => "endless",
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

fn run_for(run: &Run, patience: Duration, folder: &std::path::Path) -> Result<Block, RunError> {
    let control = Control::default();
    std::thread::scope(|scope| {
        let (told, watched) = std::sync::mpsc::channel::<()>();
        let stop = &control.stop;
        scope.spawn(move || {
            if watched.recv_timeout(patience).is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        });
        let done = run.block(0, folder, &control);
        told.send(()).ok();
        done
    })
}

#[test]
fn whatever_lies_within_the_ranges_runs_or_is_refused() {
    let from = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, first) = (from("DYNO_SWARM", 60), from("DYNO_SEED", 1));
    let patience = Duration::from_millis(if count > 100 { 2_000 } else { 300 });
    let folder = std::env::temp_dir().join(format!("dyno-accepted-{}", std::process::id()));
    let mut ends = std::collections::BTreeMap::new();
    for seed in first..first + count {
        *ends.entry(ended(seed, patience, &folder)).or_insert(0_u64) += 1;
    }
    std::fs::remove_dir_all(&folder).ok();
    println!("{ends:?}");
    assert!(ends.get("whole").is_some_and(|whole| whole * 4 > count), "too few run to tell anything: {ends:?}");
}
