//! Tests with packets and rows of all forms, and with a scripted server.
//!
//! Tests with a real server are in the tests of the bench.

use std::io::Read;

use dyno_script::{Command, Compiler, Scope, Sql, Value};
use proptest::prelude::*;

use super::packet::{self, Packets, Reader, write_text};
use super::result::{Column, binary_row, describe, text_row};
use super::statement::{LAST_PREPARED, Statement};
use crate::wire::message::tests::Torn;
use crate::wire::message::{column_names, columns};

fn framed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = packet::begin(&mut out);
    out.extend_from_slice(body);
    packet::end(&mut out, start, 0);
    out
}

fn compile(text: &str) -> (Compiler, Sql) {
    let mut compiler = Compiler::new();
    let script = compiler.compile("test", text).expect("compiles");
    let Some(Command::Sql(sql)) = script.commands.first() else { panic!("no SQL") };
    (compiler, sql.clone())
}

/// Returns a column with this name, type code and flags.
fn column(name: &str, kind: u8, flags: u16) -> Column {
    let mut body = b"\x03def\x00\x00\x00".to_vec();
    write_text(name.as_bytes(), &mut body);
    write_text(name.as_bytes(), &mut body);
    body.extend_from_slice(&[12, 45, 0, 20, 0, 0, 0, kind]);
    body.extend_from_slice(&flags.to_le_bytes());
    body.extend_from_slice(&[0, 0, 0]);
    Column::parse(&body).expect("is whole")
}

