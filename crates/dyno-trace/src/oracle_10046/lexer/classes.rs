//! Classes of lines, determined by their first bytes.

use crate::oracle_10046::record::CallKind;

/// Class of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A call with a cursor, and the number of bytes before the cursor's digits.
    Call(CallKind, usize),
    /// WAIT.
    Wait,
    /// PARSING IN CURSOR.
    Cursor,
    /// PARSE ERROR.
    ParseError,
    /// STAT.
    Stat,
    /// BINDS.
    Binds,
    /// ERROR.
    Error,
    /// XCTEND.
    Xct,
    /// A LOB call, and the length of its name [bytes].
    Lob(usize),
    /// RPC EXEC.
    Rpc,
    /// `***` and a blank.
    Stamp,
    /// APPNAME.
    Appname,
    /// A line of `=` before PARSING IN CURSOR.
    Separator,
    /// The first line of a bind.
    Bind,
    /// A further line of a bind, or a line between BINDS and the first bind.
    BindRest,
    /// Only blanks.
    Blank,
    /// First line of a header.
    HeaderStart,
    /// Any other line.
    Other,
}

impl Class {
    /// Returns true if the line begins a record of time or of a statement: no such line is part of a bind's value, or
    /// of a text whose end is lost.
    pub(super) fn is_record(self) -> bool {
        !matches!(self, Class::Bind | Class::BindRest | Class::Blank | Class::HeaderStart | Class::Other)
    }
}

/// Keywords before `#` and a cursor number.
const KEYWORDS: [(&[u8], Class); 12] = [
    (b"WAIT #", Class::Wait),
    (b"FETCH #", Class::Call(CallKind::Fetch, 7)),
    (b"EXEC #", Class::Call(CallKind::Exec, 6)),
    (b"PARSE #", Class::Call(CallKind::Parse, 7)),
    (b"CLOSE #", Class::Call(CallKind::Close, 7)),
    (b"STAT #", Class::Stat),
    (b"BINDS #", Class::Binds),
    (b"PARSING IN CURSOR #", Class::Cursor),
    (b"ERROR #", Class::Error),
    (b"PARSE ERROR #", Class::ParseError),
    (b"UNMAP #", Class::Call(CallKind::Unmap, 7)),
    (b"SORT UNMAP #", Class::Call(CallKind::SortUnmap, 12)),
];

/// Returns true if a digit follows the first `len` bytes.
fn digit_at(line: &[u8], len: usize) -> bool {
    line.get(len).is_some_and(u8::is_ascii_digit)
}

/// Returns the class of a line without its line end.
pub(super) fn class(line: &[u8]) -> Class {
    match line.first() {
        None => Class::Blank,
        Some(b' ' | b'\t') => indented(line),
        Some(b'*') => {
            if line.starts_with(b"*** ") {
                Class::Stamp
            } else {
                Class::Other
            }
        }
        Some(b'=') => {
            if line.len() >= 8 && line.iter().all(|byte| *byte == b'=') {
                Class::Separator
            } else {
                Class::Other
            }
        }
        Some(b'A'..=b'Z') => capital(line),
        Some(b'k') if line.starts_with(b"kkscoacd") => Class::BindRest,
        Some(_) => Class::Other,
    }
}

fn capital(line: &[u8]) -> Class {
    for (keyword, class) in KEYWORDS {
        if line[0] == keyword[0] && line.starts_with(keyword) {
            return if digit_at(line, keyword.len()) { class } else { Class::Other };
        }
    }
    if line.starts_with(b"LOB") {
        let letters = line.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        if letters > 3 && line[letters..].starts_with(b": type=") {
            return Class::Lob(letters);
        }
    }
    let starts: [(&[u8], Class); 5] = [
        (b"XCTEND rlbk=", Class::Xct),
        (b"RPC EXEC:c=", Class::Rpc),
        (b"APPNAME mod='", Class::Appname),
        (b"Trace file ", Class::HeaderStart),
        (b"Dump file ", Class::HeaderStart),
    ];
    let found = starts.into_iter().find(|(start, _)| line.starts_with(start));
    found.map_or(Class::Other, |(_, class)| class)
}

/// Returns the class of a line that begins with a blank: binds and their parts.
fn indented(line: &[u8]) -> Class {
    let text = line.trim_ascii_start();
    if text.is_empty() {
        return Class::Blank;
    }
    if is_bind_head(text) {
        return Class::Bind;
    }
    let rests: [&[u8]; 8] = [
        b"oacdty=",
        b"oacflg=",
        b"kxsbbbfp=",
        b"value=",
        b"bfp=",
        b"No oacdef for this bind",
        b"toid ptr value=",
        b"oacdef = ",
    ];
    if rests.into_iter().any(|rest| text.starts_with(rest)) { Class::BindRest } else { Class::Other }
}

