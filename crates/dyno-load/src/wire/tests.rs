//! Tests of the wire layer with a scripted server that is wrong, slow, or gone.
//!
//! Tests with a real server are in the crate's `tests/`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres_protocol::message::frontend;

use super::message::tests::frame;
use super::{ServerError, WireError};
use crate::LoadError;
use crate::connection::{ChannelBinding, ConnectionSpec, RequireAuth, SslMode};
use crate::dialler::Dialler;
use crate::link::Link;
use crate::reactor::{Pulse, finish};

/// One step of the server.
enum Act {
    /// Reads the start-up message (or any message without a type byte).
    Greeting,
    /// Reads one message and checks that it has this type and body.
    Expect(u8, Vec<u8>),
    /// Reads one message of any kind.
    Message,
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes one by one with a pause in between.
    Dribble(Vec<u8>),
    /// Sends bytes one by one until the client closes the connection.
    Drip(Vec<u8>),
    /// Waits until the client closes the connection.
    Silence,
    /// Waits until the client closes the connection, and checks that it sent no byte.
    Nothing,
}

fn auth(kind: u32, data: &[u8]) -> Act {
    let mut body = kind.to_be_bytes().to_vec();
    body.extend_from_slice(data);
    Act::Send(frame(b'R', &body))
}

fn refusal(severity: &str, code: &str, message: &str) -> Vec<u8> {
    frame(b'E', format!("S{severity}\0V{severity}\0C{code}\0M{message}\0\0").as_bytes())
}

/// Returns `AuthenticationOk`, a parameter, the cancel key and `ReadyForQuery`.
fn welcome() -> Vec<u8> {
    let mut out = frame(b'R', &[0; 4]);
    out.extend(frame(b'S', b"server_version\x0015.4\0"));
    out.extend(frame(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]));
    out.extend(frame(b'Z', b"I"));
    out
}

fn serve(acts: Vec<Act>) -> (ConnectionSpec, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        client.set_read_timeout(Some(Duration::from_secs(5))).expect("sets");
        for act in acts {
            perform(&mut client, act);
        }
    });
    let spec = format!(
        r#"{{"host": "127.0.0.1", "port": {port}, "user": "md5_user", "password": "password", "dbname": "d",
            "sslmode": "disable", "application_name": "", "connect_timeout_s": 1}}"#
    );
    let spec: ConnectionSpec = serde_json::from_str(&spec).expect("is good");
    (spec, server)
}

