//! Text logs: entries assembled from lines, each with the server's `log_line_prefix` before its severity.
//!
//! ```text
//! 2026-11-21 00:59:57.437 UTC [28] LOG:  execute <unnamed>: select *
//!         from t where a = $1
//! 2026-11-21 00:59:57.437 UTC [28] DETAIL:  parameters: $1 = '5'
//! ```
//!
//! The lines of an entry after its first begin with a tab; its DETAIL and STATEMENT follow with prefixes of their own.
//! The pattern that matches the prefix is made elsewhere, from the setting or from the log itself.

use regex::bytes::{CaptureLocations, Regex, RegexBuilder};

use super::entry::{Entry, Reading, Severity, number, pid_of, start_of, state};
use super::input::{LONGEST, Line, Lines};
use super::reason::Reason;

/// Number of bytes at the beginning of a line within which its prefix ends.
const PREFIX_MOST: usize = 500;

/// Groups of the pattern: times (`m`, `t`, `n`, `s`), process, session, SQLSTATE, user, database, application, backend.
const GROUPS: [&str; 11] = ["m", "t", "n", "s", "p", "c", "e", "u", "d", "a", "b"];

/// Beginning of a line: prefix, and severity or label.
pub struct Head {
    regex: Regex,
    places: [Option<usize>; GROUPS.len()],
    word: usize,
    details: Vec<Vec<u8>>,
    /// True if the prefix has a time.
    pub has_time: bool,
}

impl Head {
    /// Compiles the pattern of a prefix; `details` are the words for DETAIL.
    ///
    /// # Errors
    /// The pattern is not valid.
    pub fn new(prefix: &str, details: &[String]) -> Result<Self, regex::Error> {
        let pattern = format!(r"^(?:{prefix})(?P<word>[A-Z\x80-\xff]{{2,60}}[1-5]?) ?:  ");
        let regex = RegexBuilder::new(&pattern).unicode(false).build()?;
        let place = |name: &str| regex.capture_names().position(|one| one == Some(name));
        let places = GROUPS.map(place);
        let word = place("word").unwrap_or(0);
        let details = details.iter().map(|word| word.clone().into_bytes()).collect();
        let has_time = places[..3].iter().any(Option::is_some);
        Ok(Self { regex, places, word, details, has_time })
    }

    /// Returns true for a line with the prefix, and a severity or label after it.
    pub fn matches(&self, line: &[u8]) -> bool {
        self.regex.is_match(&line[..line.len().min(PREFIX_MOST)])
    }

    /// Returns true for a line that begins an entry.
    pub fn begins_entry(&self, line: &[u8]) -> bool {
        let found = self.regex.captures(&line[..line.len().min(PREFIX_MOST)]);
        let word = found.as_ref().and_then(|found| found.name("word")).map(|word| word.as_bytes());
        word.is_some_and(|word| self.label(word).is_none())
    }

    /// Returns the part of an entry that a label begins; `None` for a severity.
    fn label(&self, word: &[u8]) -> Option<Part> {
        Some(match word {
            b"STATEMENT" => Part::Statement,
            b"CONTEXT" => Part::Context,
            b"HINT" | b"QUERY" | b"LOCATION" | b"BACKTRACE" => Part::Ignored,
            _ if self.details.iter().any(|detail| detail == word) => Part::Detail,
            _ => return None,
        })
    }

    fn group<'a>(&self, found: &CaptureLocations, line: &'a [u8], name: usize) -> &'a [u8] {
        self.places[name].and_then(|place| found.get(place)).map_or(b"", |(from, to)| &line[from..to])
    }
}

/// Part of an entry that following lines with a tab continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Statement,
    Context,
    Ignored,
}

/// Builder of entries from lines.
pub struct Assembler<'a> {
    head: &'a Head,
    found: CaptureLocations,
    open: Option<Entry>,
    part: Part,
}

impl<'a> Assembler<'a> {
    /// Returns a builder without an open entry.
    pub fn new(head: &'a Head) -> Self {
        Self { head, found: head.regex.capture_locations(), open: None, part: Part::Ignored }
    }

