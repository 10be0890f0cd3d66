//! Tests BINDS sections of every version: heads, values over several lines, and lines in between.
#![allow(clippy::unwrap_used)]

use crate::lexer_common::{batch_of, read_in, words};
use dyno_trace::oracle_10046::lexer::Options;
use dyno_trace::oracle_10046::record::{Batch, Bind, NONE, Record};

fn binds(batch: &Batch) -> Vec<Bind> {
    let of = |record: &Record| match record {
        Record::Bind(bind) => Some(*bind),
        _ => None,
    };
    batch.records.iter().filter_map(|placed| of(&placed.record)).collect()
}

fn values(text: &str) -> Vec<String> {
    let batch = batch_of(text);
    assert!(batch.unread.is_empty(), "{:?}", batch.unread);
    binds(&batch).iter().map(|bind| words(&batch, bind.value)).collect()
}

const EXEC: &str = "EXEC #1:c=0,e=1,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=0,tim=9\n";

/// Returns a BINDS section whose binds end with these lines, followed by an EXEC.
fn section(lasts: &[&str]) -> String {
    let bind = |(number, last): (usize, &&str)| {
        format!(
            " Bind#{number}\n  oacdty=01 mxl=32(02) mxlc=00 mal=00 scl=00 pre=00\n  oacflg=18 \
             fl2=0001 frm=01 csi=873 siz=32 off=0\n  kxsbbbfp=7fc2  bln=32  avl=02  flg=05\n{last}"
        )
    };
    let binds: Vec<String> = lasts.iter().enumerate().map(bind).collect();
    format!("BINDS #1:\n\n{}{EXEC}", binds.concat())
}

#[test]
fn a_bind_of_10g_and_later() {
    let text = section(&["  value=\"HR\"\n"]);
    let batch = batch_of(&text);
    let [bind] = binds(&batch)[..] else { panic!("{batch:?}") };
    assert_eq!((bind.number, bind.dty, bind.avl, bind.has_value), (0, 1, 2, true));
    assert_eq!(words(&batch, bind.value), "\\\"HR\\\"");
    let head = words(&batch, bind.head);
    assert!(head.starts_with(" Bind#0\\n  oacdty=01") && head.ends_with("flg=05"), "{head}");
    assert_eq!(batch.records.len(), 3, "head of the section, bind, EXEC");
}

#[test]
fn a_bind_of_9i() {
    let text = "BINDS #1:\n bind 0: dty=2 mxl=22(22) mal=00 scl=00 pre=00 oacflg=08 oacfl2=1 size=24 offset=0\n   \
        bfp=b731e260 bln=22 avl=04 flg=05\n   value=146831\n bind 1: (No oacdef for this bind)\n";
    let batch = batch_of(text);
    let [first, second] = binds(&batch)[..] else { panic!("{batch:?}") };
    assert_eq!((first.number, first.dty, first.avl), (0, 2, 4));
    assert_eq!(words(&batch, first.value), "146831");
    assert_eq!((second.number, second.dty, second.avl, second.has_value), (1, NONE, NONE, false));
}

#[test]
fn kkscoacd_and_blank_lines_are_part_of_the_section() {
    let batch =
        batch_of("BINDS #3:\nkkscoacd\n Bind#0\n  No oacdef for this bind.\n Bind#1\n  No oacdef for this bind.\n");
    let numbers: Vec<i64> = binds(&batch).iter().map(|bind| bind.number).filter(|n| *n != NONE).collect();
    assert_eq!(numbers, [0, 1]);
    assert!(!batch.records.iter().any(|placed| matches!(placed.record, Record::Other(_))));
}

#[test]
fn a_section_may_be_empty() {
    let batch = batch_of(format!("BINDS #1:\n{EXEC}"));
    assert_eq!(batch.records.len(), 2);
    assert!(batch.unread.is_empty());
}

#[test]
fn quotes_in_a_value_are_not_escaped() {
    assert_eq!(values(&section(&["  value=\"S\"ID\"\"\n"])), ["\\\"S\\\"ID\\\"\\\""]);
}