fn texts(row: &[u8]) -> Vec<Option<String>> {
    let text = |value: Result<Option<&[u8]>, _>| {
        value.expect("whole").map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    columns(row).map(text).collect()
}

#[test]
fn values_go_beside_a_prepared_command_with_their_types() {
    let (compiler, sql) = compile("select :a, :b, :c, :d, :e, ':f';");
    let var = |name| compiler.symbols().lookup(name).expect("known");
    let mut scope = Scope::new(compiler.symbols());
    scope.set(var("a"), Value::Int(-2));
    scope.set(var("b"), Value::Null);
    scope.set(var("c"), Value::Double(0.5));
    scope.set_text(var("d"), "12");
    scope.set_text(var("e"), "012");
    let statement = Statement::new(&sql, compiler.symbols());
    let mut out = Vec::new();
    statement.write_prepare(&mut out);
    assert_eq!(out[4..], b"\x16select ?, ?, ?, ?, ?, ':f'"[..]);
    out.clear();
    statement.write_execute(LAST_PREPARED, &scope, &mut out);
    let expected = [
        &[0x17, 0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 0, 0b10, 1][..],
        &[8, 0, 6, 0, 5, 0, 8, 0, 0xfd, 0],
        &(-2_i64).to_le_bytes(),
        &0.5_f64.to_le_bytes(),
        &12_i64.to_le_bytes(),
        b"\x03012",
    ]
    .concat();
    assert_eq!(out, framed(&expected));
}

#[test]
fn values_stand_in_the_text_of_the_simple_protocol() {
    let (compiler, sql) = compile("select :a, :b, ':c', :d;");
    let var = |name| compiler.symbols().lookup(name).expect("known");
    let mut scope = Scope::new(compiler.symbols());
    scope.set(var("a"), Value::Int(7));
    scope.set(var("b"), Value::Null);
    scope.set_text(var("c"), "x");
    let statement = Statement::new(&sql, compiler.symbols());
    let mut out = Vec::new();
    statement.write_query(&scope, compiler.symbols(), &mut out);
    assert_eq!(out, framed(b"\x03select 7, NULL, 'x', :d"));
}

#[test]
fn rows_of_both_protocols_give_the_same_texts() {
    let own = [column("n", 8, 0), column("u", 8, 0x20), column("t", 0xfd, 0), column("x", 3, 0), column("d", 12, 0)];
    let mut description = Vec::new();
    describe(&own, &mut description);
    assert_eq!(column_names(&description).expect("whole"), ["n", "u", "t", "x", "d"]);
    let date = [7, 0xea, 7, 11, 22, 18, 5, 9];
    let binary = [&[0, 0b10_0000][..], &[0xff; 8], &[0xff; 8], b"\x02hi", &date].concat();
    let mut text = Vec::new();
    for value in ["-1", "18446744073709551615", "hi"] {
        write_text(value.as_bytes(), &mut text);
    }
    text.push(0xfb);
    write_text(b"2026-11-22 18:05:09", &mut text);
    let (mut from_binary, mut from_text) = (Vec::new(), Vec::new());
    binary_row(&binary, &own, &mut from_binary).expect("whole");
    text_row(&text, own.len(), &mut from_text).expect("whole");
    assert_eq!(texts(&from_binary), texts(&from_text));
    assert_eq!(texts(&from_text)[3], None);
}

#[test]
fn every_type_of_a_prepared_row_has_its_text() {
    let own = [column("a", 1, 0), column("b", 2, 0x20), column("c", 9, 0), column("e", 4, 0), column("f", 5, 0)];
    let numbers = [&[0x80, 0xff, 0xff][..], &(-5_i32).to_le_bytes(), &1.5_f32.to_le_bytes(), &0.1_f64.to_le_bytes()];
    let mut row = Vec::new();
    binary_row(&[&[0, 0][..], &numbers.concat()].concat(), &own, &mut row).expect("whole");
    let shown: Vec<_> = texts(&row).into_iter().flatten().collect();
    assert_eq!(shown, ["-128", "65535", "-5", "1.5", "0.1"]);
    let own = [column("day", 10, 0), column("span", 11, 0), column("at", 7, 0), column("none", 12, 0)];
    let points = [&[4, 0xea, 7, 2, 1][..], &[12, 1, 2, 0, 0, 0, 3, 4, 5, 6, 0, 0, 0], &[0], &[0]].concat();
    binary_row(&[&[0, 0][..], &points].concat(), &own, &mut row).expect("whole");
    let shown: Vec<_> = texts(&row).into_iter().flatten().collect();
    assert_eq!(shown, ["2026-02-01", "-51:04:05.000006", "0000-00-00 00:00:00", "0000-00-00 00:00:00"]);
}

#[test]
fn a_body_of_the_greatest_length_goes_on_in_the_next_packet() {
    let body = vec![5; 0xff_ffff + 3];
    let long = framed(&body);
    assert_eq!(long.len(), body.len() + 2 * packet::HEAD_BYTES);
    let bytes = [long, framed(b"\x07next")].concat();
    let mut packets = Packets::before_login();
    packets.logged_in();
    let mut source = Torn(&bytes, 1 << 20);
    let first = read(&mut packets, &mut source, 10);
    assert_eq!((first.first, first.cut, packets.bytes(&first.body).len()), (5, true, 10));
    let second = read(&mut packets, &mut source, 10);
    assert_eq!(packets.bytes(&second.body), b"\x07next");
}

#[test]
fn what_cannot_be_a_greeting_is_refused_at_once() {
    for bytes in [&b"HTTP/1.1 400 Bad"[..], &[0, 0, 0, 0, 0]] {
        let mut packets = Packets::before_login();
        packets.buffer.fill(&mut Torn(bytes, 64)).expect("fills");
        assert!(packets.next(|_| 10).is_err());
    }
}

fn read(packets: &mut Packets, source: &mut impl Read, keep: usize) -> packet::Packet {
    loop {
        if let Some(found) = packets.next(|_| keep).expect("well formed") {
            return found;
        }
        packets.buffer.fill(source).expect("bytes");
    }
}

proptest! {
    #[test]
    fn packets_survive_any_tearing(
        bodies in prop::collection::vec(1_usize..40_000, 1..8),
        portion in 1_usize..9_000,
        keep in 1_usize..50_000,
    ) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|&length| framed(&vec![length as u8; length])).collect();
        let mut packets = Packets::before_login();
        packets.logged_in();
        let mut source = Torn(&bytes, portion);
        for &length in &bodies {
            let found = read(&mut packets, &mut source, keep);
            prop_assert_eq!((found.first, found.length, found.cut), (length as u8, length, keep < length));
            let body = packets.bytes(&found.body);
            prop_assert!(body.len() == keep.min(length) && body.iter().all(|&byte| byte == length as u8));
        }
    }

    #[test]
    fn a_text_is_read_as_it_was_written(length in prop_oneof![0_usize..300, 65_000_usize..66_000]) {
        let text = vec![b'x'; length];
        let mut out = Vec::new();
        write_text(&text, &mut out);
        let mut reader = Reader(&out);
        prop_assert_eq!(reader.text().expect("whole"), Some(&text[..]));
        prop_assert!(reader.0.is_empty());
    }

    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kinds in any::<[u8; 4]>()) {
        let _ = Column::parse(&bytes);
        let _ = super::greeting::Greeting::parse(&bytes);
        let own: Vec<Column> = kinds.iter().map(|&kind| column("c", kind, 0)).collect();
        let mut out = Vec::new();
        let _ = binary_row(&bytes, &own, &mut out);
        let _ = text_row(&bytes, own.len(), &mut out);
        let _ = columns(&out).count();
    }
}