    /// Adds a line; returns the entry that it completes.
    ///
    /// `known` has the time and the process of a line whose prefix has neither.
    pub fn line(
        &mut self,
        line: &[u8],
        number: u64,
        known: Option<(u64, u32)>,
        reading: &mut Reading,
    ) -> Option<Entry> {
        if let Some(rest) = line.strip_prefix(b"\t") {
            self.extend(b"\n", rest);
            return None;
        }
        let start = &line[..line.len().min(PREFIX_MOST)];
        let Some(whole) = self.head.regex.captures_read(&mut self.found, start) else {
            if known.is_none() && !line.is_empty() {
                reading.skip(Reason::NoPrefix, number);
            }
            self.part = Part::Ignored;
            return None;
        };
        let rest = &line[whole.end()..];
        let (from, to) = self.found.get(self.head.word).unwrap_or_default();
        let word = &line[from..to];
        if self.follows(word, line) {
            self.extend(b"", rest);
            return None;
        }
        reading.entries += 1;
        let ended = self.end(reading);
        self.part = Part::Message;
        match self.begun(word, line, number, known, reading) {
            Some(entry) => self.open = Some(Entry { message: rest.to_vec(), ..entry }),
            None => reading.skip(Reason::NoTime, number),
        }
        ended
    }

    /// Returns true for a line that continues the previous entry, and records which part it continues.
    fn follows(&mut self, word: &[u8], line: &[u8]) -> bool {
        let Some(part) = self.head.label(word) else { return false };
        let pid = self.head.group(&self.found, line, 4);
        let is_same = self.open.as_ref().is_some_and(|open| pid.is_empty() || number(pid) == open.pid);
        self.part = if is_same { part } else { Part::Ignored };
        true
    }

    fn begun(
        &self,
        word: &[u8],
        line: &[u8],
        line_number: u64,
        known: Option<(u64, u32)>,
        reading: &mut Reading,
    ) -> Option<Entry> {
        let group = |name| self.head.group(&self.found, line, name);
        let stamp = [0, 1, 2].map(group).into_iter().find(|stamp| !stamp.is_empty());
        let at_ns = match stamp {
            Some(stamp) => reading.clock.read(stamp)?,
            None => known?.0,
        };
        let session = group(5);
        let pid = match (group(4), known) {
            (b"", Some((_, pid))) => pid,
            (b"", None) => pid_of(session).unwrap_or(0),
            (pid, _) => number(pid),
        };
        let mut start = start_of(session);
        if start == 0 && !group(3).is_empty() {
            start = reading.clock.read(group(3)).unwrap_or(0);
        }
        let who = reading.who(group(7), group(8), group(9));
        let is_client = matches!(group(10), b"" | b"client backend" | b"postmaster");
        let severity = if is_client { Severity::of(word) } else { Severity::Other };
        Some(Entry { at_ns, line: line_number, pid, start, who, severity, state: state(group(6)), ..Entry::default() })
    }

    fn extend(&mut self, between: &[u8], more: &[u8]) {
        let Some(open) = &mut self.open else { return };
        let part = match self.part {
            Part::Message => &mut open.message,
            Part::Detail => &mut open.detail,
            Part::Statement => &mut open.statement,
            Part::Context => &mut open.context,
            Part::Ignored => return,
        };
        // One byte too many tells that it was too long.
        if part.len() <= LONGEST {
            part.extend_from_slice(between);
            part.extend_from_slice(more);
        }
    }

    /// Ends the open entry, and returns it if it can be used.
    pub fn end(&mut self, reading: &mut Reading) -> Option<Entry> {
        let entry = self.open.take()?;
        if [&entry.message, &entry.detail, &entry.statement, &entry.context].iter().any(|part| part.len() > LONGEST) {
            reading.skip(Reason::TooLong, entry.line);
            return None;
        }
        Some(entry)
    }

    /// Drops the open entry, because the log is truncated within it.
    pub fn cut(&mut self, number: u64, reading: &mut Reading) {
        let line = self.open.take().map_or(number, |entry| entry.line);
        reading.skip(Reason::Cut, line);
    }
}

/// Reads a text log as `PostgreSQL` writes it.
pub fn read(lines: &mut Lines, head: &Head, reading: &mut Reading, mut on: impl FnMut(Entry, &mut Reading)) {
    let mut assembler = Assembler::new(head);
    let mut is_whole = true;
    let mut last = 0;
    while let Some(Line { bytes, number, is_whole: whole }) = lines.next_line() {
        (is_whole, last) = (whole, number);
        if let Some(entry) = assembler.line(bytes, number, None, reading) {
            on(entry, reading);
        }
    }
    if !is_whole || lines.broken.is_some() {
        assembler.cut(last, reading);
    } else if let Some(entry) = assembler.end(reading) {
        on(entry, reading);
    }
}
