//! csvlog: records of 23 to 26 columns, whose quoted texts may have line ends.
//!
//! A record ends where its quotes are closed. If a line within quotes looks like the beginning of a record, the record
//! before it was cut off.

use memchr::{memchr, memchr_iter};

use super::entry::{Entry, Reading, Severity, number, start_of, state};
use super::input::{LONGEST, Line, Lines};
use super::reason::Reason;

const COLUMNS_MOST: usize = 26;
const COLUMNS_LEAST: usize = 22;
const TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const PID: usize = 3;
const SESSION: usize = 5;
const SEVERITY: usize = 11;
const STATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const CONTEXT: usize = 18;
const STATEMENT: usize = 19;
const APPLICATION: usize = 22;
const BACKEND: usize = 23;

/// Column: its bytes without quotes around them, and whether quotes within are doubled.
type Field<'a> = (&'a [u8], bool);

/// Splits a record into its columns; returns their number, or `None` if the bytes are not a record.
fn fields<'a>(mut rest: &'a [u8], into: &mut [Field<'a>; COLUMNS_MOST]) -> Option<usize> {
    let mut count = 0;
    loop {
        let (field, behind) = if let Some(quoted) = rest.strip_prefix(b"\"") {
            let (mut end, mut is_doubled) = (0, false);
            loop {
                end += memchr(b'"', quoted.get(end..)?)?;
                if quoted.get(end + 1) != Some(&b'"') {
                    break;
                }
                is_doubled = true;
                end += 2;
            }
            ((&quoted[..end], is_doubled), &quoted[end + 1..])
        } else {
            let end = memchr(b',', rest).unwrap_or(rest.len());
            ((&rest[..end], false), &rest[end..])
        };
        if count < COLUMNS_MOST {
            into[count] = field;
        }
        count += 1;
        match behind.split_first() {
            None => return Some(count),
            Some((b',', behind)) => rest = behind,
            Some(_) => return None,
        }
    }
}

fn whole(field: Field<'_>) -> Vec<u8> {
    let (bytes, is_doubled) = field;
    if !is_doubled {
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=at]);
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// Returns true for a line that begins as a record does: time, two names, process, address, session, number.
fn begins(line: &[u8]) -> bool {
    if !line.first().is_some_and(u8::is_ascii_digit) || line.get(4) != Some(&b'-') {
        return false;
    }
    let mut into = [(&b""[..], false); COLUMNS_MOST];
    // The rest of the line may be within quotes, which are not closed.
    let mut rest = line;
    for (at, place) in into.iter_mut().enumerate().take(7) {
        let length =
            if rest.first() == Some(&b'"') { memchr(b'"', &rest[1..]).map(|end| end + 2) } else { memchr(b',', rest) };
        let Some((field, behind)) = length.and_then(|length| rest.split_at_checked(length)) else { return false };
        if behind.first() != Some(&b',') && at < 6 {
            return false;
        }
        *place = (field, false);
        rest = behind.get(1..).unwrap_or_default();
    }
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    into[TIME].0.len() >= 23
        && into[TIME].0.get(10) == Some(&b' ')
        && is_number(into[PID].0)
        && start_of(into[SESSION].0) > 0
        && is_number(into[6].0)
}

/// Reads a csvlog.
pub fn read(lines: &mut Lines, reading: &mut Reading, mut on: impl FnMut(Entry, &mut Reading)) {
    let mut open: Vec<u8> = Vec::new();
    let mut first = None;
    while let Some(Line { bytes, number, is_whole }) = lines.next_line() {
        if let Some(line) = first.filter(|_| begins(bytes)) {
            reading.skip(Reason::Cut, line);
            open.clear();
            first = None;
        }
        let is_odd = memchr_iter(b'"', bytes).count() % 2 == 1;
        let Some(line) = first else {
            if !is_odd && is_whole {
                record(bytes, number, reading, &mut on);
            } else {
                first = Some(number);
                open.extend_from_slice(bytes);
            }
            continue;
        };
        if open.len() <= LONGEST {
            open.push(b'\n');
            open.extend_from_slice(bytes);
        }
        if is_odd && is_whole {
            if open.len() > LONGEST {
                reading.skip(Reason::TooLong, line);
            } else {
                record(&open, line, reading, &mut on);
            }
            open.clear();
            first = None;
        }
    }
    if let Some(line) = first {
        reading.skip(Reason::Cut, line);
    }
}

fn record(bytes: &[u8], line: u64, reading: &mut Reading, on: &mut impl FnMut(Entry, &mut Reading)) {
    let mut columns = [(&b""[..], false); COLUMNS_MOST];
    if fields(bytes, &mut columns).is_none_or(|count| count < COLUMNS_LEAST) {
        if !bytes.is_empty() {
            reading.skip(Reason::NoColumns, line);
        }
        return;
    }
    let Some(at_ns) = reading.clock.read(columns[TIME].0) else {
        reading.skip(Reason::NoTime, line);
        return;
    };
    reading.entries += 1;
    let severity = Severity::of(columns[SEVERITY].0);
    if severity == Severity::Other || !matches!(columns[BACKEND].0, b"" | b"client backend" | b"postmaster") {
        return;
    }
    let entry = Entry {
        at_ns,
        line,
        pid: number(columns[PID].0),
        start: start_of(columns[SESSION].0),
        who: reading.who(columns[USER].0, columns[DATABASE].0, columns[APPLICATION].0),
        severity,
        state: state(columns[STATE].0),
        message: whole(columns[MESSAGE]),
        detail: whole(columns[DETAIL]),
        statement: whole(columns[STATEMENT]),
        context: whole(columns[CONTEXT]),
    };
    on(entry, reading);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_quotes_commas_and_line_ends_in_its_columns() {
        let mut columns = [(&b""[..], false); COLUMNS_MOST];
        let count = fields(b"1,\"a \"\"b\"\", c\nd\",,\"\"", &mut columns).expect("columns");
        assert_eq!(count, 4);
        assert_eq!(whole(columns[1]), b"a \"b\", c\nd");
        assert_eq!((columns[2].0, columns[3].0), (&b""[..], &b""[..]));
        assert!(fields(b"1,\"open", &mut columns).is_none());
        assert!(fields(b"1,\"a\"b", &mut columns).is_none());
    }

    #[test]
    fn a_line_that_begins_a_record_is_known() {
        let line = b"2026-11-21 00:59:57.437 UTC,\"me\",\"app\",28,\"127.0.0.1:1\",67404df3.1c,3,\"SELECT\",2026";
        assert!(begins(line));
        assert!(begins(b"2026-11-21 00:59:57.437 UTC,,,28,,67404df3.1c,3,,2026-11-21"));
        assert!(!begins(b"2026-11-21, 1"));
        assert!(!begins(b"2026-11-21 00:59:57.437 UTC,1,2"));
        assert!(!begins(b""));
    }
}
