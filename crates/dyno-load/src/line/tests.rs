//! Tests with real sockets and a real thread.
//!
//! The tests assert that nothing arrives early. They do not assert how late it arrives, because that depends on the
//! machine (`benches/line.py` measures it).

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Instant;

use super::*;

const MS: u64 = 1_000_000;

fn spec(delay_ms: u64, rate_bit_per_s: Option<u64>) -> LineSpec {
    LineSpec { delay_ns: delay_ms * MS, rate_bit_per_s }
}

/// Returns the near end of a line, and the server's end of a TCP connection at the line's far end; both sockets block.
fn connection(line: &Line) -> (UnixStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let stream = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
    let (server, _) = listener.accept().expect("accepts");
    stream.set_nonblocking(true).expect("sets");
    server.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
    let Stream::Unix(near) = line.through(Stream::Tcp(stream)).expect("a connection") else {
        unreachable!("the near end is one of a pair")
    };
    near.set_nonblocking(false).expect("sets");
    near.set_read_timeout(Some(Duration::from_secs(20))).expect("sets");
    (near, server)
}

/// Returns bytes that differ from position to position.
fn noise(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + (at >> 8) * 7) as u8).collect()
}

#[test]
fn bytes_arrive_not_before_their_time_each_way() {
    let line = Line::open(spec(15, None)).expect("a line");
    let (mut near, mut server) = connection(&line);
    let mut byte = [0];
    // The first byte has waited for the handshake, too.
    let opened = Instant::now();
    near.write_all(b"?").expect("writes");
    server.read_exact(&mut byte).expect("reads");
    assert!(opened.elapsed() >= Duration::from_millis(3 * 15 - 1), "{:?}", opened.elapsed());
    for _ in 0..3 {
        let sent = Instant::now();
        server.write_all(b"!").expect("writes");
        near.read_exact(&mut byte).expect("reads");
        assert!(sent.elapsed() >= Duration::from_millis(15), "{:?}", sent.elapsed());
        let sent = Instant::now();
        near.write_all(b"?").expect("writes");
        server.read_exact(&mut byte).expect("reads");
        assert!(sent.elapsed() >= Duration::from_millis(15), "{:?}", sent.elapsed());
    }
}

#[test]
fn lateness_is_counted_anew_after_each_reading() {
    let line = Line::open(spec(1, None)).expect("a line");
    let (mut near, mut server) = connection(&line);
    let mut pieces = 0;
    for _ in 0..5 {
        near.write_all(b"?").expect("writes");
        server.read_exact(&mut [0]).expect("reads");
        let lateness = line.lateness();
        assert!(lateness.late_max_ns <= lateness.late_ns, "{lateness:?}");
        pieces += lateness.pieces;
    }
    // The thread may count the last piece after it was read.
    while pieces < 5 {
        pieces += line.lateness().pieces;
    }
    assert_eq!((pieces, line.lateness()), (5, Lateness::default()));
}

#[test]
fn a_rate_is_not_exceeded_and_is_shared_by_all_connections() {
    // 50,000 bytes on each of two connections at 8 Mbit/s take 100 ms.
    let line = Line::open(spec(0, Some(8_000_000))).expect("a line");
    let mut pairs = [connection(&line), connection(&line)];
    let sent = Instant::now();
    for (near, _) in &mut pairs {
        near.write_all(&noise(50_000)).expect("writes");
    }
    for (_, server) in &mut pairs {
        let mut bytes = vec![0; 50_000];
        server.read_exact(&mut bytes).expect("reads");
        assert!(bytes == noise(50_000));
    }
    assert!(sent.elapsed() >= Duration::from_millis(99), "{:?}", sent.elapsed());
}

