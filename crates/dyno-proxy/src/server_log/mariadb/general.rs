//! The general log, which records every command of a client when the command arrives.
//!
//! ```text
//! 261129  1:35:02      5 Connect  app@localhost on shop using TCP/IP
//!                      5 Query    select *
//! from orders
//!                      5 Quit
//! ```
//!
//! Tabs separate the parts of a line. The time, in the server's own zone, is written at most once a second. A prepared
//! statement is logged with the values of its parameters when it is executed.
//!
//! Limits: no durations and no failures.

use std::collections::HashSet;

use super::super::entry::{Reading, number};
use super::super::event::{Event, What};
use super::super::input::{LONGEST, Line, Lines};
use super::super::reason::Reason;
use super::{banner, event, is_below_banner, statement};

/// Length of a time, `261129  1:35:02`.
const TIME: usize = 15;
/// Length of the longest name of a command.
const COMMAND_MOST: usize = 24;

/// First line of an entry.
struct Head<'a> {
    time: &'a [u8],
    thread: u32,
    command: &'a [u8],
    argument: &'a [u8],
}

/// Command whose argument may continue in the next line.
struct Open {
    at_ns: u64,
    line: u64,
    thread: u32,
    command: Vec<u8>,
    argument: Vec<u8>,
}

/// Returns the parts of a line that begins an entry.
fn head(line: &[u8]) -> Option<Head<'_>> {
    let (time, rest) = if let [b'\t', b'\t', rest @ ..] = line {
        (&b""[..], rest)
    } else {
        let (time, rest) = line.split_at_checked(TIME)?;
        let is_time = time.iter().enumerate().all(|(at, byte)| match at {
            6 => *byte == b' ',
            9 | 12 => *byte == b':',
            7 => *byte == b' ' || byte.is_ascii_digit(),
            _ => byte.is_ascii_digit(),
        });
        (time, rest.strip_prefix(b"\t").filter(|_| is_time)?)
    };
    let rest = rest.trim_ascii_start();
    let (thread, rest) = rest.split_at(rest.iter().position(|byte| *byte == b' ')?);
    let command_end = rest.iter().take(COMMAND_MOST).position(|byte| *byte == b'\t')?;
    let (command, argument) = (&rest[1..command_end.max(1)], &rest[command_end + 1..]);
    let is_command = command.first().is_some_and(u8::is_ascii_uppercase)
        && command.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_'));
    let is_thread = !thread.is_empty() && thread.len() < 11 && thread.iter().all(u8::is_ascii_digit);
    (is_command && is_thread).then(|| Head { time, thread: number(thread), command, argument })
}

/// Returns a time in the form that `PostgreSQL`'s logs have, without a zone.
fn stamp(time: &[u8]) -> Vec<u8> {
    let mut made = b"20".to_vec();
    for (at, byte) in time.iter().enumerate() {
        if at == 2 || at == 4 {
            made.push(b'-');
        }
        made.push(if at == 7 && *byte == b' ' { b'0' } else { *byte });
    }
    made
}

/// Reads a general log.
pub fn read(lines: &mut Lines, reading: &mut Reading, mut on: impl FnMut(Event, &mut Reading)) {
    let (mut open, mut at_ns): (Option<Open>, Option<u64>) = (None, None);
    let mut is_whole = true;
    let mut of_sql = HashSet::new();
    while let Some(Line { bytes, number, is_whole: whole }) = lines.next_line() {
        is_whole = whole;
        if let Some(version) = banner(bytes) {
            end(open.take(), &mut of_sql, reading, &mut on);
            on(event(at_ns.unwrap_or(0), number, 0, None, What::Restarted(Some(version)), reading), reading);
        } else if let Some(head) = head(bytes) {
            end(open.take(), &mut of_sql, reading, &mut on);
            reading.entries += 1;
            if !head.time.is_empty() {
                at_ns = reading.clock.read(&stamp(head.time));
            }
            match at_ns {
                None => reading.skip(Reason::NoTime, number),
                Some(at_ns) => {
                    let (command, argument) = (head.command.to_vec(), head.argument.to_vec());
                    open = Some(Open { at_ns, line: number, thread: head.thread, command, argument });
                }
            }
        } else if let Some(open) = &mut open {
            // One byte too many tells that it was too long.
            if open.argument.len() <= LONGEST {
                open.argument.push(b'\n');
                open.argument.extend_from_slice(bytes);
            }
        } else if reading.entries == 0 && !is_below_banner(bytes) && !bytes.is_empty() {
            reading.skip(Reason::NoPrefix, number);
        }
    }
    if is_whole && lines.broken.is_none() {
        end(open, &mut of_sql, reading, &mut on);
    } else if let Some(open) = open {
        reading.skip(Reason::Cut, open.line);
    }
}

/// Passes on the event of an entry that has ended; `of_sql` are the sessions whose last statement was PREPARE or
/// EXECUTE.
fn end(open: Option<Open>, of_sql: &mut HashSet<u32>, reading: &mut Reading, on: &mut impl FnMut(Event, &mut Reading)) {
    let Some(Open { at_ns, line, thread, command, argument }) = open else { return };
    if argument.len() > LONGEST {
        reading.skip(Reason::TooLong, line);
        return;
    }
    let (who, what) = match command.as_slice() {
        b"Connect" if argument.starts_with(b"Access denied") => (None, What::Disconnected),
        b"Connect" => {
            let (user, database) = login(&argument);
            (reading.who(user, database, b""), What::Connected)
        }
        b"Quit" => (None, What::Disconnected),
        b"Query" => {
            let first = argument.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
            if first.eq_ignore_ascii_case(b"prepare") || first.eq_ignore_ascii_case(b"execute") {
                of_sql.insert(thread);
            } else {
                of_sql.remove(&thread);
            }
            (None, What::Done(statement(argument), 0))
        }
        // An EXECUTE of SQL is logged before, as a query.
        b"Execute" if !of_sql.contains(&thread) => (None, What::Done(statement(argument), 0)),
        _ => return,
    };
    on(event(at_ns, line, thread, who, what, reading), reading);
}

/// Returns user and database from a text such as `app@localhost on shop using TCP/IP`.
fn login(argument: &[u8]) -> (&[u8], &[u8]) {
    let whole = argument.len();
    let on = memchr::memmem::rfind(argument, b" on ").unwrap_or(whole);
    let user = &argument[..memchr::memrchr(b'@', &argument[..on]).unwrap_or(on)];
    let database = argument.get(on + 4..).unwrap_or_default();
    (user, &database[..memchr::memmem::rfind(database, b" using ").unwrap_or(database.len())])
}
