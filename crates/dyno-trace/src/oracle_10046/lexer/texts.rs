//! Texts of several lines: the statement after PARSING IN CURSOR, and the one after PARSE ERROR.
//!
//! A text may contain any line, even one that looks like a record or like its own end. The length in the head is tried
//! first, and is nearly always right; then the length less one (a NUL was counted); then, in files with CR LF, the
//! length without the CRs; the last resort is a scan for the end.

use super::classes::class;

/// Number of END OF STMT lines that are checked against the length in a file with CR LF.
const TRIES: usize = 16;
/// Distance after a line that looks like a record within which a file with CR LF is searched for the end of the text
/// [bytes].
const PATIENCE: usize = 64 * 1024;

/// End of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The text ends at `text`; the next record begins at `next`.
    Found { text: usize, next: usize },
    /// The text has no end: another record begins at `next`, or the file ends there.
    Lost { next: usize },
    /// More bytes are needed.
    More,
}

/// Iterator over the lines of `bytes` from `at` on: the line's start, its end without the line end, and the start of
/// the next line. A last line without a line end is returned only if `closed`, which means that no more bytes can
/// follow.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    closed: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, closed: bool) -> Self {
        Lines { bytes, at, closed }
    }
}

impl Iterator for Lines<'_> {
    type Item = (usize, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let (end, next) = match memchr::memchr(b'\n', rest) {
            Some(found) => (start + found, start + found + 1),
            None if self.closed => (self.bytes.len(), self.bytes.len()),
            None => return None,
        };
        self.at = next;
        let end = if end > start && self.bytes[end - 1] == b'\r' { end - 1 } else { end };
        Some((start, end, next))
    }
}

/// Returns the position after the line END OF STMT that begins at `at`, or `None` if no such line begins there.
fn marker(bytes: &[u8], at: usize, closed: bool) -> Option<usize> {
    let rest = bytes.get(at..)?.strip_prefix(b"END OF STMT")?;
    match rest {
        [b'\n', ..] => Some(at + 12),
        [b'\r', b'\n', ..] => Some(at + 13),
        [] | [b'\r'] if closed => Some(bytes.len()),
        _ => None,
    }
}

/// Returns the end of a statement's text that begins at `start` and should have `len` bytes. `crlf`: the file's lines
/// end in CR LF.
pub(super) fn statement(bytes: &[u8], start: usize, len: i64, crlf: bool, closed: bool) -> End {
    let guess = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    if let Some(guess) = guess {
        if !closed && guess.saturating_add(16) > bytes.len() {
            return End::More;
        }
        for text in [guess, guess.saturating_sub(1)] {
            let next = match bytes.get(text..) {
                Some([b'\n', ..]) => text + 1,
                Some([b'\r', b'\n', ..]) => text + 2,
                _ => continue,
            };
            if text >= start
                && let Some(next) = marker(bytes, next, closed)
            {
                return End::Found { text, next };
            }
        }
    }
    scan(bytes, start, len, crlf, closed)
}

/// Returns the end at the first line END OF STMT; in files with CR LF, at the first such line that fits the length
/// without CRs.
fn scan(bytes: &[u8], start: usize, len: i64, crlf: bool, closed: bool) -> End {
    let len = len.max(-1);
    let mut first = None;
    let mut record = None;
    let mut tries = 0;
    let mut bare = 0;
    let mut lines = Lines::new(bytes, start, closed);
    let mut text_end = start;
    for (at, end, next) in &mut lines {
        let line = &bytes[at..end];
        if line == b"END OF STMT" {
            // Without its last line end the text is one shorter.
            let fits = bare - 1 == len || bare - 1 == len - 1;
            if record.is_none() && (!crlf || fits || bare > len) {
                let (text, next) = first.filter(|_| !fits).unwrap_or((text_end, next));
                return End::Found { text, next };
            }
            if fits {
                return End::Found { text: text_end, next };
            }
            if record.is_none() {
                first.get_or_insert((text_end, next));
            }
            tries += 1;
        } else if record.is_none() && class(line).is_record() {
            record = Some(at);
        }
        if let Some(record) = record {
            let hopeless = !crlf || bare > len || tries >= TRIES || next - record > PATIENCE;
            if hopeless {
                return first.map_or(End::Lost { next: record }, |(text, next)| End::Found { text, next });
            }
        } else if tries >= TRIES {
            break;
        }
        bare += (end - at) as i64 + 1;
        text_end = end;
    }
    match (first, record) {
        _ if !closed && tries < TRIES => End::More,
        (Some((text, next)), _) => End::Found { text, next },
        (None, Some(record)) => End::Lost { next: record },
        (None, None) => End::Lost { next: bytes.len() },
    }
}

/// Returns the end of the text after PARSE ERROR, which has no marker: `len` bytes, or one less, if the line ends
/// there; otherwise all lines up to the next record.
pub(super) fn parse_error(bytes: &[u8], start: usize, len: i64, crlf: bool, closed: bool) -> End {
    let guess = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    if let Some(guess) = guess.filter(|_| !crlf) {
        if !closed && guess.saturating_add(2) > bytes.len() {
            return End::More;
        }
        for text in [guess, guess.saturating_sub(1)] {
            if text >= start && bytes.get(text) == Some(&b'\n') {
                return End::Found { text, next: text + 1 };
            }
            if text >= start && closed && text == bytes.len() {
                return End::Found { text, next: text };
            }
        }
    }
    let mut bare = 0;
    let mut text = start;
    let mut after = start;
    for (at, end, next) in Lines::new(bytes, start, closed) {
        let line = &bytes[at..end];
        if class(line).is_record() {
            return End::Found { text, next: at };
        }
        bare += (end - at) as i64 + 1;
        text = end;
        after = next;
        if crlf && (bare - 1 == len || bare == len) {
            return End::Found { text, next };
        }
    }
    if closed { End::Found { text, next: after } } else { End::More }
}