#[test]
fn every_byte_arrives_once_and_in_order_however_it_is_cut() {
    let line = Line::open(spec(1, None)).expect("a line");
    let (near, server) = connection(&line);
    let bytes = noise(9 << 20);
    std::thread::scope(|scope| {
        for (mut from, mut to) in [
            (Box::new(&near) as Box<dyn Write + Send>, Box::new(&server) as Box<dyn Read + Send>),
            (Box::new(&server), Box::new(&near)),
        ] {
            let bytes = &bytes;
            scope.spawn(move || {
                let mut rest = bytes.as_slice();
                for size in (0..).map(|turn| 1 + (turn * 7_919) % 70_000) {
                    let (piece, later) = rest.split_at(rest.len().min(size));
                    from.write_all(piece).expect("writes");
                    rest = later;
                    if rest.is_empty() {
                        break;
                    }
                }
            });
            scope.spawn(move || {
                let mut got = vec![0; bytes.len()];
                to.read_exact(&mut got).expect("reads");
                assert!(got == *bytes);
            });
        }
    });
}

#[test]
fn a_sender_waits_when_the_window_is_full() {
    // The line is so long that nothing arrives: what it accepts is bounded.
    let line = Line::open(spec(60_000, Some(1_000_000_000_000))).expect("a line");
    let (mut near, _server) = connection(&line);
    near.set_write_timeout(Some(Duration::from_millis(100))).expect("sets");
    let piece = noise(1 << 20);
    let mut taken = 0;
    let full = loop {
        match near.write(&piece) {
            Ok(count) => taken += count,
            Err(e) => break e,
        }
        assert!(taken < 64 << 20, "no end in sight");
    };
    assert!(matches!(full.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{full}");
    assert!(taken >= WINDOW_MOST, "{taken}");
}

#[test]
fn an_end_arrives_after_the_bytes_before_it_and_leaves_the_other_way_open() {
    let line = Line::open(spec(10, None)).expect("a line");
    let (mut near, mut server) = connection(&line);
    let sent = Instant::now();
    near.write_all(b"the last words").expect("writes");
    near.shutdown(Shutdown::Write).expect("ends");
    let mut words = Vec::new();
    server.read_to_end(&mut words).expect("reads");
    assert_eq!(words, b"the last words");
    assert!(sent.elapsed() >= Duration::from_millis(10));
    server.write_all(b"an answer").expect("writes");
    drop(server);
    words.clear();
    near.read_to_end(&mut words).expect("reads");
    assert_eq!(words, b"an answer");
}

#[test]
fn a_server_that_is_gone_is_gone_for_the_session_too() {
    let line = Line::open(spec(1, None)).expect("a line");
    let (mut near, server) = connection(&line);
    near.write_all(b"unread bytes make a reset of the end").expect("writes");
    std::thread::sleep(Duration::from_millis(20));
    drop(server);
    let end = near.read(&mut [0; 8]);
    assert!(matches!(end, Ok(0)) || matches!(&end, Err(e) if e.kind() == ErrorKind::ConnectionReset), "{end:?}");
}

#[test]
fn a_session_that_is_gone_is_gone_for_the_server_too() {
    let line = Line::open(spec(1, None)).expect("a line");
    let (near, mut server) = connection(&line);
    drop(near);
    assert_eq!(server.read(&mut [0; 8]).expect("reads"), 0);
    // What the server still sends is refused in the end.
    let refused = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        server.write(b"is anybody there").is_err()
    });
    assert!(refused);
}

#[test]
fn what_is_under_way_when_the_line_ends_arrives_at_once() {
    let line = Line::open(spec(3_600_000, None)).expect("a line");
    let (mut near, mut server) = connection(&line);
    near.write_all(b"goodbye").expect("writes");
    drop(line);
    let mut words = Vec::new();
    server.read_to_end(&mut words).expect("reads");
    assert_eq!(words, b"goodbye");
    assert_eq!(near.read(&mut [0; 8]).expect("reads"), 0);
}

#[test]
fn a_window_holds_twice_what_fits_on_the_line_within_bounds() {
    assert_eq!(window(spec(5, None)), WINDOW_MOST);
    assert_eq!(window(spec(5, Some(1_000_000))), WINDOW_LEAST);
    assert_eq!(window(spec(5, Some(1_000_000_000))), 1_250_000);
    assert_eq!(window(spec(1_000_000, Some(u64::MAX))), WINDOW_MOST);
}
