//! Benchmark for comparison with pgbench: runs one script at full speed and prints throughput and CPU time.
//!
//! ```text
//! cargo run --release -p dyno-load --example bench -- /run/postgresql,5432,user,db script.sql 8 10
//! ```
//!
//! Arguments: host,port,user,database; script file; sessions; seconds; optionally the protocol, the scale, and the rate
//! of an open loop [transactions per second]. Every latency is recorded in a Parquet part, and the CPU time for writing
//! it is included.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use dyno_evidence::{CallsWriter, read_calls};
use dyno_load::{Length, Load, LoadSpec, Slice};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [place, script, sessions, seconds, rest @ ..] = args.as_slice() else {
        return Err("usage: bench host,port,user,db script sessions seconds [protocol [scale [rate]]]".into());
    };
    let parts: Vec<&str> = place.split(',').collect();
    let [host, port, user, dbname] = parts[..] else {
        return Err("the place is host,port,user,db".into());
    };
    let (sessions, seconds) = (sessions.parse::<u16>()?, seconds.parse::<f64>()?);
    let scale = rest.get(1).map_or("10", String::as_str);
    let rate = rest.get(2).map(|rate| rate.parse::<f64>()).transpose()?;
    let spec = serde_json::json!({
        "seed": 7, "protocol": rest.first().map_or("prepared", String::as_str),
        "arms": [{"name": "bench", "sessions": sessions, "variables": {"scale": scale},
            "rate_per_s": rate,
            "connection": {"host": host, "port": port.parse::<u16>()?, "user": user,
                "dbname": dbname},
            "scripts": [{"name": "bench", "text": std::fs::read_to_string(script)?}]}]
    });
    let mut load = Load::new(&LoadSpec::from_json(&spec.to_string())?)?;
    load.connect(0, &Arc::default())?;
    let dir = std::env::temp_dir().join(format!("dyno-bench-{}", std::process::id()));
    let mut writer = CallsWriter::create(&dir, "bench", &load.arm_names(), load.statement_names())?;
    let slice = Slice { arm: 0, slice: 0, length: Length::DurationNs((seconds * 1e9) as u64) };
    let (stop, progress) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let cpu_start = process_cpu_ns();
    let report = load.run(0, &[slice], &mut writer, &stop, &progress)?;
    let rows = writer.finish()?;
    let cpu_ns = process_cpu_ns() - cpu_start;
    let arm = &report.arms[0];
    let done = arm.transactions as f64;
    println!(
        "tps {:.1} cpu_us {:.3} cpu_all_us {:.3} transactions {} errors {} rows {rows} lag_max_us {:.0}",
        done * f64::from(sessions) * 1e9 / arm.busy_ns as f64,
        report.cpu_ns as f64 / done / 1e3,
        cpu_ns as f64 / done / 1e3,
        arm.transactions,
        arm.errors,
        arm.lag_max_ns as f64 / 1e3
    );
    if std::env::var_os("DYNO_BENCH_QUANTILES").is_some() {
        let calls = read_calls(&dir.join("bench.parquet"))?;
        let mut elapsed = calls.elapsed_ns;
        elapsed.sort_unstable();
        let at = |q: f64| elapsed[((elapsed.len() - 1) as f64 * q) as usize] as f64 / 1e3;
        println!("p50_us {:.1} p99_us {:.1} p99.9_us {:.1}", at(0.5), at(0.99), at(0.999));
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
