//! Tests of message parsing, normalized texts, first packets, and the following and replay of sessions.

mod following;
mod logs;
mod mariadb_logs;
mod replaying;

use dyno_evidence::normal::{Piece, normal, pieces};
use dyno_proxy::framing::{Framer, Rubbish};
use dyno_proxy::opening::{Opening, message, opening, without_channel_binding};
use proptest::prelude::*;

/// Returns texts of words that quoting has to bear in every log, and of the log's own words.
fn some_words(own: &[&'static str]) -> impl Strategy<Value = String> + use<> {
    let words = ["select", " ", "\n", "\t", "'", "\"", ",", "a", "ü", "\\"];
    prop::collection::vec(prop::sample::select([&words, own].concat()), 0..12).prop_map(|words| words.concat())
}

fn seen(pieces: &[&[u8]], keep: usize) -> Vec<(u8, usize, Vec<u8>)> {
    let (mut framer, mut seen) = (Framer::default(), Vec::new());
    for piece in pieces {
        framer.feed(piece, |_| keep, |m| seen.push((m.tag, m.length, m.body.to_vec()))).expect("messages");
    }
    assert!(!framer.is_within());
    seen
}

proptest! {
    #[test]
    fn messages_are_the_same_however_they_are_cut(
        bodies in prop::collection::vec((prop::sample::select(b"QPBDEScd".to_vec()), prop::collection::vec(any::<u8>(), 0..40)), 1..8),
        cuts in prop::collection::vec(0usize..400, 0..12),
        keep in 0usize..50,
    ) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let expected: Vec<_> = bodies.iter().map(|(tag, body)| (*tag, body.len(), body[..keep.min(body.len())].to_vec())).collect();
        prop_assert_eq!(seen(&parts, keep), expected);
    }

    #[test]
    fn pieces_of_a_text_leave_nothing_out(sql in prop::collection::vec(prop::sample::select(b"a1 .'\"$-/*\\eE\n;(x\xc3".to_vec()), 0..60)) {
        let mut at = 0;
        for piece in pieces(&sql) {
            let (Piece::Literal(range) | Piece::Space(range) | Piece::Other(range)) = piece;
            prop_assert_eq!(range.start, at);
            prop_assert!(range.end > range.start);
            at = range.end;
        }
        prop_assert_eq!(at, sql.len());
        let _ = normal(&sql);
    }
}

#[test]
fn bytes_that_are_no_message_are_told() {
    let mut framer = Framer::default();
    let told = framer.feed(b"GET / HTTP/1.1\r\n", |_| 0, |_| panic!("no message"));
    assert_eq!(told, Err(Rubbish { tag: b'G', length: u32::from_be_bytes(*b"ET /") }));
}

#[test]
fn a_text_loses_its_values_and_nothing_else() {
    for (sql, expected) in [
        ("SELECT 1", "SELECT ?"),
        ("select $1::int + 2, $2", "select $1::int + ?, $2"),
        ("insert into t1 values ('it''s', E'a\\'b', $$x'y$$, $q$ $$ $q$)", "insert into t1 values (?, ?, ?, ?)"),
        (
            "select \"a 1\", t2.c3 -- 'x\nfrom t /* 5 /* 6 */ 7 */ where a=-1.5e-3",
            "select \"a 1\", t2.c3 from t where a=?",
        ),
        ("select a -5, b + -5, f(-.5, - 5)", "select a -?, b + ?, f(?, - ?)"),
        ("end;", "end"),
        ("select 1_000, 0xff, .5, 1..2", "select ?, ?, ?, ?..?"),
        ("select U&'\\0041', x'1F', b'01'", "select ?, ?, ?"),
        ("select 'no end", "select ?"),
    ] {
        assert_eq!(normal(sql.as_bytes()), expected, "{sql}");
    }
}

fn packet(code: u32, rest: &[u8]) -> Vec<u8> {
    let mut out = (rest.len() as u32 + 8).to_be_bytes().to_vec();
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(rest);
    out
}

#[test]
fn a_first_packet_is_known_by_its_code() {
    assert_eq!(opening(&packet(80_877_103, b"")), Opening::AsksTls(8));
    assert_eq!(opening(&packet(80_877_104, b"")), Opening::AsksGss(8));
    assert_eq!(opening(&packet(80_877_102, &[0; 8])), Opening::Cancel(16));
    assert_eq!(opening(&[0x16, 3, 1]), Opening::DirectTls);
    let startup = packet(3 << 16, b"user\0ann\0application_name\0shop\0\0");
    assert_eq!(opening(&startup[..20]), Opening::Unfinished);
    let Opening::Startup { user, database, application, .. } = opening(&startup) else { panic!("a session") };
    assert_eq!((user.as_str(), database.as_str(), application.as_str()), ("ann", "ann", "shop"));
    assert!(matches!(opening(b"GET / HTTP/1.1\r\n"), Opening::Rubbish(why) if why.contains("bytes")));
    assert!(matches!(opening(&packet(2 << 16, b"")), Opening::Rubbish(why) if why.contains("version 2.0")));
}

#[test]
fn an_offer_loses_what_is_bound_to_a_channel() {
    let offer = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
    assert_eq!(without_channel_binding(b'R', offer), Some(message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0")));
    assert_eq!(without_channel_binding(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), None);
    assert_eq!(without_channel_binding(b'R', b"\0\0\0\0"), None);
}