#[test]
fn a_string_may_go_on_over_lines() {
    let text = section(&["  value=\"first\n\nsecond line\n third\"\n", "  value=5\n"]);
    assert_eq!(values(&text), ["\\\"first\\n\\nsecond line\\n third\\\"", "5"]);
}

#[test]
fn hex_pairs_go_on_over_lines() {
    let text = section(&["  value=0 41 0 42 \n0 43 0 44 \n00 45\n"]);
    assert_eq!(values(&text), ["0 41 0 42 \\n0 43 0 44 \\n00 45"]);
    let text = section(&["  value=00 41 00 42\n00 43 00 44\n00 45\n"]);
    assert_eq!(values(&text), ["00 41 00 42\\n00 43 00 44\\n00 45"]);
}

#[test]
fn a_dump_of_memory_belongs_to_its_bind() {
    let text = section(&[
        "  value=Unhandled datatype (102) found in kxsbndinf\nDump of memory from 0x00007F10 to 0x00007F18\n7F1000 00000000 00000001 [........]\n  Repeat 3 times\n",
        "  value=1\n",
    ]);
    let found = values(&text);
    assert_eq!(found.len(), 2);
    assert!(found[0].ends_with("Repeat 3 times"), "{found:?}");
}

#[test]
fn an_empty_value_may_have_the_next_bind_on_its_line() {
    let found = values("BINDS #1:\n Bind#0\n  oacdty=01\n  value=  Bind#1\n  oacdty=02\n  value=7\n");
    assert_eq!(found, ["", "7"]);
}

#[test]
fn a_null_has_no_value() {
    let text =
        "BINDS #1:\n Bind#0\n  oacdty=01\n  kxsbbbfp=0  bln=32  avl=00  flg=05\nXCTEND rlbk=0, rd_only=1, tim=9\n";
    let batch = batch_of(text);
    let [bind] = binds(&batch)[..] else { panic!("{batch:?}") };
    assert_eq!((bind.avl, bind.has_value), (0, false));
}

#[test]
fn stamps_and_waits_may_stand_between_binds() {
    let text = "BINDS #1:\n*** 2020-06-13T12:20:03.212067+01:00\n Bind#0\n  oacdty=01\n  value=1\n\
        WAIT #1: nam='x' ela= 1 p1=1 p2=2 p3=3\n Bind#1\n  oacdty=02\n  value=2\n";
    assert_eq!(values(text), ["1", "2"]);
    assert_eq!(batch_of(text).records.len(), 5);
}

#[test]
fn an_interrupted_bind_goes_on_behind_the_stamp() {
    let text = "BINDS #1:\n Bind#0\n  oacdty=01 mxl=32\n*** 2020-06-13T12:20:03.212067+01:00\n  \
        kxsbbbfp=0  bln=32  avl=02  flg=05\n  value=\"HR\"\n";
    let batch = batch_of(text);
    let [first, rest] = binds(&batch)[..] else { panic!("{batch:?}") };
    assert_eq!((first.number, first.dty, first.has_value), (0, 1, false));
    assert_eq!((rest.number, rest.avl, rest.has_value), (NONE, 2, true));
}

#[test]
fn a_value_may_look_like_a_record_until_it_does_in_full() {
    let text = section(&["  value=\"WAIT for\nEXEC me\nPARSE\n\"\n"]);
    assert_eq!(values(&text).len(), 1);
}

#[test]
fn without_leave_no_bind_comes_out_and_no_sample_of_one() {
    let secret = "4111111111111111";
    let text = section(&[&format!("  value=\"{secret}\n{secret}\"\n"), &format!("  value={secret}\n")]);
    let reading = read_in(text.as_bytes(), &[usize::MAX], Options::default());
    assert_eq!(reading.records.len(), 2, "{reading:?}");
    assert!(!format!("{reading:?}").contains(secret));
    let torn = text.replace("avl=02", "avl=");
    let reading = read_in(torn.as_bytes(), &[usize::MAX], Options::default());
    assert!(!format!("{reading:?}").contains(secret));
}
