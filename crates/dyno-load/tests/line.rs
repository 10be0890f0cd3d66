//! Tests of sessions over an emulated network line to a real server: the time that it adds, and that everything else is
//! unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{load, millis, run, run_until, server, transactions};
use dyno_load::{Length, Slice};
use serde_json::{Value, json};

fn network(delay_ms: u64) -> Value {
    json!({"delay_ns": delay_ms * 1_000_000})
}

#[test]
fn a_round_trip_takes_the_delay_twice_whatever_the_socket() {
    let Some(server) = server() else { return };
    for host in [json!(server.dir), json!("127.0.0.1")] {
        let mut spec = server.spec("near", "select 1;", json!({"network": network(4)}));
        spec["arms"][0]["connection"]["host"] = host;
        let block = run(&mut load(&spec), &transactions(5)).expect("runs");
        let took = block.values("transaction", |calls| &calls.elapsed_ns);
        assert!(took.iter().all(|ns| *ns >= 8_000_000), "{took:?}");
        let line = &block.report.lines[0];
        assert!(line.arm == 0 && line.lateness.pieces >= 9, "{line:?}");
    }
}

#[test]
fn arms_with_and_without_a_line_take_turns_in_slices() {
    let Some(server) = server() else { return };
    let mut spec = server.spec("here", "select 1;", json!({}));
    let mut far = spec["arms"][0].clone();
    (far["name"], far["network"]) = (json!("far"), network(3));
    spec["arms"].as_array_mut().expect("arms").push(far);
    let slices: Vec<Slice> =
        (0..4).map(|slice| Slice { arm: slice as u16 % 2, slice, length: Length::Transactions(5) }).collect();
    let block = run(&mut load(&spec), &slices).expect("runs");
    assert_eq!(block.report.lines.iter().map(|line| line.arm).collect::<Vec<_>>(), [1]);
    assert_eq!(block.report.arms.iter().map(|arm| arm.transactions).collect::<Vec<_>>(), [10, 10]);
    assert_eq!(block.report.reconnects, 0);
}

#[test]
fn a_large_result_comes_at_the_rate_of_the_line() {
    let Some(server) = server() else { return };
    // 250,000 characters at 20 Mbit/s take 100 ms.
    let network = json!({"delay_ns": 0, "rate_bit_per_s": 20_000_000});
    let spec = server.spec("narrow", "select repeat('x', 250000);", json!({"network": network}));
    let block = run(&mut load(&spec), &transactions(2)).expect("runs");
    let took = block.values("transaction", |calls| &calls.elapsed_ns);
    assert!(took.iter().all(|ns| *ns >= 100_000_000), "{took:?}");
}

#[test]
fn a_wish_to_stop_cancels_over_the_line() {
    let Some(server) = server() else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let spec = server.spec("cancelled", "select pg_sleep(60);", json!({"network": network(20)}));
    let mut load = load(&spec);
    let (setter, started) = (Arc::clone(&stop), Instant::now());
    let asker = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        setter.store(true, Ordering::Relaxed);
    });
    let block = run_until(&mut load, &millis(60_000), &stop).expect("ends");
    asker.join().expect("ends");
    assert!(block.report.interrupted && started.elapsed() < Duration::from_secs(20));
    drop(load);
    // Once the server has processed the request nothing is active any more.
    let left = "select count(*) from pg_stat_activity where application_name = 'cancelled' and state = 'active'";
    let gone = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        server.sql(left) == "0"
    });
    assert!(gone);
}

#[test]
fn a_session_that_the_server_ends_is_connected_again_over_the_line() {
    let Some(server) = server() else { return };
    let script = "select pg_terminate_backend(pg_backend_pid());";
    let spec = server.spec("ended", script, json!({"network": network(2)}));
    let block = run(&mut load(&spec), &transactions(2)).expect("runs");
    assert_eq!(block.errors("transaction"), ["57P01", "57P01"]);
    assert!(block.report.reconnects >= 1);
}
