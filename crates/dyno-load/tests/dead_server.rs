//! Tests with a server that floods the client, stops answering, or ends in the middle of an answer: the load must
//! continue or end.
//!
//! The server is a script on a socket of 127.0.0.1.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{load, millis, run, run_until, transactions};
use serde_json::{Value, json};

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Returns `AuthenticationOk`, the cancel key and `ReadyForQuery`.
fn welcome() -> Vec<u8> {
    [frame(b'R', &[0; 4]), frame(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]), frame(b'Z', b"I")].concat()
}

/// Returns the answer to a prepared `select 1`.
fn answer() -> Vec<u8> {
    [frame(b'1', b""), frame(b'2', b""), frame(b'D', &[0, 0]), frame(b'C', b"SELECT 1\0"), frame(b'Z', b"I")].concat()
}

/// Greets each client and calls `client` with its number and stream; cancel requests are not clients.
fn serve(client: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let client = Arc::new(client);
    thread::spawn(move || {
        let mut number = 0;
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client");
            let mut greeting = [0; 512];
            let Ok(count) = stream.read(&mut greeting) else { continue };
            if count > 16 && stream.write_all(&welcome()).is_ok() {
                let client = Arc::clone(&client);
                thread::spawn(move || client(number, stream));
                number += 1;
            }
        }
    });
    port
}

fn spec(port: u16, more: &Value) -> Value {
    let mut arm = json!({"name": "a", "sessions": 1,
        "connection": {"host": "127.0.0.1", "port": port, "user": "u", "dbname": "d", "sslmode": "disable"},
        "scripts": [{"name": "s", "text": "select 1;"}]});
    arm.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"seed": 7, "arms": [arm]})
}

/// Answers queries until the client disconnects.
fn answer_all(mut stream: &TcpStream) {
    while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) && stream.write_all(&answer()).is_ok() {}
}

#[test]
fn an_end_that_comes_together_with_the_last_bytes_is_seen() {
    // Both are sent before the client reads: a single event reports both.
    for _ in 0..40 {
        let port = serve(|number, mut stream| {
            if number > 0 {
                return answer_all(&stream);
            }
            drop(stream.read(&mut [0; 4096]));
            drop(stream.write_all(&answer()[..12]));
            // Dropped: the end of the stream follows immediately.
        });
        let block = run(&mut load(&spec(port, &json!({}))), &transactions(3)).expect("goes on");
        assert_eq!((block.report.reconnects, block.report.arms[0].errors), (1, 1));
    }
}

#[test]
fn an_end_that_came_while_another_arm_was_at_work_is_seen() {
    let port = serve(|number, mut stream| {
        // The first connection is the first arm's; it ends after its first answer, while the other arm runs.
        if number == 0 {
            drop(stream.read(&mut [0; 4096]));
            drop(stream.write_all(&answer()));
        } else {
            answer_all(&stream);
        }
    });
    let mut spec = spec(port, &json!({}));
    let mut second = spec["arms"][0].clone();
    second["name"] = "b".into();
    spec["arms"].as_array_mut().expect("arms").push(second);
    let slices: Vec<dyno_load::Slice> = (0..6)
        .map(|slice| dyno_load::Slice { arm: (slice % 2) as u16, slice, length: dyno_load::Length::Transactions(1) })
        .collect();
    let block = run(&mut load(&spec), &slices).expect("goes on");
    assert_eq!(block.report.arms[1].errors, 0);
    assert_eq!(block.report.reconnects, 1);
}

/// Sends notices without end, in pieces that are split at arbitrary bytes.
fn flood(mut stream: &TcpStream, seed: usize) {
    let notices = frame(b'N', &vec![0; 100 + seed * 37]).repeat(50);
    let piece = 1_000 + seed * 701;
    let mut at = 0;
    loop {
        let end = (at + piece).min(notices.len());
        if stream.write_all(&notices[at..end]).is_err() {
            return;
        }
        at = if end == notices.len() { 0 } else { end };
    }
}

fn stop_within_a_flood(seed: usize) -> Duration {
    let port = serve(move |_, mut stream| {
        drop(stream.read(&mut [0; 4096]));
        flood(&stream, seed);
    });
    let mut load = load(&spec(port, &json!({"sessions": 1 + seed % 9})));
    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            thread::sleep(Duration::from_millis(20 + 13 * seed as u64));
            stop.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let block = run_until(&mut load, &millis(60_000), &stop).expect("ends well");
        assert!(block.report.interrupted);
        stopper.join().expect("stops").elapsed()
    })
}

