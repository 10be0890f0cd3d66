//! Lexer of calls: PARSE, EXEC, FETCH, UNMAP, SORT UNMAP, CLOSE, the LOB calls and RPC EXEC.

use super::fields::{Faults, Fields, digits_end};
use super::find::find;
use super::numbers::{Memo, forward, short};
use crate::oracle_10046::record::{Call, CallKind, NONE, Reason, Text};

/// A call in which no field is set.
pub(super) const EMPTY: Call = Call {
    cursor: 0,
    c: NONE,
    e: NONE,
    p: NONE,
    cr: NONE,
    cu: NONE,
    r: NONE,
    tim: NONE,
    plh: NONE,
    bytes: NONE,
    name: Text { start: 0, len: 0 },
    lob_type: Text { start: 0, len: 0 },
    kind: CallKind::Parse,
    dep: 255,
    mis: 255,
    og: 255,
    close_type: 255,
};

/// Longest line that the fast parser takes [bytes]; longer lines are rare and go to the tolerant parser.
const WINDOW: usize = 288;
/// Length of the shortest call [bytes]; the search for the end of a line begins after it.
const SHORTEST: usize = b"CLOSE #1:c=0,e=0,dep=0,type=0,tim=0".len();

/// Skips `literal` at `at`.
macro_rules! expect {
    ($bytes:expr, $at:expr, $literal:literal) => {
        if $bytes.get($at..$at + $literal.len()) != Some($literal.as_slice()) {
            return None;
        }
        $at += $literal.len();
    };
}

/// Reads a number of up to 18 digits as a signed number.
macro_rules! number {
    ($bytes:expr, $at:expr, $way:ident) => {{
        let (value, end) = $way($bytes, $at)?;
        $at = end;
        i64::try_from(value).ok()?
    }};
}

/// Reads a number below 255.
macro_rules! small {
    ($bytes:expr, $at:expr) => {{
        let (value, end) = short($bytes, $at)?;
        $at = end;
        if value > 254 {
            return None;
        }
        value as u8
    }};
}

/// Reads a call whose fields are in the order in which every known version writes them, and returns where its LF is.
/// `rest` begins with the line. `None` if the line needs the careful path.
#[inline(always)]
pub(super) fn quick(rest: &[u8], memo: &mut Memo) -> Option<(Call, usize)> {
    let line: &[u8; WINDOW] = rest.first_chunk()?;
    let stop = find(rest, SHORTEST, b'\n', b'\n')?;
    let (kind, mut at) = match &line[..7] {
        b"FETCH #" => (CallKind::Fetch, 7),
        b"PARSE #" => (CallKind::Parse, 7),
        b"CLOSE #" => (CallKind::Close, 7),
        [b'E', b'X', b'E', b'C', b' ', b'#', _] => (CallKind::Exec, 6),
        _ => return None,
    };
    let (cursor, end) = memo.cursor(line, at)?;
    at = end;
    expect!(line, at, b":c=");
    let c = number!(line, at, short);
    expect!(line, at, b",e=");
    let e = number!(line, at, forward);
    let mut call = Call { cursor, c, e, kind, ..EMPTY };
    if kind == CallKind::Close {
        expect!(line, at, b",dep=");
        call.dep = small!(line, at);
        expect!(line, at, b",type=");
        call.close_type = small!(line, at);
    } else {
        expect!(line, at, b",p=");
        call.p = number!(line, at, short);
        expect!(line, at, b",cr=");
        call.cr = number!(line, at, short);
        expect!(line, at, b",cu=");
        call.cu = number!(line, at, short);
        expect!(line, at, b",mis=");
        call.mis = small!(line, at);
        expect!(line, at, b",r=");
        call.r = number!(line, at, short);
        expect!(line, at, b",dep=");
        call.dep = small!(line, at);
        expect!(line, at, b",og=");
        call.og = small!(line, at);
        if line.get(at..at + 5)? == b",plh=" {
            at += 5;
            call.plh = number!(line, at, forward);
        }
    }
    expect!(line, at, b",tim=");
    // From the right, where the memo knows the upper digits.
    let end = stop - usize::from(line.get(stop.checked_sub(1)?)? == &b'\r');
    let (tim, start) = memo.clock(line, end)?;
    call.tim = i64::try_from(tim).ok()?;
    (start == at).then_some((call, stop))
}

