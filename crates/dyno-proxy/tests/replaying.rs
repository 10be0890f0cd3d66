//! Tests of the parts of a replay: messages read back as round trips, mapped keys, commits in order.

use dyno_evidence::trace_store::Store;
use dyno_proxy::capture::{Capture, Side};
use dyno_proxy::framing::Message;
use dyno_proxy::replay::ids::Ids;
use dyno_proxy::replay::order::Order;
use dyno_proxy::replay::read::{Session, Turn, read};

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

#[test]
fn a_key_of_now_stands_for_that_of_then_in_every_form() {
    let ids = Ids::default();
    assert_eq!(ids.mapped(b'Q', b"select 17\0"), None);
    ids.learn(&row(b"17"), &row(b"2300"));
    ids.learn(&row(b"same"), &row(b"same"));
    assert_eq!(ids.len(), 1);
    assert_eq!(ids.mapped(b'B', &bind(0, b"17")), Some((bind(0, b"2300"), 1)));
    for length in [2, 4, 8] {
        let form = |number: i64| number.to_be_bytes()[8 - length..].to_vec();
        assert_eq!(ids.mapped(b'B', &bind(1, &form(17))), Some((bind(1, &form(2300)), 1)), "{length} bytes");
        assert_eq!(ids.mapped(b'B', &bind(1, &form(18))), None);
    }
    assert_eq!(
        ids.mapped(b'Q', b"select 17, '17', 170, a17\0"),
        Some((b"select 2300, '2300', 170, a17\0".to_vec(), 2))
    );
    assert_eq!(ids.mapped(b'P', b"s\0select 17\0\0\0"), Some((b"s\0select 2300\0\0\0".to_vec(), 1)));
    // A value that does not fit remains unchanged.
    ids.learn(&row(b"18"), &row(b"99999"));
    assert_eq!(ids.mapped(b'B', &bind(1, &18i16.to_be_bytes())), None);
}

#[test]
fn a_key_whose_number_was_sent_before_it_was_given_is_a_doubt() {
    let ids = Ids::default();
    ids.mapped(b'Q', b"insert into line (quantity) values (50)\0");
    ids.mapped(b'B', &bind(1, &51i32.to_be_bytes()));
    ids.mapped(b'Q', b"select 'x51', 52\0");
    ids.learn(&row(b"49"), &row(b"5049"));
    assert_eq!(ids.early(), 0);
    ids.learn(&row(b"50"), &row(b"5050"));
    ids.learn(&row(b"51"), &row(b"5051"));
    ids.learn(&row(b"52"), &row(b"52"));
    assert_eq!(ids.early(), 2, "52 stands for itself");
}

#[test]
fn commits_are_those_round_trips_that_end_a_transaction_that_wrote() {
    let turn = |session, at_ns, tag: &'static [u8], status: &'static [u8]| {
        [
            (session, at_ns, C, b'Q', b"x\0".as_slice()),
            (session, at_ns + 1, S, b'C', tag),
            (session, at_ns + 2, S, b'Z', status),
        ]
    };
    let lines: Vec<Line<'_>> = [
        turn(0, 10, b"BEGIN\0", b"T"),
        turn(0, 20, b"UPDATE 1\0", b"T"),
        turn(1, 30, b"INSERT 0 1\0", b"I"),
        turn(0, 40, b"COMMIT\0", b"I"),
        turn(1, 50, b"SELECT 1\0", b"I"),
    ]
    .concat();
    let (order, places) = Order::of(&kept("order", &lines));
    assert_eq!((order.len(), places), (2, vec![vec![None, None, Some(1)], vec![Some(0), None]]));
    assert!(order.wait(32), "nothing had been committed before");
    order.finish(0);
    assert!(order.wait(40), "what was before is done");
}
