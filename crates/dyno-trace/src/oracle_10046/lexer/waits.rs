//! Lexer of WAIT lines. The name ends at `' ela=`; clock and object are at the end of the line; between them are the
//! parameters, whose names may contain blanks or signs, or be empty.

use super::calls::Careful;
use super::fields::{Faults, digits_end};
use super::find::find;
use super::names::{BEHIND, Name, NameMemo, hash};
use super::numbers::{self, Memo, backward, forward};
use crate::oracle_10046::record::{NONE, NameNumber, Reason, Text, Wait};

/// Reads a WAIT line as 10g and later write it; returns it and the position of its LF. `rest` begins with the line;
/// `base` is where it begins in the batch. `None` if the line needs the careful path.
#[inline(always)]
pub(super) fn quick(
    rest: &[u8],
    base: usize,
    memo: &mut Memo,
    names: &mut NameMemo,
    numbered: &mut u32,
) -> Option<(Wait, usize)> {
    if !rest.starts_with(b"WAIT #") {
        return None;
    }
    let (cursor, at) = memo.cursor(rest, 6)?;
    if rest.get(at..at + 7)? != b": nam='" {
        return None;
    }
    let name_at = at + 7;
    let name = match names.find(rest, name_at) {
        Some(known) => known,
        None => new_name(rest, name_at, names, numbered)?,
    };
    let name_end = name_at + name.len;
    let behind = name_end + BEHIND.len();
    // A quote behind the name: another record is glued to this one.
    let stop = find(rest, behind, b'\n', b'\'')?;
    let line = rest.get(..stop)?;
    if rest[stop] != b'\n' || stop < 32 {
        return None;
    }
    let ela_at = behind + usize::from(*line.get(behind)? == b' ');
    let (ela, parameters_at) = forward(rest, ela_at)?;
    let end = stop - usize::from(line[stop - 1] == b'\r');
    if parameters_at >= end || line[parameters_at] != b' ' {
        return None;
    }
    let (tim, tim_at) = memo.clock(line, end)?;
    let parameters_end = tim_at.checked_sub(5).filter(|at| *at >= parameters_at)?;
    if &line[parameters_end..tim_at] != b" tim=" {
        return None;
    }
    let (obj, parameters_end) = object_before(line, parameters_at, parameters_end)?;
    let start = (parameters_at + 1).min(parameters_end);
    let wait = Wait {
        cursor,
        nam: text(base, name_at, name_end),
        ela: i64::try_from(ela).ok()?,
        parameters: text(base, start, parameters_end),
        obj,
        tim: i64::try_from(tim).ok()?,
        nam_hash: name.hash,
        nam_number: NameNumber(name.number),
    };
    Some((wait, stop))
}

/// Reads a name that is not known yet; the name must end in this line.
#[cold]
fn new_name(rest: &[u8], at: usize, names: &mut NameMemo, numbered: &mut u32) -> Option<Name> {
    let line = &rest[..memchr::memchr(b'\n', rest)?];
    let len = memchr::memchr(b'\'', line.get(at..)?)?;
    if line.get(at + len..at + len + BEHIND.len())? != BEHIND {
        return None;
    }
    *numbered += 1;
    Some(names.learn(rest, at, len, *numbered - 1))
}

/// Returns the object number that ends at `end`, and the end of the parameters before it.
#[inline(always)]
fn object_before(line: &[u8], parameters_at: usize, end: usize) -> Option<(i64, usize)> {
    // Most waits are for no object.
    if end >= parameters_at + 8 && line.get(end - 8..end)? == b" obj#=-1" {
        return Some((-1, end - 8));
    }
    let Some((number, digits_at)) = backward(line, end) else {
        // More digits than fit, or none: `p3=`, perhaps.
        return (!line[end - 1].is_ascii_digit()).then_some((NONE, end));
    };
    let negative = line[digits_at - 1] == b'-';
    let number_at = digits_at - usize::from(negative);
    let Some(name_at) = number_at.checked_sub(6).filter(|at| *at >= parameters_at) else {
        return Some((NONE, end));
    };
    if &line[name_at..number_at] != b" obj#=" {
        return Some((NONE, end));
    }
    let number = i64::try_from(number).ok()?;
    Some((if negative { -number } else { number }, name_at))
}

