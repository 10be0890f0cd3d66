//! Binds: a head line, lines of attributes, a value that may span several lines. A bind ends where the next one or any
//! record begins.

use super::classes::{Class, class};
use super::fields::Faults;
use super::numbers;
use super::texts::Lines;
use crate::oracle_10046::record::{Bind, NONE, Reason, Text};

/// A bind, the start of the line after the bind, and the number of lines of the bind.
pub(super) struct Found {
    pub bind: Option<Bind>,
    pub next: usize,
    pub lines: u32,
}

/// Returns the bind at `start` and the start of the next line; `None` if more bytes are needed. `start` is at the
/// bind's first line, or at a further line if a stamp interrupted the bind; the bind's number is then `NONE`. If `keep`
/// is false, the bind is not parsed: only its end is found.
pub(super) fn bind(bytes: &[u8], start: usize, closed: bool, keep: bool, faults: &mut Faults) -> Option<Found> {
    let mut lines = Lines::new(bytes, start, closed);
    let (_, first_end, mut next) = lines.next()?;
    let mut count = u32::from(bytes[next - 1] == b'\n');
    let mut value = start_of_value(bytes, start, first_end);
    let mut value_end = first_end;
    let mut head_end = if value.is_some() { start } else { first_end };
    let mut open = value.is_some_and(|at| is_open(&bytes[at..first_end]));
    let mut ended = false;
    for (at, end, line_next) in &mut lines {
        let line = &bytes[at..end];
        let class = class(line);
        if class.is_record() || class == Class::Bind || class == Class::HeaderStart {
            ended = true;
            break;
        }
        if value.is_some() {
            // A second value is another bind's, whose head is lost.
            if !open && !continues(line) {
                ended = true;
                break;
            }
            open = open && !line.ends_with(b"\"");
            value_end = end;
        } else if class == Class::BindRest || is_indented(line) {
            value = start_of_value(bytes, at, end);
            if let Some(at) = value.filter(|at| glued(&bytes[*at..end])) {
                // `value=  Bind#2`: an empty value, and the next bind on the same line.
                value_end = at;
                next = at;
                ended = true;
                break;
            }
            if let Some(at) = value {
                open = is_open(&bytes[at..end]);
                value_end = end;
            } else {
                head_end = end;
            }
        } else {
            ended = true;
            break;
        }
        next = line_next;
        count += u32::from(bytes[next - 1] == b'\n');
    }
    if !ended && !closed {
        return None;
    }
    if !keep {
        return Some(Found { bind: None, next, lines: count });
    }
    let text = |start: usize, end: usize| Text { start: start as u32, len: (end - start) as u32 };
    let head = &bytes[start..head_end];
    let bind = Bind {
        number: number(head, faults),
        dty: attribute(head, &[b"oacdty=", b"dty="], faults),
        avl: attribute(head, &[b"avl="], faults),
        head: text(start, head_end),
        value: value.map_or_else(Text::default, |at| text(at, value_end)),
        has_value: value.is_some(),
    };
    Some(Found { bind: Some(bind), next, lines: count })
}

/// Returns where the value begins, if the line `start..end` has one.
fn start_of_value(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    let line = &bytes[start..end];
    let text = line.trim_ascii_start();
    text.starts_with(b"value=").then(|| start + (line.len() - text.len()) + b"value=".len())
}

/// Returns true if the string that begins in `value` continues in the next line.
fn is_open(value: &[u8]) -> bool {
    value.first() == Some(&b'"') && (value.len() == 1 || value.last() != Some(&b'"'))
}

fn is_indented(line: &[u8]) -> bool {
    line.first() == Some(&b' ') && !line.trim_ascii().is_empty()
}

/// Returns true if an empty value is followed by the next bind's head on the same line.
fn glued(value: &[u8]) -> bool {
    value.starts_with(b"  Bind#") && class(value) == Class::Bind
}

/// Returns true if a line belongs to the value above it: hex pairs, or a memory dump.
fn continues(line: &[u8]) -> bool {
    if line.starts_with(b"Dump of memory from ") || line.starts_with(b"  Repeat ") {
        return true;
    }
    let is_hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
    let mut words = line.split(|byte| *byte == b' ');
    let first = words.next().unwrap_or_default();
    match first.len() {
        1 | 2 => is_hex(first) && words.all(|word| word.len() <= 2 && is_hex(word)),
        6..=16 => is_hex(first) && words.next().is_some_and(|word| word.len() == 8 && is_hex(word)),
        _ => false,
    }
}

/// Returns the number in ` Bind#3` or `bind 3: ...`; `NONE` for the rest of an interrupted bind.
fn number(head: &[u8], faults: &mut Faults) -> i64 {
    let text = head.trim_ascii_start();
    let rest = text.strip_prefix(b"Bind#").or_else(|| text.strip_prefix(b"bind "));
    let Some(rest) = rest else { return NONE };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    faults.number(&rest[..digits])
}

/// Returns the number after the first of `names` found in `head`; `NONE` if none is found.
fn attribute(head: &[u8], names: &[&[u8]], faults: &mut Faults) -> i64 {
    for name in names {
        let Some(at) = memchr::memmem::find(head, name) else { continue };
        let rest = &head[at + name.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            faults.note(Reason::Torn);
            return NONE;
        }
        return faults.take(numbers::signed(&rest[..digits]), NONE);
    }
    NONE
}
