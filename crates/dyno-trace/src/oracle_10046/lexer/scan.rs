//! Main loop over a batch: finds the class of each line, calls its parser, and handles lines that cannot be read.

use super::calls::Careful;
use super::classes::{Class, class, is_fragment, second_record};
use super::fields::Faults;
use super::names::NameMemo;
use super::numbers::Memo;
use super::state::{Carry, State};
use super::texts::End;
use super::{Options, binds, calls, heads, singles, stamps, texts, waits};
use crate::oracle_10046::record::{Batch, Cursor, Placed, Reason, Record, Stamp, StampKind, Text, Unread};

/// Lexes `batch.bytes` until `until` is reached or passed, or until a record needs more bytes than there are (if
/// `last`, no more will follow). Returns the position reached, and leaves the number of lines in `batch.lines`.
pub(in crate::oracle_10046) fn scan(
    options: Options,
    state: &mut State,
    batch: &mut Batch,
    until: usize,
    last: bool,
) -> usize {
    let mut scan = Scan {
        bytes: &batch.bytes,
        at: 0,
        until,
        line: 0,
        last,
        options,
        state,
        memo: Memo::default(),
        names: NameMemo::default(),
        numbered: &mut batch.names,
        records: &mut batch.records,
        unread: &mut batch.unread,
    };
    dyno_cpu::run(&mut scan);
    let (end, lines, carry) = (scan.at, scan.line, scan.state.carry);
    // The last line counts also without its end, whose bytes an earlier batch may have taken.
    let torn_end = match end.checked_sub(1) {
        Some(before) => batch.bytes[before] != b'\n',
        None => carry != Carry::Nothing,
    } && last;
    batch.lines = lines + u32::from(torn_end);
    end
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    until: usize,
    line: u32,
    last: bool,
    options: Options,
    state: &'a mut State,
    memo: Memo,
    names: NameMemo,
    numbered: &'a mut u32,
    records: &'a mut Vec<Placed>,
    unread: &'a mut Vec<Unread>,
}

impl dyno_cpu::Work for &mut Scan<'_> {
    type Done = ();

    #[inline(always)]
    fn run(self) {
        if self.state.carry == Carry::LongLine && !self.skip_line() {
            return;
        }
        while self.at < self.bytes.len() && self.at < self.until {
            let rest = &self.bytes[self.at..];
            if !self.options.careful && self.quick(rest) {
                continue;
            }
            if self.slow() == Step::More {
                break;
            }
        }
    }
}

/// A line: its start, its end without the line end, and the start of the next one.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
}

/// Next step of the loop: go on, or wait for more bytes.
#[derive(PartialEq)]
enum Step {
    On,
    More,
}