fn perform(client: &mut TcpStream, act: Act) {
    match act {
        Act::Greeting => {
            let mut head = [0; 4];
            client.read_exact(&mut head).expect("a length");
            let mut rest = vec![0; u32::from_be_bytes(head) as usize - 4];
            client.read_exact(&mut rest).expect("a greeting");
        }
        Act::Expect(tag, body) => assert_eq!(read_message(client), (tag, body)),
        Act::Message => drop(read_message(client)),
        Act::Send(bytes) => client.write_all(&bytes).expect("sends"),
        Act::Dribble(bytes) => {
            for byte in bytes {
                client.write_all(&[byte]).expect("sends");
                thread::sleep(Duration::from_micros(200));
            }
        }
        Act::Drip(bytes) => {
            for byte in bytes {
                if client.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        Act::Silence => drop(client.read(&mut [0; 64])),
        Act::Nothing => assert!(client.read(&mut [0; 64]).is_ok_and(|count| count == 0), "something was answered"),
    }
}

fn read_message(client: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    client.read_exact(&mut head).expect("a head");
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
    let mut body = vec![0; length];
    client.read_exact(&mut body).expect("a body");
    (head[0], body)
}

fn connect(spec: &ConnectionSpec) -> Result<Link, WireError> {
    Dialler::new(spec)?.connect(None, &Arc::default(), &Arc::default())
}

/// Runs `select 1`; the sockets in these tests block, so the future never has to wait.
fn run(link: &mut Link) -> Result<Option<Box<ServerError>>, WireError> {
    finish(link.run("select 1", &Pulse::blocking())).expect("blocks")
}

fn outcome(acts: Vec<Act>) -> Result<Link, WireError> {
    let (spec, server) = serve(acts);
    let result = connect(&spec);
    server.join().expect("the server's expectations hold");
    result
}

#[test]
fn a_login_survives_any_tearing() {
    let link = outcome(vec![Act::Greeting, Act::Dribble(welcome())]).expect("connects");
    assert_eq!(link.cancel_key(), (7, 9));
    assert!(!link.in_transaction());
}

#[test]
fn md5_and_cleartext_answer_with_the_right_bytes() {
    // Vector: the codec's own test.
    let md5 = b"md562af4dd09bbb41884907a838a3233294\0".to_vec();
    let acts = vec![Act::Greeting, auth(5, &[0x2a, 0x3d, 0x8f, 0xe0]), Act::Expect(b'p', md5), Act::Send(welcome())];
    outcome(acts).expect("connects");
    let acts = vec![Act::Greeting, auth(3, &[]), Act::Expect(b'p', b"password\0".to_vec()), Act::Send(welcome())];
    let (mut spec, server) = serve(acts);
    spec.require_auth = allow("password");
    connect(&spec).expect("connects");
    server.join().expect("the server's expectations hold");
}

fn allow(methods: &str) -> RequireAuth {
    RequireAuth::try_from(methods.to_owned()).expect("is good")
}

#[test]
fn a_password_in_the_clear_is_for_encrypted_connections() {
    let error = outcome(vec![Act::Greeting, auth(3, &[]), Act::Silence]).expect_err("is refused");
    assert!(matches!(error, WireError::Exposed(_)), "{error}");
}

#[test]
fn nothing_is_answered_that_the_user_does_not_allow() {
    let plus = || auth(10, b"SCRAM-SHA-256\0SCRAM-SHA-256-PLUS\0\0");
    let cases: Vec<(&str, ChannelBinding, Act, &str)> = vec![
        ("scram-sha-256", ChannelBinding::Prefer, auth(3, &[]), "require_auth=scram-sha-256 does not allow it"),
        ("scram-sha-256", ChannelBinding::Prefer, auth(5, &[1; 4]), "require_auth=scram-sha-256 does not allow it"),
        ("scram-sha-256", ChannelBinding::Prefer, auth(0, &[]), "let us in without asking; require_auth"),
        ("!md5", ChannelBinding::Prefer, auth(5, &[1; 4]), "require_auth=!md5"),
        ("!none", ChannelBinding::Prefer, auth(0, &[]), "without asking"),
        ("", ChannelBinding::Require, auth(5, &[1; 4]), "channel_binding=require allows"),
        ("", ChannelBinding::Require, auth(0, &[]), "channel_binding=require allows"),
        ("", ChannelBinding::Require, auth(10, b"SCRAM-SHA-256\0\0"), "offers no SCRAM-SHA-256-PLUS"),
        ("", ChannelBinding::Disable, plus(), "on an unencrypted connection"),
        ("", ChannelBinding::Prefer, plus(), "on an unencrypted connection"),
    ];
    for (methods, binding, act, expected) in cases {
        let (mut spec, server) = serve(vec![Act::Greeting, act, Act::Nothing]);
        (spec.require_auth, spec.channel_binding) = (allow(methods), binding);
        let error = connect(&spec).expect_err("is refused").to_string();
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
        server.join().expect("not a byte was answered");
    }
}

#[test]
fn a_question_is_answered_once() {
    let hash = || auth(5, &[0x2a, 0x3d, 0x8f, 0xe0]);
    let error = outcome(vec![Act::Greeting, hash(), Act::Message, hash(), Act::Nothing]).expect_err("is refused");
    assert!(error.to_string().contains("although it had its answer"), "{error}");
}

#[test]
fn a_long_message_before_the_login_is_refused_by_its_head() {
    let mut claim = vec![b'E'];
    claim.extend_from_slice(&(1_u32 << 30).to_be_bytes());
    let error = outcome(vec![Act::Greeting, Act::Send(claim), Act::Nothing]).expect_err("is refused");
    assert!(matches!(error, WireError::Protocol(_)), "{error}");
}

#[test]
fn dribbled_bytes_do_not_prolong_the_time_to_connect() {
    let mut notices = Vec::new();
    (0..40).for_each(|_| notices.extend(frame(b'N', &[0; 200])));
    for (mode, acts) in [
        (SslMode::Disable, vec![Act::Greeting, Act::Drip(notices)]),
        // A TLS record that never ends.
        (
            SslMode::Require,
            vec![Act::Greeting, Act::Send(b"S".to_vec()), Act::Drip([&[22, 3, 3, 63, 0][..], &[2; 9000]].concat())],
        ),
    ] {
        let (mut spec, server) = serve(acts);
        spec.sslmode = mode;
        let error = connect(&spec).expect_err("times out");
        assert!(matches!(error, WireError::Timeout), "{error:?}");
        server.join().expect("ends when the client has gone");
    }
}

#[test]
fn a_connection_without_a_time_limit_ends_when_it_is_told_to() {
    let (mut spec, server) = serve(vec![Act::Silence]);
    spec.connect_timeout_s = 0;
    let stop = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let dialler = Dialler::new(&spec).expect("no roots");
        let dial = scope.spawn({
            let stop = Arc::clone(&stop);
            move || dialler.connect(None, &stop, &Arc::default())
        });
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(dial.join().expect("no panic"), Err(WireError::Stopped)));
    });
    server.join().expect("ends");
}

