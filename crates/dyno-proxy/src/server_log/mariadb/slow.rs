//! The slow log, which has every statement if `long_query_time` is 0.
//!
//! ```text
//! # Time: 261129  1:35:02
//! # User@Host: app[app] @ localhost [127.0.0.1]
//! # Thread_id: 5  Schema: shop  QC_hit: No
//! # Query_time: 0.000123  Lock_time: 0.000010  Rows_sent: 1  Rows_examined: 1
//! use shop;
//! SET timestamp=1795916102;
//! select *
//! from orders;
//! ```
//!
//! The stamp is the second in which the statement began, in UTC. A `use` before the stamp was written by the server
//! itself and names the database of the statement; a client's `use` is a text and so follows the stamp. Lines of a text
//! that look like the head of another entry belong to the text unless a semicolon ends the line before.
//!
//! Limits: a slow log does not say which statements failed.

use super::super::entry::{Reading, number};
use super::super::event::{Event, What};
use super::super::input::{LONGEST, Line, Lines};
use super::super::reason::Reason;
use super::{banner, event, is_below_banner, statement};

/// Part of the file that a line is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Outside,
    Head,
    Text,
}

/// Entry that is being read.
#[derive(Default)]
struct Open {
    line: u64,
    user: Vec<u8>,
    schema: Vec<u8>,
    thread: Option<u32>,
    elapsed_ns: Option<u64>,
    stamp: Vec<u8>,
    is_of_routine: bool,
    text: Option<Vec<u8>>,
}

/// Reads a slow log.
pub fn read(lines: &mut Lines, reading: &mut Reading, mut on: impl FnMut(Event, &mut Reading)) {
    let (mut part, mut open, mut last_ns) = (Part::Outside, Open::default(), 0);
    let (mut is_whole, mut is_foreign_told) = (true, false);
    while let Some(Line { bytes, number, is_whole: whole }) = lines.next_line() {
        is_whole = whole;
        if let Some(version) = banner(bytes) {
            end(std::mem::take(&mut open), part, true, &mut last_ns, reading, &mut on);
            on(event(last_ns, number, 0, None, What::Restarted(Some(version)), reading), reading);
            part = Part::Outside;
        } else if begins(bytes) && (part != Part::Text || is_ended(&open)) {
            if part != Part::Head || open.thread.is_some() {
                end(std::mem::take(&mut open), part, true, &mut last_ns, reading, &mut on);
                open.line = number;
            }
            part = Part::Head;
            head(bytes, &mut open);
        } else if part == Part::Head {
            if head(bytes, &mut open) {
                part = Part::Text;
            }
        } else if part == Part::Text {
            add(&mut open.text, bytes);
        } else if !is_below_banner(bytes) && !bytes.is_empty() && !is_foreign_told {
            is_foreign_told = true;
            reading.skip(Reason::NoPrefix, number);
        }
    }
    let is_whole = is_whole && lines.broken.is_none();
    end(open, part, is_whole, &mut last_ns, reading, &mut on);
}

fn begins(line: &[u8]) -> bool {
    line.starts_with(b"# Time: ") || line.starts_with(b"# User@Host: ")
}

fn is_ended(open: &Open) -> bool {
    open.text.as_ref().is_some_and(|text| text.ends_with(b";"))
}

fn add(text: &mut Option<Vec<u8>>, line: &[u8]) {
    match text {
        None => *text = Some(line.to_vec()),
        // One byte too many tells that it was too long.
        Some(text) if text.len() <= LONGEST => {
            text.push(b'\n');
            text.extend_from_slice(line);
        }
        Some(_) => {}
    }
}

/// Reads a line of an entry's head; returns true for the head's last line, which has the stamp.
fn head(line: &[u8], open: &mut Open) -> bool {
    if let Some(rest) = line.strip_prefix(b"# User@Host: ") {
        // privileges[login] @ host [address]
        let end = memchr::memmem::find(rest, b"] @ ").unwrap_or(0);
        let begin = memchr::memrchr(b'[', &rest[..end]).map_or(0, |at| at + 1);
        open.user = rest[begin..end.max(begin)].to_vec();
    } else if let Some(stamp) = stamp(line) {
        open.stamp = stamp.to_vec();
        return true;
    } else if line.starts_with(b"# Stored_routine: ") {
        open.is_of_routine = true;
    } else if line.starts_with(b"# ") {
        if let Some(found) = field(line, b"Thread_id: ") {
            open.thread = Some(number(found));
            let schema = memchr::memmem::find(line, b"Schema: ").map_or(&b""[..], |at| &line[at + 8..]);
            open.schema = schema[..memchr::memmem::find(schema, b"  ").unwrap_or(schema.len())].to_vec();
        } else if let Some(found) = field(line, b"Query_time: ") {
            open.elapsed_ns = nanoseconds(found);
        }
    }
    false
}

fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(line, name)? + name.len();
    line[at..].split(|byte| *byte == b' ').next()
}

/// Returns the time stamp from a line such as `SET last_insert_id=1,insert_id=2,timestamp=1795916102;`.
fn stamp(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"SET ")?.strip_suffix(b";")?;
    let stamp = rest.split(|byte| *byte == b',').next_back()?.strip_prefix(b"timestamp=")?;
    stamp.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.').then_some(stamp)
}

/// Parses seconds with a fraction and returns nanoseconds.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    let seconds: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (0.0..1e9).contains(&seconds).then_some((seconds * 1e9).round() as u64)
}

/// Passes on the event of an entry that has ended.
fn end(
    open: Open,
    part: Part,
    is_whole: bool,
    last_ns: &mut u64,
    reading: &mut Reading,
    on: &mut impl FnMut(Event, &mut Reading),
) {
    if part == Part::Outside {
        return;
    }
    reading.entries += 1;
    let line = open.line;
    let is_complete = is_whole && is_ended(&open);
    let (Some(mut text), Some(thread), Some(elapsed_ns), true) = (open.text, open.thread, open.elapsed_ns, is_complete)
    else {
        reading.skip(Reason::Cut, line);
        return;
    };
    let Some(begun_ns) = reading.clock.read(&open.stamp) else {
        reading.skip(Reason::NoTime, line);
        return;
    };
    let resolution_ns = reading.clock.resolution_ns;
    reading.clock.is_coarse |= resolution_ns >= SECOND_NS;
    // A statement that ends in the second after its stamp is logged after others of that second.
    let at_ns = begun_ns.saturating_add(elapsed_ns) / resolution_ns * resolution_ns;
    let at_ns = if *last_ns == at_ns + resolution_ns { *last_ns } else { at_ns };
    *last_ns = at_ns;
    if text.len() > LONGEST {
        reading.skip(Reason::TooLong, line);
        return;
    }
    text.pop();
    let who = reading.who(&open.user, &open.schema, b"");
    let what = match text.strip_prefix(b"# administrator command: ") {
        Some(b"Quit") => What::Disconnected,
        Some(_) => return,
        None if open.is_of_routine => {
            reading.skip(Reason::Routine, line);
            return;
        }
        None => What::Done(statement(text), elapsed_ns),
    };
    on(event(at_ns, line, thread, who, what, reading), reading);
}

const SECOND_NS: u64 = 1_000_000_000;