fn text(base: usize, start: usize, end: usize) -> Text {
    Text { start: (base + start) as u32, len: (end - start) as u32 }
}

/// Reads a WAIT line of any version, intact or torn. It is usable if its name and its time are intact, and its clock
/// where the version writes one.
pub(super) fn careful(line: &[u8], base: usize) -> Careful<Wait> {
    let mut faults = Faults::default();
    let cursor_end = digits_end(line, 6);
    let cursor = faults.cursor(&line[6..cursor_end]);
    let wait = body(line, base, cursor_end, cursor, &mut faults);
    (wait.filter(|_| faults.0.is_none()), faults)
}

fn body(line: &[u8], base: usize, cursor_end: usize, cursor: u64, faults: &mut Faults) -> Option<Wait> {
    let torn = |faults: &mut Faults| {
        faults.note(Reason::Torn);
        None
    };
    if !line[cursor_end..].starts_with(b": nam='") {
        return torn(faults);
    }
    let name_at = cursor_end + 7;
    let Some(name_len) = memchr::memmem::find(&line[name_at..], b"' ela=") else {
        return torn(faults);
    };
    let name_end = name_at + name_len;
    if line[name_at..name_end].contains(&b'\'') {
        return torn(faults);
    }
    let ela_at = name_end + 6 + usize::from(line.get(name_end + 6) == Some(&b' '));
    let signed_at = ela_at + usize::from(line.get(ela_at) == Some(&b'-'));
    let ela_end = digits_end(line, signed_at);
    let ela = faults.number(&line[ela_at.min(ela_end)..ela_end]);
    let rest = &line[ela_end..];
    if !rest.is_empty() && rest[0] != b' ' || rest.contains(&b'\'') {
        return torn(faults);
    }
    let (tim, parameters_end) = last_field(rest, b" tim=");
    let tim = tim.map_or(NONE, |value| faults.clock(value));
    let (obj, parameters_end) = match last_field(&rest[..parameters_end], b" obj#=") {
        (Some(value), end) if is_number(value) => (faults.number(value), end),
        _ => (NONE, parameters_end),
    };
    let parameters = &rest[..parameters_end];
    if tim == NONE && (obj != NONE || !is_old(parameters)) {
        return torn(faults);
    }
    let start = ela_end + usize::from(!parameters.is_empty());
    Some(Wait {
        cursor,
        nam: text(base, name_at, name_end),
        ela,
        parameters: text(base, start, ela_end + parameters_end),
        obj,
        tim,
        nam_hash: hash(&line[name_at..name_end]),
        nam_number: NameNumber::default(),
    })
}

/// Returns the value after the last `name` in `rest`, if no blank follows that value, and where the name begins.
fn last_field<'a>(rest: &'a [u8], name: &[u8]) -> (Option<&'a [u8]>, usize) {
    match memchr::memmem::rfind(rest, name) {
        Some(at) if !rest[at + name.len()..].contains(&b' ') => (Some(&rest[at + name.len()..]), at),
        _ => (None, rest.len()),
    }
}

fn is_number(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Returns true for ` p1=1 p2=2 p3=3`: the parameters as 8i and 9i write them, which have no clock on the line.
fn is_old(parameters: &[u8]) -> bool {
    let mut pieces = parameters.split(|byte| *byte == b' ').skip(1);
    let names: [&[u8]; 3] = [b"p1=", b"p2=", b"p3="];
    let named = names.into_iter().all(|name| {
        let value = pieces.next().and_then(|piece| piece.strip_prefix(name));
        value.is_some_and(|value| numbers::bits(value).is_ok())
    });
    named && pieces.next().is_none()
}
