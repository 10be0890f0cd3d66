//! Fast path for STAT lines and the heads of statements, of which there are hundreds of thousands if recursive calls
//! are traced, and for skipping binds.

use super::numbers::{Memo, forward, short};
use crate::oracle_10046::record::{Cursor, NONE, Stat, Text};

/// Skips `literal` at `at`.
macro_rules! expect {
    ($bytes:expr, $at:expr, $literal:literal) => {
        if $bytes.get($at..$at + $literal.len()) != Some($literal.as_slice()) {
            return None;
        }
        $at += $literal.len();
    };
}

/// Skips `literal` and reads a number.
macro_rules! field {
    ($bytes:expr, $at:expr, $literal:literal, $way:ident) => {{
        expect!($bytes, $at, $literal);
        let (value, end) = $way($bytes, $at)?;
        $at = end;
        i64::try_from(value).ok()?
    }};
}

/// Reads a STAT line with its fields in order. `rest` begins with the line, whose LF is at `stop`; `base` is where it
/// begins in the batch.
pub(super) fn stat(rest: &[u8], stop: usize, base: usize, memo: &mut Memo) -> Option<Stat> {
    let mut at = 0;
    expect!(rest, at, b"STAT #");
    let (cursor, end) = memo.cursor(rest, at)?;
    at = end;
    let id = field!(rest, at, b" id=", short);
    let cnt = field!(rest, at, b" cnt=", forward);
    let pid = field!(rest, at, b" pid=", short);
    let pos = field!(rest, at, b" pos=", short);
    expect!(rest, at, b" obj=");
    let negative = rest.get(at) == Some(&b'-');
    at += usize::from(negative);
    let (obj, end) = forward(rest, at)?;
    at = end;
    let obj = i64::try_from(obj).ok()?;
    expect!(rest, at, b" op='");
    let end = stop - usize::from(rest.get(stop.checked_sub(1)?)? == &b'\r');
    let close = end.checked_sub(1).filter(|close| *close >= at && rest[*close] == b'\'')?;
    Some(Stat { cursor, id, cnt, pid, pos, obj: if negative { -obj } else { obj }, op: text(base, at, close) })
}

/// Reads the head line of PARSING IN CURSOR as 11g and later write it.
pub(super) fn cursor(line: &[u8], base: usize) -> Option<Cursor> {
    let mut at = 0;
    expect!(line, at, b"PARSING IN CURSOR #");
    let (cursor, end) = forward(line, at)?;
    at = end;
    let len = field!(line, at, b" len=", forward);
    let dep = field!(line, at, b" dep=", short);
    let uid = field!(line, at, b" uid=", forward);
    let oct = field!(line, at, b" oct=", forward);
    let lid = field!(line, at, b" lid=", forward);
    let tim = field!(line, at, b" tim=", forward);
    let hv = field!(line, at, b" hv=", forward);
    expect!(line, at, b" ad='");
    let ad_at = at;
    let ad_end = at + memchr::memchr(b'\'', &line[at..])?;
    at = ad_end;
    expect!(line, at, b"' sqlid='");
    let close = line.len().checked_sub(1).filter(|close| *close >= at)?;
    if memchr::memchr(b'\'', &line[at..])? + at != close {
        return None;
    }
    Some(Cursor {
        cursor,
        len,
        dep: u8::try_from(dep).ok().filter(|dep| *dep < 255)?,
        uid,
        lid,
        oct,
        tim,
        hv,
        err: NONE,
        ad: text(base, ad_at, ad_end),
        sqlid: text(base, at, close),
        sql: Text::default(),
    })
}

fn text(base: usize, start: usize, end: usize) -> Text {
    Text { start: (base + start) as u32, len: (end - start) as u32 }
}

/// Returns the position after the line that begins at `at`, if that line begins with `start`.
#[inline]
fn past(bytes: &[u8], at: usize, start: &[u8]) -> Option<usize> {
    let rest = bytes.get(at..)?;
    if !rest.starts_with(start) {
        return None;
    }
    Some(at + memchr::memchr(b'\n', rest)? + 1)
}

/// Skips consecutive binds of the usual five lines and returns the number of bytes and of lines skipped. It stops at a
/// bind that, with the beginning of the next line, exceeds `cap` bytes, or to which the next line might still belong.
pub(super) fn pass_binds(bytes: &[u8], cap: usize) -> Option<(usize, u32)> {
    let (mut at, mut lines) = (0, 0);
    while let Some(next) = pass_bind(bytes, at).filter(|next| next - at + 32 <= cap) {
        at = next;
        lines += 5;
    }
    (at > 0).then_some((at, lines))
}

fn pass_bind(bytes: &[u8], start: usize) -> Option<usize> {
    let head = past(bytes, start, b" Bind#")?;
    let digits = bytes[start + 6..head].trim_ascii_end();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let at = past(bytes, head, b"  oacdty=")?;
    let at = past(bytes, at, b"  oacflg=")?;
    let value_at = past(bytes, at, b"  kxsbbbfp=")?;
    let next = past(bytes, value_at, b"  value=")?;
    let value = &bytes[value_at + 8..next - 1];
    let value = value.strip_suffix(b"\r").unwrap_or(value);
    let open = value.first() == Some(&b'"') && (value.len() < 2 || value.last() != Some(&b'"'));
    let follows = bytes.get(next..next + 6)?;
    let sure = follows == b" Bind#" || follows == b"EXEC #" || follows == b"FETCH ";
    (sure && !open && !value.starts_with(b"  Bind#")).then_some(next)
}