impl Scan<'_> {
    /// Reads a line on the fast path; returns false if it is not as expected. Its end is found first, so that the
    /// processor can begin with the next line in parallel.
    #[inline(always)]
    fn quick(&mut self, rest: &[u8]) -> bool {
        if !matches!(rest[0], b'W' | b'F' | b'E' | b'P' | b'C' | b'S') {
            return rest[0] == b' ' && self.pass_binds(rest);
        }
        if rest[0] == b'W' {
            let found = waits::quick(rest, self.at, &mut self.memo, &mut self.names, self.numbered);
            return found.is_some_and(|(wait, stop)| self.took(Record::Wait(wait), stop));
        }
        if rest[0] == b'S' {
            let Some(stop) = memchr::memchr(b'\n', rest) else { return false };
            let stat = heads::stat(rest, stop, self.at, &mut self.memo);
            return stat.is_some_and(|stat| self.took(Record::Stat(stat), stop));
        }
        let found = calls::quick(rest, &mut self.memo);
        found.is_some_and(|(call, stop)| self.took(Record::Call(call), stop))
    }

    /// Stores the record of the current line, `stop` bytes long, and moves to the next line; returns false if the line
    /// is too long.
    #[inline(always)]
    fn took(&mut self, record: Record, stop: usize) -> bool {
        if stop >= self.options.cap {
            return false;
        }
        self.records.push(Placed { at: self.at as u32, line: self.line, record });
        self.state.header = false;
        self.state.carry = Carry::Nothing;
        self.at += stop + 1;
        self.line += 1;
        true
    }

    /// Skips unwanted binds; returns true if any were skipped.
    fn pass_binds(&mut self, rest: &[u8]) -> bool {
        if self.options.binds {
            return false;
        }
        let Some((bytes, lines)) = heads::pass_binds(rest, self.options.cap) else { return false };
        self.state.header = false;
        self.state.carry = Carry::Nothing;
        self.at += bytes;
        self.line += lines;
        true
    }

    fn slow(&mut self) -> Step {
        if self.bytes[self.at] == 0 {
            self.zeros();
            return Step::On;
        }
        self.state.carry = Carry::Nothing;
        let Some(line) = self.line() else {
            return self.no_line_end();
        };
        self.read(line)
    }

    /// Returns the bytes that a record beginning here may use, and true if no more bytes can follow.
    fn window(&self) -> (&[u8], bool) {
        let most = self.at.saturating_add(self.options.cap);
        if most <= self.bytes.len() { (&self.bytes[..most], true) } else { (self.bytes, self.last) }
    }

    /// Returns the line that begins here, if its end is known.
    fn line(&self) -> Option<Line> {
        let (bytes, _) = self.window();
        let start = self.at;
        let (mut end, next) = match memchr::memchr(b'\n', &bytes[start..]) {
            Some(found) => (start + found, start + found + 1),
            None if self.last && bytes.len() - start < self.options.cap => (bytes.len(), bytes.len()),
            None => return None,
        };
        while end > start && bytes[end - 1] == b'\r' {
            end -= 1;
        }
        Some(Line { start, end, next })
    }

    /// Handles a line without an end so far: waits for more, or skips the line.
    fn no_line_end(&mut self) -> Step {
        let (bytes, closed) = self.window();
        if !closed {
            return Step::More;
        }
        let (start, most) = (self.at, bytes.len());
        let zeros = memchr::memchr(0, &bytes[start..]).map_or(most, |found| start + found);
        self.count(Reason::TooLong, start, zeros);
        self.at = zeros;
        if zeros == most {
            self.state.carry = Carry::LongLine;
            self.skip_line();
        }
        Step::On
    }

    /// Skips the rest of a line that was too long; returns true if its end was found.
    fn skip_line(&mut self) -> bool {
        if let Some(found) = memchr::memchr(b'\n', &self.bytes[self.at..]) {
            self.at += found + 1;
            self.line += 1;
            self.state.carry = Carry::Nothing;
            return true;
        }
        self.at = self.bytes.len();
        false
    }

    /// Skips a run of NULs.
    fn zeros(&mut self) {
        let start = self.at;
        let count = self.bytes[start..].iter().take_while(|byte| **byte == 0).count();
        if self.state.carry != Carry::Zeros {
            // How long the run is may show only in later batches: the sample is its first byte.
            self.count(Reason::Zeros, start, start + 1);
        }
        self.state.carry = Carry::Zeros;
        self.at += count;
    }

    /// Counts an unreadable stretch; the beginning of a long one is kept as the sample.
    fn count(&mut self, reason: Reason, start: usize, end: usize) {
        let text = text(start, end.min(start + 256));
        self.unread.push(Unread { reason, at: start as u32, line: self.line, text });
    }

    fn push(&mut self, at: usize, record: Record) {
        self.records.push(Placed { at: at as u32, line: self.line, record });
    }

    /// Reads the line and all lines that belong to it.
    fn read(&mut self, line: Line) -> Step {
        let bytes = &self.bytes[line.start..line.end];
        let class = class(bytes);
        let whole = bytes.trim_ascii_end();
        let at = line.start;
        match class {
            Class::Call(kind, digits) => {
                self.single(line, calls::careful(whole, kind, digits), Record::Call);
            }
            Class::Wait => self.single(line, waits::careful(whole, at), Record::Wait),
            Class::Stat => self.single(line, singles::stat(whole, at), Record::Stat),
            Class::Error => self.single(line, singles::error(whole), Record::Error),
            Class::Xct => self.single(line, singles::xct(whole), Record::Xct),
            Class::Lob(letters) => self.single(line, calls::lob(whole, letters, at), Record::Call),
            Class::Rpc => self.single(line, calls::rpc(whole), Record::Call),
            Class::Binds => {
                self.single(line, singles::binds(whole), |cursor| Record::Binds { cursor });
            }
            Class::Cursor => {
                let quick = (!self.options.careful).then(|| heads::cursor(whole, at)).flatten();
                let found = match quick {
                    Some(cursor) => (Some(cursor), Faults::default()),
                    None => singles::cursor(whole, at, false),
                };
                return self.cursor(line, found, false);
            }
            Class::ParseError => return self.cursor(line, singles::cursor(whole, at, true), true),
            Class::Bind | Class::BindRest => return self.bind(),
            Class::Stamp => {
                self.state.header = false;
                self.push(at, Record::Stamp(stamps::stamp(whole, at)));
                self.pass(line);
            }
            Class::Appname => {
                self.state.header = false;
                self.push(at, Record::Stamp(appname(at, at + whole.len())));
                self.pass(line);
            }
            Class::Separator | Class::Blank => self.pass(line),
            Class::Other if is_fragment(whole) => {
                self.single(line, (None, Faults(Some(Reason::Torn))), Record::Call);
            }
            Class::HeaderStart | Class::Other => {
                self.state.header |= class == Class::HeaderStart;
                let text = text(at, line.end);
                let header = self.state.header;
                self.push(at, if header { Record::Header(text) } else { Record::Other(text) });
                self.pass(line);
            }
        }
        Step::On
    }

    /// Moves past the line.
    fn pass(&mut self, line: Line) {
        self.line += u32::from(line.next > line.end && self.bytes[line.next - 1] == b'\n');
        self.at = line.next;
    }

    /// Handles a record of one line. A torn record may have another record joined to it: the line is then split there,
    /// and its second part is read as a separate line.
    fn single<T>(&mut self, line: Line, found: Careful<T>, make: impl Fn(T) -> Record) {
        self.state.header = false;
        let (record, Faults(fault)) = found;
        let Some(reason) = fault else {
            if let Some(record) = record {
                self.push(line.start, make(record));
            }
            self.pass(line);
            return;
        };
        if let Some(second) = second_record(&self.bytes[line.start..line.end]) {
            self.glued(line, line.start + second);
            return;
        }
        if let Some(record) = record {
            self.push(line.start, make(record));
        }
        self.count(self.reason(reason, line), line.start, line.end);
        self.pass(line);
    }

    /// Returns the reason to report; a torn record on a last line without a line end means that the file is cut off.
    fn reason(&self, reason: Reason, line: Line) -> Reason {
        let cut = reason == Reason::Torn && line.next == self.bytes.len() && line.end == line.next;
        if cut { Reason::Truncated } else { reason }
    }

    /// Reads the first record of a line that holds two; the second begins at `second`.
    fn glued(&mut self, line: Line, second: usize) {
        if self.bytes[second] != 0 {
            // The second part may come out in a later batch: the sample is the first.
            self.count(Reason::Glued, line.start, second);
        }
        self.read(Line { start: line.start, end: second, next: second });
    }

    /// Reads PARSING IN CURSOR or PARSE ERROR and the text after it.
    fn cursor(&mut self, line: Line, found: Careful<Cursor>, parse_error: bool) -> Step {
        let (cursor, Faults(fault)) = found;
        if fault.is_some()
            && let Some(second) = second_record(&self.bytes[line.start..line.end])
        {
            self.state.header = false;
            self.glued(line, line.start + second);
            return Step::On;
        }
        // A head that was cut by another record, or by the end of the file, has no text.
        let headless = line.end == line.next;
        let len = cursor.map_or(-1, |cursor| cursor.len);
        let crlf = self.bytes.get(line.end) == Some(&b'\r');
        let (bytes, closed) = self.window();
        let end = match (headless, parse_error) {
            (true, _) => End::Lost { next: line.next },
            (_, true) => texts::parse_error(bytes, line.next, len, crlf, closed),
            (_, false) => texts::statement(bytes, line.next, len, crlf, closed),
        };
        let (sql, next) = match end {
            End::More => return Step::More,
            End::Found { text: end, next } => (text(line.next, end), next),
            End::Lost { next } => (self.lost_text(line, next), next),
        };
        self.state.header = false;
        if let Some(reason) = fault {
            self.count(self.reason(reason, line), line.start, line.end);
        }
        if end == (End::Lost { next }) {
            let reason = match next {
                _ if next == line.start + self.options.cap && !headless => Reason::TooLong,
                _ if next == self.bytes.len() && self.last => Reason::Truncated,
                _ => Reason::NoEndOfStatement,
            };
            self.count(reason, line.start, line.end);
        }
        if let Some(cursor) = cursor {
            let cursor = Cursor { sql, ..cursor };
            let record = if parse_error { Record::ParseError(cursor) } else { Record::Cursor(cursor) };
            self.push(line.start, record);
        }
        self.line += memchr::memchr_iter(b'\n', &self.bytes[line.start..next]).count() as u32;
        self.at = next;
        Step::On
    }

    /// Returns a text whose end marker is missing: everything before `next`, without line ends at the end.
    fn lost_text(&self, line: Line, next: usize) -> Text {
        let mut end = next;
        while end > line.next && matches!(self.bytes[end - 1], b'\n' | b'\r') {
            end -= 1;
        }
        text(line.next, end.max(line.next))
    }

    /// Reads a bind, or the rest of an interrupted bind.
    fn bind(&mut self) -> Step {
        let (bytes, closed) = self.window();
        let mut faults = Faults::default();
        let found = binds::bind(bytes, self.at, closed, self.options.binds, &mut faults);
        let Some(found) = found else { return Step::More };
        self.state.header = false;
        if let Some(bind) = found.bind {
            self.push(self.at, Record::Bind(bind));
        }
        if let Some(reason) = faults.0 {
            self.count(reason, self.at, self.at);
        }
        self.at = found.next;
        self.line += found.lines;
        Step::On
    }
}

fn text(start: usize, end: usize) -> Text {
    Text { start: start as u32, len: (end - start) as u32 }
}

fn appname(start: usize, end: usize) -> Stamp {
    Stamp {
        kind: StampKind::Appname,
        value: text(start, end),
        wall_ns: crate::oracle_10046::record::NONE,
        zone: crate::oracle_10046::record::NONE,
        digits: 0,
        container: Text::default(),
    }
}
