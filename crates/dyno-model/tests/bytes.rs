//! Tests that a seed gives the same results on every machine: digests of whole runs are written down here.
//!
//! Logarithms and the like come from `libm`, which is compiled from source, and not from the system's library; all else
//! is whole numbers, or operations that IEEE 754 rounds exactly. A change of the model that is meant to change results
//! changes these digests: the test prints the new ones.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write;
use std::rc::Rc;

use dyno_evidence::read_calls;
use dyno_model::kernel::Simulation;
use dyno_model::machine::{Machine, built_in};
use dyno_model::postgres::{Load, run};
use dyno_model::run::{Control, Run};
use serde_json::{Value, json};

/// Returns a digest of numbers (FNV-1a over their bytes, least significant first).
fn digest(numbers: impl IntoIterator<Item = u64>) -> String {
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

/// Returns the digests of a machine's block: of all that happened, and of the times of its calls as they were written.
fn block(machine: &str, workload: &Value) -> String {
    let folder = std::env::temp_dir().join(format!("dyno-bytes-{}-{machine}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = json!({
        "machine": built_in(machine).unwrap(), "seed": 2_011, "transactions": 30,
        "arms": [{"name": "only", "sessions": 5, "workload": workload}],
    });
    let done = Run::from_json(&text.to_string()).unwrap().block(0, &folder, &Control::default()).unwrap();
    let calls = read_calls(&folder.join("calls/b000000.parquet")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let times = calls.started_ns.iter().zip(&calls.elapsed_ns).flat_map(|(&at, &ns)| [at as u64, ns as u64]);
    format!("{} {}", done.hash, digest(times))
}

/// Returns the digest of the times of transactions on a modelled `PostgreSQL`, all of whose times are drawn.
fn postgres() -> String {
    let text = r#"
title = "made"
[postgres]
cores = 2
cpu_sigma = 0.4
delay = { kind = "lognormal", median_us = 30.0, sigma = 0.5 }
delay_memory = 0.3
statements = [{ text = "update", user_us = 20.0, system_us = 10.0, wal_bytes = 300.0 }]
scripts = [{ weight = 1, steps = [{ statement = 0, lock = { table = 1, rows = [1, 2, 3, 4] } }, { statement = 0, commits = true }] }]
[devices.log]
kind = "empirical"
capacity_gb = 100.0
servers = 1
regimes = [{ read = { kind = "constant", us = 1.0 }, write = { kind = "lognormal", median_us = 200.0, sigma = 0.4 } }]
[storage]
redo = "log"
data = "log"
"#;
    let machine = Machine::parse(text).unwrap();
    let parameters = machine.postgres().unwrap().unwrap();
    let simulation = Simulation::new(2_026);
    let device = machine.log_device(simulation.sim()).unwrap();
    let scripts = parameters.scripts.clone();
    let load = Load { sessions: 6, transactions: 2_000, warmup: 100, limit_s: 1e3, scripts };
    digest(run(&simulation, &parameters, &Rc::clone(&device), &load).unwrap().latencies_ns)
}

#[test]
fn a_seed_gives_the_same_times_on_every_machine() {
    let mut found = String::new();
    for (machine, workload) in [
        ("exadata-x2", json!({"kind": "commit-loop", "redo_bytes": "512..64KiB", "think_ms": 0.2})),
        ("sas-and-flash", json!({"kind": "update-loop"})),
        ("san", json!({"kind": "key-lookup"})),
    ] {
        writeln!(found, "{machine} {}", block(machine, &workload)).unwrap();
    }
    writeln!(found, "postgres {}", postgres()).unwrap();
    let known = "\
exadata-x2 
sas-and-flash 
san 
postgres 
";
    assert_eq!(found, known, "digests of this machine:\n{found}");
}
