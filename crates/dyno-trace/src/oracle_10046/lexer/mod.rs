//! Bytes to records. A [`Lexer`] is fed a file chunk by chunk and gives a [`Batch`] for each chunk
//! with the records that are whole by then; the rest waits for the next chunk. The records are the
//! same however the file is cut.
//!
//! ```
//! use dyno_trace::oracle_10046::lexer::{Lexer, Options};
//! use dyno_trace::oracle_10046::record::{Batch, Record};
//!
//! let mut lexer = Lexer::new(Options::default());
//! let first = lexer.push(b"XCTEND rlbk=0, rd_o", Batch::default());
//! assert!(first.records.is_empty());
//! let second = lexer.push(b"nly=1, tim=5\n", Batch::default());
//! assert!(matches!(second.records[0].record, Record::Xct(xct) if xct.tim == 5));
//! let last = lexer.finish(Batch::default());
//! assert!(last.records.is_empty() && last.unread.is_empty());
//! ```
//!
//! Lines are read the quick way first, which expects the fields where every known version writes
//! them, and the careful way where that fails: by name, with salvage and an account of what was
//! wrong. A line that is no record is [`Record::Other`](super::record::Record::Other); none stops a
//! read.
//!
//! Limits: a line or a text is held in memory up to [`Options::cap`] bytes; what is longer is
//! counted and skipped.

// The quick way through a line is one piece for the processor: calls between its parts cost a
// third.
#![allow(clippy::inline_always)]

mod binds;
mod calls;
mod classes;
mod fields;
mod heads;
mod names;
mod numbers;
mod scan;
mod singles;
mod stamps;
mod state;
mod texts;
mod waits;

pub(super) use classes::{is_record_line, record_start};
pub(super) use numbers::bits;
pub(super) use scan::scan;
pub(super) use state::State;

use super::record::Batch;
/// Bytes from which on a record that is not whole is looked at less often.
const LARGE: usize = 64 * 1024;

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether binds become records. They hold personal data, so they are passed over by default.
    pub binds: bool,
    /// Longest line or text in bytes, between 16 and 1 GiB.
    pub cap: usize,
    /// Reads every line the careful way. Slow, with the same result: for tests.
    pub careful: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { binds: false, cap: 16 << 20, careful: false }
    }
}

/// Takes one file chunk by chunk.
#[derive(Debug)]
pub struct Lexer {
    options: Options,
    state: State,
    /// What begins a record that is not yet whole.
    tail: Vec<u8>,
    /// Bytes of `tail` below which another look at it is useless.
    patience: usize,
    file: u32,
    offset: u64,
    line: u64,
}

impl Lexer {
    /// A lexer at the beginning of a file.
    pub fn new(options: Options) -> Self {
        // Places in a batch have 32 bits.
        let options = Options { cap: options.cap.clamp(16, 1 << 30), ..options };
        Lexer { options, state: State::default(), tail: Vec::new(), patience: 0, file: 0, offset: 0, line: 1 }
    }

    /// The same for file number `file`.
    #[must_use]
    pub fn of_file(mut self, file: u32) -> Self {
        self.file = file;
        self
    }

    /// The next chunk of the file, at most 1 GiB. `into` lends its memory: what it held is gone.
    pub fn push(&mut self, chunk: &[u8], mut into: Batch) -> Batch {
        self.begin(&mut into);
        into.bytes.extend_from_slice(chunk);
        self.lex(&mut into, false);
        into
    }

    /// The end of the file.
    pub fn finish(&mut self, mut into: Batch) -> Batch {
        self.begin(&mut into);
        self.lex(&mut into, true);
        into
    }

    /// Empties `batch` and puts the bytes into it that wait from the last chunk; the caller appends
    /// the next chunk to `batch.bytes` and calls [`Lexer::lex`].
    pub fn begin(&mut self, batch: &mut Batch) {
        batch.records.clear();
        batch.unread.clear();
        batch.names = 0;
        batch.bytes.clear();
        batch.bytes.extend_from_slice(&self.tail);
        batch.lines = 0;
    }

    /// Lexes `batch.bytes` as far as its records are whole; `last`: the file ends with it.
    pub fn lex(&mut self, batch: &mut Batch, last: bool) {
        batch.file = self.file;
        batch.offset = self.offset;
        batch.line = self.line;
        self.tail.clear();
        if !last && batch.bytes.len() < self.patience {
            std::mem::swap(&mut self.tail, &mut batch.bytes);
            batch.bytes.clear();
            return;
        }
        let end = scan(self.options, &mut self.state, batch, usize::MAX, last);
        self.tail.extend_from_slice(&batch.bytes[end..]);
        batch.bytes.truncate(end);
        // A record of megabytes is looked at again only when there is twice as much of it.
        let large = end == 0 && self.tail.len() > LARGE;
        self.patience = if large { self.tail.len() * 2 } else { 0 };
        self.offset += end as u64;
        self.line += u64::from(batch.lines);
    }
}
