//! Tests of the open loop on a real server.
//!
//! The response time counts from the intended start, so a stall of the engine cannot stay hidden.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::common::{Block, load, millis, run, server, signal, transactions};
use serde_json::json;

fn quantile(mut values: Vec<i64>, q: f64) -> i64 {
    values.sort_unstable();
    values[((values.len() - 1) as f64 * q) as usize]
}

fn responses(block: &Block) -> Vec<i64> {
    let rows = block.kind("transaction");
    let calls = &block.calls;
    rows.into_iter().map(|row| calls.started_ns[row] + calls.elapsed_ns[row] - calls.intended_ns[row]).collect()
}

/// The stall of a server's only session is visible in the response times.
///
/// With a stall of length S in a run of length T and a service time near zero, quantile q of the response time is at
/// least S - (1 - q) T, because the arrivals during the stall are spread evenly over it.
#[test]
fn a_stall_is_seen_by_all_who_arrive_during_it() {
    let Some(server) = server() else { return };
    let (run_ms, stall_ms) = (1_500, 300);
    let mut load = load(&server.spec("stalled", "select 1;", json!({"rate_per_s": 1_000.0})));
    load.connect(0, &Arc::default()).expect("connects");
    let backend = server.backend("stalled");
    let block = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            signal("STOP", backend);
            thread::sleep(Duration::from_millis(stall_ms));
            signal("CONT", backend);
        });
        run(&mut load, &millis(run_ms)).expect("runs")
    });
    let arm = &block.report.arms[0];
    assert!((1_350..1_650).contains(&arm.transactions), "{arm:?}");
    for q in [0.99, 0.95, 0.9] {
        let floor_ms = stall_ms as f64 - (1.0 - q) * run_ms as f64;
        let response_ms = quantile(responses(&block), q) as f64 / 1e6;
        // Arrivals are random: their number during the stall varies by 6 %.
        assert!(response_ms > floor_ms * 0.85, "q {q}: {response_ms} ms, floor {floor_ms} ms");
    }
    // The service time alone hides the stall: one operation in 1500 was slow.
    let service_ms = quantile(block.values("transaction", |c| &c.elapsed_ns), 0.99) as f64 / 1e6;
    assert!(service_ms < 100.0, "{service_ms}");
    // The session was busy, not late.
    assert!(arm.lag_max_ns < 100_000_000, "{arm:?}");
}

#[test]
fn arrivals_come_at_the_rate_and_nobody_starts_early() {
    let Some(server) = server() else { return };
    let spec = server.spec("rate", "select 1;", json!({"rate_per_s": 2_000.0, "sessions": 4}));
    let block = run(&mut load(&spec), &millis(500)).expect("runs");
    let arm = &block.report.arms[0];
    assert!((850..1_150).contains(&arm.transactions), "{arm:?}");
    assert_eq!(arm.skipped, 0);
    let calls = &block.calls;
    assert!(calls.started_ns.iter().zip(&calls.intended_ns).all(|(s, i)| s >= i));
    let mut intended = calls.intended_ns.clone();
    intended.sort_unstable();
    assert!(intended[intended.len() - 1] - intended[0] < 500_000_000);
}

#[test]
fn what_comes_too_late_is_skipped_and_counted() {
    let Some(server) = server() else { return };
    let more = json!({"rate_per_s": 1_000.0, "latency_limit_ns": 20_000_000});
    let spec = server.spec("limit", "select pg_sleep(0.005);", more);
    let block = run(&mut load(&spec), &millis(400)).expect("runs");
    let arm = &block.report.arms[0];
    assert!(arm.skipped > 100 && arm.transactions > 20, "{arm:?}");
    assert_eq!(block.kind("skipped").len() as u64, arm.skipped);
    assert!((320..480).contains(&(arm.skipped + arm.transactions)), "{arm:?}");
    let late: Vec<i64> = block
        .kind("skipped")
        .into_iter()
        .map(|row| block.calls.started_ns[row] - block.calls.intended_ns[row])
        .collect();
    assert!(late.iter().all(|&ns| ns > 20_000_000));
    assert!(block.values("skipped", |c| &c.elapsed_ns).iter().all(|&ns| ns == 0));
}

#[test]
fn what_is_late_at_the_end_is_drained_and_the_rest_given_up_at_the_cap() {
    let Some(server) = server() else { return };
    // Four times the work that one session can do: 50 ms of arrivals take 200 ms.
    let spec = server.spec("drain", "select pg_sleep(0.01);", json!({"rate_per_s": 400.0}));
    let block = run(&mut load(&spec), &millis(50)).expect("runs");
    assert_eq!(block.report.arms[0].skipped, 0);
    assert!(quantile(responses(&block), 1.0) > 50_000_000);
    // A hundred times the work: the cap is one second after the end.
    let spec = server.spec("cap", "select pg_sleep(0.05);", json!({"rate_per_s": 2_000.0}));
    let block = run(&mut load(&spec), &millis(50)).expect("runs");
    let arm = &block.report.arms[0];
    assert!(arm.skipped > 40 && (15..40).contains(&arm.transactions), "{arm:?}");
    let took = block.report.ended_ns - block.report.started_ns;
    assert!((1_000_000_000..1_600_000_000).contains(&took), "{took}");
}

#[test]
fn a_count_of_arrivals_is_kept_exactly() {
    let Some(server) = server() else { return };
    let spec = server.spec("count", "select 1;", json!({"rate_per_s": 5_000.0, "sessions": 3}));
    let mut load = load(&spec);
    for _ in 0..2 {
        let block = run(&mut load, &transactions(200)).expect("runs");
        assert_eq!(block.report.arms[0].transactions, 200);
    }
}