#[test]
fn a_flood_of_notices_does_not_outlive_a_wish_to_stop() {
    for seed in [0, 5] {
        stop_within_a_flood(seed);
    }
}

#[test]
#[ignore = "a minute: run by make soak"]
fn no_flood_of_notices_outlives_a_wish_to_stop() {
    let longest = (0..48).map(stop_within_a_flood).max().expect("some");
    println!("48 floods; the longest took {longest:?} to end");
}

#[test]
fn a_flood_leaves_the_other_sessions_of_its_thread_their_turn() {
    // More sessions than threads: some share a thread with the flood.
    let sessions = 2 * thread::available_parallelism().map_or(2, usize::from) + 3;
    let (sender, served) = std::sync::mpsc::channel();
    let port = serve(move |number, mut stream| {
        drop(stream.read(&mut [0; 4096]));
        if number == 0 {
            return flood(&stream, 3);
        }
        drop(stream.write_all(&answer()));
        drop(stream.read(&mut [0; 4096])); // its next query: it has read the answer
        let _ = sender.send(number);
        while stream.write_all(&answer()).is_ok() && stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    });
    let mut load = load(&spec(port, &json!({"sessions": sessions})));
    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let mut seen: Vec<usize> = (1..sessions).map(|_| served.recv().expect("each has its turn")).collect();
            seen.sort_unstable();
            assert_eq!(seen, (1..sessions).collect::<Vec<_>>());
            stop.store(true, Ordering::Relaxed);
        });
        run_until(&mut load, &millis(60_000), stop).expect("ends well");
    });
}

#[test]
fn an_answer_that_is_overdue_ends_the_connection_and_not_the_run() {
    // The server's own limit would have ended the statement 10 s earlier.
    let port = serve(|number, mut stream| {
        if number == 0 {
            drop(stream.read(&mut [0; 4096])); // set statement_timeout
            drop(stream.write_all(&[frame(b'C', b"SET\0"), frame(b'Z', b"I")].concat()));
            drop(stream.read(&mut [0; 4096]));
            drop(stream.read(&mut [0; 4096])); // until the client closes the connection
            return;
        }
        drop(stream.read(&mut [0; 4096]));
        drop(stream.write_all(&[frame(b'C', b"SET\0"), frame(b'Z', b"I")].concat()));
        answer_all(&stream);
    });
    let block = run(&mut load(&spec(port, &json!({"statement_timeout_ms": 1}))), &transactions(2)).expect("goes on");
    assert_eq!((block.report.reconnects, block.report.arms[0].errors), (1, 1));
    let words = block.report.arms[0].first_error.as_deref().unwrap_or_default();
    assert!(words.contains("no answer within the limit"), "{words}");
}

#[test]
fn connecting_to_a_silent_server_without_a_time_limit_ends_with_the_wish_to_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let mut spec = spec(port, &json!({}));
    spec["arms"][0]["connection"]["connect_timeout_s"] = 0.into();
    let stop = Arc::new(AtomicBool::new(false));
    let mut load = load(&spec);
    thread::scope(|scope| {
        let silent = scope.spawn(|| {
            let client = listener.accept().expect("a client");
            stop.store(true, Ordering::Relaxed);
            client
        });
        let error = load.connect(0, &stop).expect_err("ends");
        assert!(error.to_string().contains("a request to stop"), "{error}");
        silent.join().expect("no panic");
    });
}

#[test]
fn a_row_that_is_too_long_to_keep_is_an_error_of_its_statement() {
    let mut long = 1_u16.to_be_bytes().to_vec();
    long.extend_from_slice(&(2_000_000_u32).to_be_bytes());
    long.extend_from_slice(&vec![b'7'; 2_000_000]);
    let description = [&1_u16.to_be_bytes()[..], b"v\0", &[0; 18]].concat();
    let rows = [
        frame(b'1', b""),
        frame(b'2', b""),
        frame(b'T', &description),
        frame(b'D', &long),
        frame(b'C', b"SELECT 1\0"),
        frame(b'Z', b"I"),
    ]
    .concat();
    let port =
        serve(
            move |_, mut stream| {
                while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) && stream.write_all(&rows).is_ok() {}
            },
        );
    let mut spec = spec(port, &json!({}));
    spec["arms"][0]["scripts"] = json!([{"name": "s", "text": "select v from t \\gset\n"}]);
    let block = run(&mut load(&spec), &transactions(2)).expect("runs");
    assert_eq!(block.errors("transaction"), ["54000", "54000"]);
    assert_eq!(block.report.reconnects, 0);
}
