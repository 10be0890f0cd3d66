//! Tests of the parts of a replay: messages read back as round trips, mapped keys, commits in order.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_evidence::trace_store::Store;
use dyno_proxy::capture::{Capture, Side};
use dyno_proxy::framing::Message;
use dyno_proxy::replay::ids::Ids;
use dyno_proxy::replay::keys::attach;
use dyno_proxy::replay::order::{Ends, Order};
use dyno_proxy::replay::places::{KeyPlan, Places};
use dyno_proxy::replay::read::{Session, Turn, read};
use dyno_proxy::replay::values::Kind;

type Line<'a> = (u32, u64, Side, u8, &'a [u8]);

/// Writes messages as a proxy does, and reads them back as sessions.
fn kept(name: &str, lines: &[Line<'_>]) -> Vec<Session> {
    let dir = std::env::temp_dir().join(format!("dyno-replay-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder for the test");
    let (mut store, mut capture) = (Store::new(&dir, 0), Capture::default());
    for (session, at_ns, side, tag, body) in lines {
        capture.message(*session, *at_ns, *side, &Message { tag: *tag, length: body.len(), body });
    }
    capture.flush(&mut store, true).expect("written");
    store.finish().expect("written");
    let found = read(&dir).expect("read back");
    std::fs::remove_dir_all(dir).ok();
    found
}

const C: Side = Side::Client;
const S: Side = Side::Server;

#[test]
fn messages_come_back_as_round_trips_every_byte_as_it_was() {
    let bytes: Vec<u8> = (0..=255).collect();
    let sessions = kept(
        "turns",
        &[
            (3, 10, C, b'P', &bytes),
            (3, 11, C, b'S', b""),
            (7, 12, C, b'Q', b"select 1\0"),
            // A pipeline: the second round trip is sent before the first is answered.
            (3, 13, C, b'B', b"x"),
            (3, 14, C, b'S', b""),
            (3, 20, S, b'Z', b"I"),
            (3, 21, S, b'C', b"SELECT 1\0"),
            (3, 22, S, b'Z', b"T"),
            (7, 30, S, b'E', b"42P01"),
            (7, 31, S, b'Z', b"I"),
        ],
    );
    assert_eq!(sessions.iter().map(|one| one.number).collect::<Vec<_>>(), [3, 7]);
    let turns = &sessions[0].turns;
    assert_eq!((turns.len(), turns[0].sent_ns, turns[0].done_ns), (2, 10, Some(20)));
    assert_eq!(turns[0].said[0].body, bytes);
    assert!(turns[0].is_whole());
    assert_eq!((turns[1].said.len(), turns[1].status, turns[1].answers.len()), (2, b'T', 1));
    assert_eq!(sessions[1].turns[0].answers[0].body, b"42P01");
}

#[test]
fn rows_of_a_copy_stand_behind_what_asks_for_them() {
    let sessions = kept(
        "copy",
        &[
            (0, 1, C, b'B', b""),
            (0, 1, C, b'E', b""),
            (0, 1, C, b'S', b""),
            (0, 2, S, b'G', b""),
            (0, 3, C, b'd', b"1\n"),
            (0, 4, C, b'c', b""),
            (0, 4, C, b'S', b""),
            (0, 5, S, b'C', b"COPY 1\0"),
            (0, 5, S, b'Z', b"I"),
            (0, 6, C, b'Q', b"copy t from stdin\0"),
            (0, 7, S, b'G', b""),
            (0, 8, C, b'd', b"2\n"),
            (0, 8, C, b'c', b""),
            (0, 9, S, b'C', b"COPY 1\0"),
            (0, 9, S, b'Z', b"I"),
        ],
    );
    let tags = |said: &[dyno_proxy::replay::read::Said]| said.iter().map(|one| one.tag).collect::<Vec<_>>();
    let turns: Vec<_> = sessions[0].turns.iter().map(|turn| (tags(&turn.said), tags(&turn.copied))).collect();
    assert_eq!(turns, [(b"BES".to_vec(), b"dcS".to_vec()), (b"Q".to_vec(), b"dc".to_vec())]);
    assert!(sessions[0].turns.iter().all(Turn::writes));
}

#[test]
fn a_text_that_names_a_password_is_not_kept() {
    let sessions = kept("password", &[(0, 1, C, b'Q', b"alter role a PassWord 'x'\0"), (0, 2, S, b'Z', b"I")]);
    let turn = &sessions[0].turns[0];
    assert!(turn.said[0].body.is_empty() && !turn.is_whole());
}

fn row(value: &[u8]) -> Vec<u8> {
    [&1u16.to_be_bytes(), (value.len() as i32).to_be_bytes().as_slice(), value].concat()
}

fn bind(format: u16, value: &[u8]) -> Vec<u8> {
    [b"\0s\0".as_slice(), &1u16.to_be_bytes(), &format.to_be_bytes(), &row(value), &[0, 0]].concat()
}

/// Returns positions of integer keys of one key space: parameter 1, and literals 0 and 1.
fn places() -> Places {
    Places { parameters: vec![(1, 0, false)], literals: vec![(0, 0, false), (1, 0, false)], ..Places::default() }
}

#[test]
fn a_key_of_now_stands_for_that_of_then_in_every_form() {
    let (ids, places) = (Ids::new(&[Kind::Integer]), places());
    assert_eq!(ids.mapped(b'Q', b"select 17\0", &places, 0), None);
    ids.learn(0, b"17", b"2300", false);
    ids.learn(0, b"18", b"18", false);
    assert_eq!(ids.mapped(b'B', &bind(0, b"17"), &places, 0), Some((bind(0, b"2300"), 1)));
    for length in [2, 4, 8] {
        let form = |number: i64| number.to_be_bytes()[8 - length..].to_vec();
        assert_eq!(
            ids.mapped(b'B', &bind(1, &form(17)), &places, 0),
            Some((bind(1, &form(2300)), 1)),
            "{length} bytes"
        );
        assert_eq!(ids.mapped(b'B', &bind(1, &form(18)), &places, 0), None);
    }
    assert_eq!(
        ids.mapped(b'Q', b"select 17, '17', 170, a17\0", &places, 0),
        Some((b"select 2300, '2300', 170, a17\0".to_vec(), 2))
    );
    assert_eq!(ids.mapped(b'P', b"s\0select 17\0\0\0", &places, 0), Some((b"s\0select 2300\0\0\0".to_vec(), 1)));
    // A value that does not fit remains unchanged.
    ids.learn(0, b"18", b"99999", false);
    assert_eq!(ids.mapped(b'B', &bind(1, &18i16.to_be_bytes()), &places, 0), None);
    assert_eq!(ids.counts(), [(2, 7)]);
}

#[test]
fn a_value_that_is_no_key_is_sent_as_it_was_captured() {
    let ids = Ids::new(&[Kind::Integer, Kind::Integer]);
    ids.learn(0, b"17", b"2300", false);
    let (none, other) = (Places::default(), Places { literals: vec![(1, 0, false)], ..Places::default() });
    assert_eq!(ids.mapped(b'B', &bind(0, b"17"), &none, 0), None);
    assert_eq!(ids.mapped(b'Q', b"update t set v = 17 where id = 17\0", &none, 0), None);
    assert_eq!(
        ids.mapped(b'Q', b"update t set v = 17 where id = 17\0", &other, 0),
        Some((b"update t set v = 17 where id = 2300\0".to_vec(), 1))
    );
    let space = Places { literals: vec![(0, 1, false)], ..Places::default() };
    assert_eq!(ids.mapped(b'Q', b"select 17\0", &space, 0), None, "a key of another table");
}

#[test]
fn each_message_gets_the_places_of_its_own_statement() {
    let mut sessions = kept(
        "places",
        &[
            (0, 1, C, b'P', b"s\0insert into t values ($1) returning id\0\0\0"),
            (0, 1, C, b'S', b""),
            (0, 2, S, b'Z', b"I"),
            (0, 3, C, b'B', &[b"p\0s\0".as_slice(), &[0, 0, 0, 0, 0, 1, 0, 1]].concat()),
            (0, 3, C, b'E', b"p\0\0\0\0\0"),
            (0, 3, C, b'S', b""),
            (0, 4, S, b'Z', b"I"),
            (0, 5, C, b'Q', b"select 1; insert into t values (17) returning id\0"),
            (0, 6, S, b'Z', b"I"),
        ],
    );
    let one = |shape: &str, returns| Places { shape: shape.to_owned(), returns, ..places() };
    let statements = vec![
        one("insert into t values ('p1x0') returning id", vec![vec![Some(0)]]),
        one("select 1000000; insert into t values (1000001) returning id", vec![vec![], vec![Some(0)]]),
    ];
    attach(&mut sessions, KeyPlan { spaces: vec![Kind::Integer], statements });
    let turns = &sessions[0].turns;
    assert!(turns[0].said[0].places.is_some() && turns[1].said[0].places.is_some());
    assert!(turns[1].said[1].places.is_none(), "an execution has no values");
    let returned = |turn: usize, end: usize| turns[turn].returned[end].as_ref().expect("keys of a statement");
    assert_eq!((returned(1, 0).spaces(), returned(1, 0).is_binary(0)), ([Some(0)].as_slice(), true));
    assert_eq!((returned(2, 0).spaces(), returned(2, 1).spaces()), ([].as_slice(), [Some(0)].as_slice()));
    assert!(!returned(2, 1).is_binary(0));
}

fn turn(session: u32, at_ns: u64, tag: &'static [u8], status: &'static [u8]) -> [Line<'static>; 3] {
    [
        (session, at_ns, C, b'Q', b"x\0".as_slice()),
        (session, at_ns + 1, S, b'C', tag),
        (session, at_ns + 2, S, b'Z', status),
    ]
}

#[test]
fn commits_are_those_round_trips_that_end_a_transaction_that_wrote() {
    let lines: Vec<Line<'_>> = [
        turn(0, 10, b"BEGIN\0", b"T"),
        turn(0, 20, b"UPDATE 1\0", b"T"),
        turn(1, 30, b"INSERT 0 1\0", b"I"),
        turn(0, 40, b"COMMIT\0", b"I"),
        turn(1, 50, b"SELECT 1\0", b"I"),
    ]
    .concat();
    let order = Order::of(&kept("order", &lines), Duration::ZERO);
    let commits = |session| order.roles(session).iter().map(|role| role.is_commit).collect::<Vec<_>>();
    assert_eq!((order.len(), commits(0), commits(1)), (2, vec![false, false, true], vec![true, false]));
    let steps: Vec<_> = order.roles(0).iter().chain(order.roles(1)).map(|role| role.is_step).collect();
    assert_eq!(steps, [true, true, true, true, false]);
    let stop = AtomicBool::new(false);
    assert!(order.begin(0, 0, &stop), "nothing had been committed before");
    assert!(!order.begin(1, 0, &stop), "the server has the round trip before this commit for too long");
    order.finish(0, 0);
    assert!(order.begin(0, 1, &stop));
    order.finish(0, 1);
    assert!(order.begin(1, 0, &stop), "what was before is done");
    order.finish(1, 0);
    assert!(order.begin(0, 2, &stop) && order.begin(1, 1, &stop) == order.is_empty(), "a reader waits for commits");
}

#[test]
fn a_session_begins_after_those_that_had_ended() {
    let end = |session, at_ns| (session, at_ns, C, b'X', b"".as_slice());
    let lines: Vec<Line<'_>> = [
        turn(0, 10, b"SELECT 1\0", b"I").as_slice(),
        &turn(1, 20, b"SELECT 1\0", b"I"),
        &[end(0, 30)],
        &turn(2, 40, b"SELECT 1\0", b"I"),
        &[end(1, 50)],
    ]
    .concat();
    let sessions = kept("ends", &lines);
    assert_eq!(sessions.iter().map(Session::span_ns).collect::<Vec<_>>(), [(10, 30), (20, 50), (40, 42)]);
    let (ends, stopped, runs) = (Ends::of(&sessions), AtomicBool::new(true), AtomicBool::new(false));
    assert!(ends.wait(20, &stopped), "both were open");
    assert!(!ends.wait(40, &stopped), "the first had ended");
    ends.finish(0);
    assert!(ends.wait(40, &runs));
}
