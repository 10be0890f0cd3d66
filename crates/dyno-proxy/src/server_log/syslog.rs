//! Text logs that were sent through syslog: messages in pieces, each after syslog's own prefix.
//!
//! A piece is a line of the message, or the part of a long line that fits. Each line after the first begins with a tab
//! (`#011` if syslog escapes it); the rest of a long line does not. Pieces of several sessions are interleaved. The
//! time is taken from `log_line_prefix` if it has one, otherwise from syslog's prefix.

use std::collections::HashMap;

use memchr::memchr;
use regex::bytes::{Regex, RegexBuilder};

use super::entry::{Entry, Reading, number};
use super::input::{LONGEST, Line, Lines};
use super::reason::Reason;
use super::text::{Assembler, Head};

/// Largest number of sessions with a pending message; if there are more, the oldest message is considered complete.
const SESSIONS_MOST: usize = 1000;

/// Message as read so far.
struct Message {
    line: u64,
    stamp: Vec<u8>,
    /// Number that syslog gave to the message, if it writes such numbers.
    number: Option<Vec<u8>>,
    lines: Vec<Vec<u8>>,
    size: usize,
}

/// Pattern of syslog's prefix, with the groups `stamp`, `who`, `number` and `piece`.
pub struct Pieces(Regex);

impl Pieces {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// The pattern is not valid.
    pub fn new(pattern: &str) -> Result<Self, regex::Error> {
        Ok(Self(RegexBuilder::new(&format!("^(?:{pattern})")).unicode(false).build()?))
    }
}

struct Reader<'a, F> {
    assembler: Assembler<'a>,
    /// Pattern that distinguishes a line with the server's prefix from the continuation of a long line.
    head: &'a Head,
    open: HashMap<u32, Message>,
    on: F,
}

/// Reads a log from syslog.
pub fn read(
    lines: &mut Lines,
    pieces: &Pieces,
    head: &Head,
    reading: &mut Reading,
    on: impl FnMut(Entry, &mut Reading),
) {
    let mut reader = Reader { assembler: Assembler::new(head), head, open: HashMap::new(), on };
    while let Some(Line { bytes, number: line, is_whole }) = lines.next_line() {
        let Some(found) = pieces.0.captures(bytes) else { continue };
        let group = |name: &str| found.name(name).map(|found| found.as_bytes());
        let pid = group("who")
            .and_then(|who| who.rsplit(|byte| *byte == b'[').next())
            .map_or(0, |text| number(text.strip_suffix(b"]").unwrap_or(text)));
        let words = unescaped(&bytes[found.get(0).map_or(0, |whole| whole.end())..]);
        if !is_whole {
            reader.open.remove(&pid);
            reading.skip(Reason::Cut, line);
            continue;
        }
        let (stamp, piece) = (group("stamp").unwrap_or_default(), group("piece"));
        if reader.begins(pid, group("number"), piece, &words) {
            if let Some(known) = reader.open.remove(&pid) {
                reader.ended(pid, &known, reading);
            } else if reader.open.len() >= SESSIONS_MOST
                && let Some(oldest) = reader.open.iter().min_by_key(|(_, known)| known.line).map(|(pid, _)| *pid)
                && let Some(known) = reader.open.remove(&oldest)
            {
                reader.ended(oldest, &known, reading);
            }
            let message = Message {
                line,
                stamp: stamp.to_vec(),
                number: group("number").map(<[u8]>::to_vec),
                size: words.len(),
                lines: vec![words],
            };
            reader.open.insert(pid, message);
        } else {
            reader.add(pid, words);
        }
    }
    let mut left: Vec<_> = std::mem::take(&mut reader.open).into_iter().collect();
    left.sort_by_key(|(_, known)| known.line);
    for (pid, known) in left {
        reader.ended(pid, &known, reading);
    }
    if lines.broken.is_some() {
        reading.skip(Reason::Cut, 0);
    }
}

impl<F: FnMut(Entry, &mut Reading)> Reader<'_, F> {
    /// Returns true if a piece is the first one of a message.
    fn begins(&self, pid: u32, number: Option<&[u8]>, piece: Option<&[u8]>, words: &[u8]) -> bool {
        let Some(known) = self.open.get(&pid) else { return true };
        if number.is_some() || known.number.is_some() {
            return number != known.number.as_deref() || piece == Some(b"1");
        }
        !words.starts_with(b"\t") && self.head.begins_entry(words)
    }

    fn add(&mut self, pid: u32, words: Vec<u8>) {
        let Some(known) = self.open.get_mut(&pid) else { return };
        known.size += words.len();
        if known.size > LONGEST {
            return;
        }
        match known.lines.last_mut() {
            Some(last) if !words.starts_with(b"\t") && !self.head.matches(&words) => last.extend_from_slice(&words),
            _ => known.lines.push(words),
        }
    }

    fn ended(&mut self, pid: u32, known: &Message, reading: &mut Reading) {
        if known.size > LONGEST {
            reading.skip(Reason::TooLong, known.line);
            return;
        }
        let year = reading.year;
        let at_ns = if self.head.has_time {
            Some(0)
        } else if known.stamp.first().is_some_and(u8::is_ascii_digit) {
            reading.clock.read(&known.stamp)
        } else {
            reading.clock.read_month(&known.stamp, year)
        };
        let Some(at_ns) = at_ns else {
            reading.skip(Reason::NoTime, known.line);
            return;
        };
        for line in &known.lines {
            let ended = self.assembler.line(line, known.line, Some((at_ns, pid)), reading);
            if let Some(entry) = ended {
                (self.on)(entry, reading);
            }
        }
        if let Some(entry) = self.assembler.end(reading) {
            (self.on)(entry, reading);
        }
    }
}

/// Returns a piece's text with syslog's escapes replaced by the control characters.
fn unescaped(words: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(words.len());
    let mut rest = words;
    while let Some(at) = memchr(b'#', rest) {
        out.extend_from_slice(&rest[..at]);
        if let [_, b'0', tens @ b'0'..=b'3', ones @ b'0'..=b'7', ..] = rest[at..] {
            out.push((tens - b'0') * 8 + ones - b'0');
            rest = &rest[at + 4..];
        } else {
            out.push(b'#');
            rest = &rest[at + 1..];
        }
    }
    out.extend_from_slice(rest);
    out
}