/// Result of the slow, tolerant parser: the record if it is usable, and its faults.
pub(super) type Careful<T> = (Option<T>, Faults);

/// Reads a call by the names of its fields. The call is usable if it has an end, a length, and, where its kind has one,
/// a depth.
pub(super) fn careful(line: &[u8], kind: CallKind, digits_at: usize) -> Careful<Call> {
    let mut faults = Faults::default();
    let digits_end = digits_end(line, digits_at);
    let cursor = faults.cursor(&line[digits_at..digits_end]);
    if line.get(digits_end) != Some(&b':') {
        faults.note(Reason::Torn);
        return (None, faults);
    }
    let mut call = Call { cursor, kind, ..EMPTY };
    for field in Fields::new(line, digits_end + 1, b',') {
        set(&mut call, &mut faults, field.name, field.value);
    }
    let usable = call.e != NONE && call.tim != NONE && call.dep != 255;
    let whole = if kind == CallKind::Close {
        call.c != NONE && call.close_type != 255
    } else {
        let counters = [call.c, call.p, call.cr, call.cu, call.r];
        !counters.contains(&NONE) && call.mis != 255 && call.og != 255
    };
    faults.torn_if(!usable || !whole);
    let cursor_fits = faults.0 != Some(Reason::TooLarge);
    ((usable && cursor_fits).then_some(call), faults)
}

fn set(call: &mut Call, faults: &mut Faults, name: &[u8], value: &[u8]) {
    match name {
        b"c" => call.c = faults.number(value),
        b"e" => call.e = faults.number(value),
        b"p" => call.p = faults.number(value),
        b"cr" => call.cr = faults.number(value),
        b"cu" => call.cu = faults.number(value),
        b"r" => call.r = faults.number(value),
        b"tim" => call.tim = faults.clock(value),
        b"plh" => call.plh = faults.number(value),
        b"bytes" => call.bytes = faults.number(value),
        b"dep" => call.dep = faults.small(value),
        b"mis" => call.mis = faults.small(value),
        b"og" => call.og = faults.small(value),
        b"type" if call.kind == CallKind::Close => call.close_type = faults.small(value),
        // A field of a version to come, or a torn one: a name without a value.
        _ => faults.torn_if(value.is_empty()),
    }
}

/// Reads a LOB call; `base` is where the line begins in the batch. A LOB call has neither cursor nor depth: its depth
/// is set to 0.
pub(super) fn lob(line: &[u8], letters: usize, base: usize) -> Careful<Call> {
    let mut faults = Faults::default();
    let mut call = Call { kind: CallKind::Lob, dep: 0, ..EMPTY };
    call.name = Text { start: base as u32, len: letters as u32 };
    for field in Fields::new(line, letters + 1, b',') {
        if field.name == b"type" {
            let start = (base + field.start) as u32;
            call.lob_type = Text { start, len: field.value.len() as u32 };
        } else {
            set(&mut call, &mut faults, field.name, field.value);
        }
    }
    let usable = call.e != NONE && call.tim != NONE;
    faults.torn_if(!usable || [call.c, call.p, call.cr, call.cu].contains(&NONE));
    (usable.then_some(call), faults)
}

/// Reads a line such as `RPC EXEC:c=1,e=2`, which has no cursor, no depth and no clock.
pub(super) fn rpc(line: &[u8]) -> Careful<Call> {
    let mut faults = Faults::default();
    let mut call = Call { kind: CallKind::Rpc, dep: 0, ..EMPTY };
    for field in Fields::new(line, b"RPC EXEC:".len(), b',') {
        set(&mut call, &mut faults, field.name, field.value);
    }
    let usable = call.e != NONE;
    faults.torn_if(!usable || call.c == NONE);
    (usable.then_some(call), faults)
}