#[test]
fn what_goes_wrong_at_login_is_said_clearly() {
    let cases: Vec<(Vec<Act>, &str)> = vec![
        (vec![Act::Greeting], "the server closed the connection"),
        (vec![Act::Greeting, Act::Send(b"HTTP/1.1 400\r\n\r\n".to_vec())], "message 'H' of"),
        (vec![Act::Greeting, Act::Send(frame(b'R', &[0, 0]))], "during authentication"),
        (vec![Act::Greeting, Act::Send(vec![b'R', 0, 0, 0, 8, 0])], "closed the connection"),
        (
            vec![Act::Greeting, Act::Send(refusal("FATAL", "28P01", "password refused"))],
            "FATAL: password refused (SQLSTATE 28P01)",
        ),
        (vec![Act::Greeting, auth(7, &[])], "the server asks for GSSAPI, which is not supported"),
        (vec![Act::Greeting, auth(99, &[])], "the server asks for method 99"),
        (vec![Act::Greeting, auth(5, &[1])], "md5 without salt"),
        (vec![Act::Greeting, auth(10, b"OAUTHBEARER\0\0")], "SASL OAUTHBEARER only"),
        (vec![Act::Greeting, Act::Silence], "did not answer in time"),
        (vec![Act::Greeting, Act::Send(frame(b'R', &[0; 4])), Act::Send(frame(b'D', &[0, 0]))], "before the session"),
    ];
    for (acts, expected) in cases {
        let error = outcome(acts).expect_err("fails").to_string();
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
    }
}

