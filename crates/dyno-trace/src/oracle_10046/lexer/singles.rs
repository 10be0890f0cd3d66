//! Records of one line that are neither calls nor waits: STAT, ERROR, XCTEND, the head of BINDS,
//! and the head lines of PARSING IN CURSOR and PARSE ERROR.

use super::calls::Careful;
use super::fields::{Faults, Field, Fields, digits_end};
use crate::oracle_10046::record::{Cursor, Failure, NONE, Reason, Stat, Text, Xct};

/// Reads STAT; `base` is where the line begins in the batch. The record is usable if it has all its fields.
pub(super) fn stat(line: &[u8], base: usize) -> Careful<Stat> {
    let mut faults = Faults::default();
    let end = digits_end(line, 6);
    let cursor = faults.cursor(&line[6..end]);
    let mut stat = Stat { cursor, id: NONE, cnt: NONE, pid: NONE, pos: NONE, obj: NONE, op: Text::default() };
    let op = memchr::memmem::find(line, b" op='");
    let close = memchr::memrchr(b'\'', line);
    let head = match (op, close) {
        (Some(op), Some(close)) if close >= op + 5 => {
            stat.op = Text { start: (base + op + 5) as u32, len: (close - op - 5) as u32 };
            faults.torn_if(close + 1 != line.len());
            &line[..op]
        }
        _ => {
            faults.note(Reason::Torn);
            return (None, faults);
        }
    };
    for Field { name, value, .. } in Fields::new(head, end, b' ') {
        match name {
            b"id" => stat.id = faults.number(value),
            b"cnt" => stat.cnt = faults.number(value),
            b"pid" => stat.pid = faults.number(value),
            b"pos" => stat.pos = faults.number(value),
            b"obj" => stat.obj = faults.number(value),
            _ => faults.torn_if(value.is_empty()),
        }
    }
    faults.torn_if([stat.id, stat.cnt, stat.pid, stat.pos].contains(&NONE));
    (faults.0.is_none().then_some(stat), faults)
}

/// Reads ERROR.
pub(super) fn error(line: &[u8]) -> Careful<Failure> {
    let mut faults = Faults::default();
    let end = digits_end(line, 7);
    let cursor = faults.cursor(&line[7..end]);
    let mut failure = Failure { cursor, err: NONE, tim: NONE };
    for Field { name, value, .. } in Fields::new(line, end + 1, b' ') {
        match name {
            b"err" => failure.err = faults.number(value),
            b"tim" => failure.tim = faults.clock(value),
            _ => faults.torn_if(value.is_empty()),
        }
    }
    faults.torn_if(line.get(end) != Some(&b':') || failure.err == NONE || failure.tim == NONE);
    (faults.0.is_none().then_some(failure), faults)
}

/// Reads XCTEND.
pub(super) fn xct(line: &[u8]) -> Careful<Xct> {
    let mut faults = Faults::default();
    let (mut rollback, mut read_only, mut tim) = (None, None, NONE);
    let flag = |value: &[u8]| match value {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => None,
    };
    for Field { name, value, .. } in Fields::new(line, b"XCTEND ".len(), b',') {
        match name {
            b"rlbk" => rollback = flag(value),
            b"rd_only" => read_only = flag(value),
            b"tim" => tim = faults.clock(value),
            _ => faults.torn_if(value.is_empty()),
        }
    }
    // 10g writes no clock; a line that ends in a comma has lost it.
    faults.torn_if(line.ends_with(b","));
    match (rollback, read_only) {
        (Some(rollback), Some(read_only)) if faults.0.is_none() => (Some(Xct { rollback, read_only, tim }), faults),
        _ => {
            faults.note(Reason::Torn);
            (None, faults)
        }
    }
}

/// Returns the cursor number of `BINDS #1:`.
pub(super) fn binds(line: &[u8]) -> Careful<u64> {
    let mut faults = Faults::default();
    let end = digits_end(line, 7);
    let cursor = faults.cursor(&line[7..end]);
    faults.torn_if(line.get(end) != Some(&b':') || !line[end + 1..].trim_ascii().is_empty());
    (faults.0.is_none().then_some(cursor), faults)
}

/// Reads the head line of PARSING IN CURSOR (`parse_error` false) or PARSE ERROR. Even a torn line is usable if the
/// cursor's number is intact.
pub(super) fn cursor(line: &[u8], base: usize, parse_error: bool) -> Careful<Cursor> {
    let mut faults = Faults::default();
    let digits = if parse_error { "PARSE ERROR #".len() } else { "PARSING IN CURSOR #".len() };
    let end = digits_end(line, digits);
    let mut cursor = Cursor {
        cursor: faults.cursor(&line[digits..end]),
        len: NONE,
        dep: 255,
        uid: NONE,
        lid: NONE,
        oct: NONE,
        tim: NONE,
        hv: NONE,
        err: NONE,
        ad: Text::default(),
        sqlid: Text::default(),
        sql: Text::default(),
    };
    let cursor_whole = faults.0.is_none();
    let text = |field: &Field| Text { start: (base + field.start) as u32, len: field.value.len() as u32 };
    let colon = usize::from(line.get(end) == Some(&b':'));
    for field in Fields::new(line, end + colon, b' ') {
        match field.name {
            b"len" => cursor.len = faults.number(field.value),
            b"dep" => cursor.dep = faults.small(field.value),
            b"uid" => cursor.uid = faults.number(field.value),
            b"lid" => cursor.lid = faults.number(field.value),
            b"oct" => cursor.oct = faults.number(field.value),
            b"tim" => cursor.tim = faults.clock(field.value),
            b"hv" => cursor.hv = faults.number(field.value),
            b"err" => cursor.err = faults.number(field.value),
            b"ad" => cursor.ad = text(&field),
            b"sqlid" => cursor.sqlid = text(&field),
            _ if !field.value.is_empty() => {}
            _ => faults.note(Reason::Torn),
        }
    }
    let last = if parse_error { cursor.err } else { cursor.hv };
    let numbers = [cursor.len, cursor.uid, cursor.oct, cursor.lid, cursor.tim, last];
    faults.torn_if(numbers.contains(&NONE) || cursor.dep == 255);
    (cursor_whole.then_some(cursor), faults)
}