/// Returns true for `Bind#12` (since 10g) or `bind 12: ...` (before).
fn is_bind_head(text: &[u8]) -> bool {
    if let Some(rest) = text.strip_prefix(b"Bind#") {
        let rest = rest.trim_ascii_end();
        return !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    }
    let Some(rest) = text.strip_prefix(b"bind ") else {
        return false;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && rest.get(digits) == Some(&b':')
}

/// Returns true if a line is the end of a record whose beginning is lost: fields of a call (`dep=0,og=4,tim=12`,
/// perhaps without the last fields), or anything up to the clock of a wait or call.
pub(super) fn is_fragment(line: &[u8]) -> bool {
    const FIELDS: [&[u8]; 13] =
        [b"c", b"e", b"p", b"cr", b"cu", b"mis", b"r", b"dep", b"og", b"plh", b"tim", b"type", b"bytes"];
    let all_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let clock = memchr::memmem::rfind(line, b"tim=");
    if let Some(at) = clock.filter(|at| *at > 0 && matches!(line[at - 1], b',' | b' ')) {
        return all_digits(line[at + 4..].trim_ascii_end());
    }
    let mut fields = line.trim_ascii_end().split(|byte| *byte == b',').map(|field| {
        let equals = memchr::memchr(b'=', field)?;
        Some((&field[..equals], &field[equals + 1..]))
    });
    // The first field may have lost its beginning, the last one its end.
    let first = fields.next().flatten();
    let mut others = 0;
    first.is_some_and(|(_, value)| all_digits(value))
        && fields.all(|field| {
            others += 1;
            field.is_some_and(|(name, value)| FIELDS.contains(&name) && (value.is_empty() || all_digits(value)))
        })
        && others > 0
}

/// Returns where a second record begins inside an unreadable line: two lines were joined.
pub(super) fn second_record(line: &[u8]) -> Option<usize> {
    let by_cursor = memchr::memchr_iter(b'#', line).filter_map(|hash| {
        let head = &line[..=hash];
        let longest = KEYWORDS
            .into_iter()
            .filter(|(keyword, _)| head.ends_with(keyword) && digit_at(line, hash + 1))
            .map(|(keyword, _)| head.len() - keyword.len())
            .min()?;
        (longest > 0).then_some(longest)
    });
    let others: [&[u8]; 3] = [b"*** 20", b"XCTEND rlbk=", b"====================="];
    let by_text = others.into_iter().filter_map(|text| memchr::memmem::find(line.get(1..)?, text).map(|at| at + 1));
    let zeros = memchr::memchr(0, line).filter(|at| *at > 0);
    by_cursor.take(1).chain(by_text).chain(zeros).min()
}

/// Returns the start of the first record that follows a line end at `from` or later. Only lines that hardly occur in a
/// statement's text count; the caller must check that the record is not part of such a text.
pub(in crate::oracle_10046) fn record_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'\n', bytes.get(at..)?)? + 1;
        let rest = &bytes[at..];
        let line = &rest[..rest.len().min(32)];
        if matches!(class(line), Class::Call(..) | Class::Wait) {
            return Some(at);
        }
    }
}

/// Returns true if a line begins a record that only event 10046 writes.
pub(in crate::oracle_10046) fn is_record_line(line: &[u8]) -> bool {
    class(line).is_record() && !matches!(class(line), Class::Stamp | Class::Separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_needs_a_cursor_number() {
        assert_eq!(class(b"WAIT #1: nam='x'"), Class::Wait);
        assert_eq!(class(b"WAIT for it"), Class::Other);
        assert_eq!(class(b"WAIT #x"), Class::Other);
        assert_eq!(class(b"PARSE ERROR #1:len=3"), Class::ParseError);
        assert_eq!(class(b"PARSE #1:c=3"), Class::Call(CallKind::Parse, 7));
        assert_eq!(class(b"SORT UNMAP #1:c=3"), Class::Call(CallKind::SortUnmap, 12));
    }

    #[test]
    fn stars_are_stamps_only_when_three_and_a_blank() {
        assert_eq!(class(b"*** 2020-01-01 00:00:00.000"), Class::Stamp);
        assert_eq!(class(b"***************"), Class::Other);
        assert_eq!(class(b"  ****** trying bitmap/domain indexes ******"), Class::Other);
    }

    #[test]
    fn the_end_of_a_record_whose_beginning_is_lost_is_a_fragment() {
        for torn in
            ["dep=0,og=4,tim=77", "0,og=4,plh=3,tim=1", "ential read' ela= 4 file#=1 obj#=5 tim=9", "cu=0,mis=0,r="]
        {
            assert!(is_fragment(torn.as_bytes()), "{torn}");
        }
        for no in ["tim=5", "a=1", "x=1,y=2", "tim=x", "kkscoacd", "the time,tim=7 o'clock", "", "1,2,3"] {
            assert!(!is_fragment(no.as_bytes()), "{no}");
        }
    }

    #[test]
    fn lob_calls_of_any_name() {
        assert_eq!(class(b"LOBREAD: type=TEMPORARY LOB"), Class::Lob(7));
        assert_eq!(class(b"LOBARRTMPFRE: type=TEMPORARY LOB"), Class::Lob(12));
        assert_eq!(class(b"LOB: type=x"), Class::Other);
    }

    #[test]
    fn the_first_of_several_glued_records_is_found() {
        let line = b"FETCH #1:c=1,tim=57935WAIT #2: nam='x' ela= 1EXEC #3:c=1";
        assert_eq!(second_record(line), Some(22));
        assert_eq!(second_record(b"FETCH #1:c=0,e=1"), None);
        assert_eq!(second_record(b"X SORT UNMAP #1:c=0"), Some(2));
    }
}