#[test]
fn scram_is_refused_unless_the_server_proves_itself() {
    let offer = || auth(10, b"SCRAM-SHA-256\0\0");
    let cases: Vec<(Act, &str)> = vec![
        (auth(0, &[]), "SCRAM: step 0 instead of 11"),
        (auth(11, b"r=stolen,s=c2FsdA==,i=4096"), "SCRAM: invalid nonce"),
        (auth(11, b"\xff\xfe"), "SCRAM: "),
    ];
    for (act, expected) in cases {
        let acts = vec![Act::Greeting, offer(), Act::Message, act];
        let error = outcome(acts).expect_err("fails").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_missing_password_is_named_as_such_and_none_is_ever_shown() {
    let (mut spec, server) = serve(vec![Act::Greeting, auth(5, &[1; 4])]);
    spec.password = None;
    let error = connect(&spec).expect_err("fails");
    let shown = LoadError::connect(&spec, error).to_string();
    assert!(shown.contains("none was given\n  next: give a password for this user"), "{shown}");
    server.join().expect("ends");

    let refusal = error_of(outcome(vec![
        Act::Greeting,
        auth(5, &[1; 4]),
        Act::Message,
        Act::Send(refusal("FATAL", "28P01", "no")),
    ]));
    assert!(!refusal.contains("password"), "{refusal}");
}

fn error_of(result: Result<Link, WireError>) -> String {
    let error = result.expect_err("fails");
    format!("{error} {error:?}")
}

#[test]
fn tls_that_is_not_offered_is_required_or_done_without() {
    let request = || Act::Greeting; // a length and a code, like the start-up message
    let (mut spec, server) = serve(vec![request(), Act::Send(b"N".to_vec())]);
    spec.sslmode = SslMode::Require;
    let error = connect(&spec).expect_err("fails");
    assert!(matches!(&error, WireError::Tls(m) if m.contains("offers none")), "{error}");
    server.join().expect("ends");

    let acts = vec![request(), Act::Send(b"N".to_vec()), Act::Greeting, Act::Send(welcome())];
    let (mut spec, server) = serve(acts);
    spec.sslmode = SslMode::Prefer;
    connect(&spec).expect("connects in the clear");
    server.join().expect("ends");

    let (mut spec, server) = serve(vec![request(), Act::Send(b"S".to_vec()), Act::Send(welcome())]);
    spec.sslmode = SslMode::Prefer;
    let error = connect(&spec).expect_err("what is no handshake fails");
    assert!(matches!(error, WireError::Tls(_)), "{error:?}");
    server.join().expect("ends");
}

#[test]
fn nobody_listening_gives_the_place_and_the_next_step() {
    let (mut spec, server) = serve(vec![]);
    drop(TcpStream::connect(("127.0.0.1", spec.port)));
    server.join().expect("ends");
    let error = LoadError::connect(&spec, connect(&spec).expect_err("fails")).to_string();
    let place = format!("cannot connect to host 127.0.0.1, port {}, user md5_user", spec.port);
    assert!(error.starts_with(&place) && error.contains("next: check that the server"), "{error}");
    spec.host = "/nowhere".into();
    let error = LoadError::connect(&spec, connect(&spec).expect_err("fails")).to_string();
    assert!(error.contains("its socket folder and port"), "{error}");
}

#[test]
fn a_silent_server_costs_the_connect_timeout_and_no_more() {
    let start = Instant::now();
    outcome(vec![Act::Greeting, Act::Silence]).expect_err("times out");
    let took = start.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(3)).contains(&took), "{took:?}");
}

#[test]
fn inside_a_session_errors_stay_and_the_end_of_the_connection_is_told_apart() {
    let mut answer = frame(b'N', b"SNOTICE\0C00000\0Mhello\0\0");
    answer.extend(frame(b'T', b"\0\0"));
    answer.extend(frame(b'D', &[0, 0]));
    answer.extend(frame(b'C', b"SELECT 1\0"));
    answer.extend(refusal("ERROR", "22012", "division by zero"));
    answer.extend(frame(b'Z', b"E"));
    let mut query = bytes::BytesMut::new();
    frontend::query("select 1", &mut query).expect("encodes");
    let (spec, server) = serve(vec![
        Act::Greeting,
        Act::Send(welcome()),
        Act::Expect(b'Q', query[5..].to_vec()),
        Act::Dribble(answer),
        Act::Message,
        Act::Send(refusal("FATAL", "57P01", "terminating connection")),
    ]);
    let mut link = connect(&spec).expect("connects");
    let refused = run(&mut link).expect("the connection lives").expect("an error");
    assert_eq!(refused.code, "22012");
    assert!(link.in_transaction());
    let lost = run(&mut link).expect_err("the connection is gone");
    assert_eq!(lost.code(), "57P01");
    server.join().expect("the server's expectations hold");
}

#[test]
fn a_stream_cut_in_the_middle_of_a_row_is_a_lost_connection() {
    let acts = vec![Act::Greeting, Act::Send(welcome()), Act::Message, Act::Send(frame(b'D', &[0; 9])[..7].into())];
    let (spec, server) = serve(acts);
    let mut link = connect(&spec).expect("connects");
    let lost = run(&mut link).expect_err("the connection is gone");
    assert_eq!(lost.code(), "08006");
    server.join().expect("ends");
}

#[test]
fn a_message_that_has_no_place_in_a_session_is_refused() {
    let acts = vec![Act::Greeting, Act::Send(welcome()), Act::Send(frame(b'R', &[0; 4]))];
    let (spec, server) = serve(acts);
    let mut link = connect(&spec).expect("connects");
    let error = finish(link.event(&Pulse::blocking())).expect("blocks").expect_err("is refused");
    assert_eq!(error.code(), "08P01");
    server.join().expect("ends");
}
