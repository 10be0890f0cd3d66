//! Counts of a file: records, and stretches that could not be read.

use std::collections::BTreeMap;

use super::record::{Batch, Reason, Record};

/// Names of the counters, by number.
pub const COUNTED: [&str; 12] = [
    "call",
    "wait",
    "cursor",
    "stat",
    "binds",
    "bind",
    "error",
    "parse error",
    "transaction",
    "stamp",
    "header",
    "other",
];

/// Longest sample of an unreadable stretch [bytes].
const SAMPLE_MAX: usize = 120;

/// Unreadable stretches with the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Number of stretches.
    pub count: u64,
    /// Line number of the first stretch.
    pub line: i64,
    /// Byte offset of the first stretch.
    pub byte_offset: i64,
    /// Beginning of the first stretch.
    pub sample: String,
}

/// Counts of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Size of the uncompressed text [bytes].
    pub bytes: u64,
    /// Number of lines.
    pub lines: u64,
    /// Records by the number of their counter in [`COUNTED`].
    pub records: [u64; COUNTED.len()],
    /// Number of waits with a time.
    pub timed_waits: u64,
    /// Number of lines that look like waits and could not be read.
    pub torn_waits: u64,
    /// Unreadable stretches by reason.
    pub missed: BTreeMap<Reason, Missed>,
}

/// Returns the number of a record's counter.
#[inline]
pub fn counter_of(record: &Record) -> usize {
    match record {
        Record::Call(_) => 0,
        Record::Wait(_) => 1,
        Record::Cursor(_) => 2,
        Record::Stat(_) => 3,
        Record::Binds { .. } => 4,
        Record::Bind(_) => 5,
        Record::Error(_) => 6,
        Record::ParseError(_) => 7,
        Record::Xct(_) => 8,
        Record::Stamp(_) => 9,
        Record::Header(_) => 10,
        Record::Other(_) => 11,
    }
}

/// Returns the word that names a reason.
pub fn word_of(reason: Reason) -> &'static str {
    match reason {
        Reason::Torn => "torn record",
        Reason::Glued => "two records on one line",
        Reason::Truncated => "the file ends inside a record",
        Reason::NoEndOfStatement => "no END OF STMT",
        Reason::TooLarge => "a number that does not fit",
        Reason::TooLong => "a line that is too long",
        Reason::Zeros => "NUL bytes",
    }
}

/// Returns the beginning of a stretch as text; invalid UTF-8 is replaced.
pub fn sample_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(SAMPLE_MAX)]).into_owned()
}

impl Tally {
    /// Adds the bytes, lines and unread stretches of a batch; its records are counted separately.
    pub fn batch(&mut self, batch: &Batch) {
        self.bytes += batch.bytes.len() as u64;
        self.lines += u64::from(batch.lines);
        for unread in &batch.unread {
            let text = batch.bytes_of(unread.text);
            self.torn_waits += u64::from(text.starts_with(b"WAIT "));
            let missed = self.missed.entry(unread.reason).or_insert_with(|| Missed {
                count: 0,
                line: batch.line as i64 + i64::from(unread.line),
                byte_offset: batch.offset as i64 + i64::from(unread.at),
                sample: sample_of(text),
            });
            missed.count += 1;
        }
    }

    /// Returns the number of records of a kind.
    pub fn count(&self, name: &str) -> u64 {
        COUNTED.iter().position(|known| *known == name).map_or(0, |at| self.records[at])
    }

    /// Returns the trace level as the records show it: binds (4), waits (8) or both (12), else 1; no line of a trace
    /// states it.
    pub fn level(&self) -> u8 {
        let level =
            if self.count("binds") > 0 { 4 } else { 0 } + if self.count("wait") + self.torn_waits > 0 { 8 } else { 0 };
        if level == 0 { 1 } else { level }
    }

    /// Returns true if there are waits and none has a time: the format is then not the assumed one.
    pub fn lost_all_waits(&self) -> bool {
        self.timed_waits == 0 && self.count("wait") + self.torn_waits > 0
    }
}
