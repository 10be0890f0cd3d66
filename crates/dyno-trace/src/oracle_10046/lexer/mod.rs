//! Lexer from bytes to records. A [`Lexer`] receives a file chunk by chunk and returns for each chunk a [`Batch`] with
//! the records that are complete by then; the rest is kept for the next chunk. The records do not depend on how the
//! file is cut.
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
//! Lines are read on the fast path first, which expects the fields where every known version writes them, and on the
//! careful path if that fails: by name, keeping what is usable and recording the faults. A line that is no record is
//! [`Record::Other`](super::record::Record::Other); none stops a read.
//!
//! Limits: a line or a text is held in memory up to [`Options::cap`] bytes; the rest is counted and skipped.

// The quick way through a line is one piece for the processor: calls between its parts cost a
// third.
#![allow(clippy::inline_always)]

mod binds;
mod calls;
mod classes;
mod fields;
mod find;
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
pub(super) use numbers::{bits, short};
pub(super) use scan::scan;
pub(super) use state::State;

use super::record::Batch;
/// Size above which an incomplete record is examined less often [bytes].
const LARGE: usize = 64 * 1024;

/// Options of a lexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// True if binds become records; by default they are skipped, since they contain personal data.
    pub binds: bool,
    /// Longest line or text [bytes], between 16 and 1 GiB.
    pub cap: usize,
    /// True to read every line on the careful path: slow, with the same result; for tests.
    pub careful: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { binds: false, cap: 16 << 20, careful: false }
    }
}

/// Lexer of one file, chunk by chunk.
#[derive(Debug)]
pub struct Lexer {
    options: Options,
    state: State,
    /// Beginning of a record that is not yet complete.
    tail: Vec<u8>,
    /// Size of `tail` below which it is not worth examining again [bytes].
    patience: usize,
    file: u32,
    offset: u64,
    line: u64,
}

impl Lexer {
    /// Returns a lexer at the beginning of a file.
    pub fn new(options: Options) -> Self {
        // Places in a batch have 32 bits.
        let options = Options { cap: options.cap.clamp(16, 1 << 30), ..options };
        Lexer { options, state: State::default(), tail: Vec::new(), patience: 0, file: 0, offset: 0, line: 1 }
    }

    /// Sets the number of the file.
    #[must_use]
    pub fn of_file(mut self, file: u32) -> Self {
        self.file = file;
        self
    }

    /// Lexes the next chunk of the file, at most 1 GiB. `into` lends its memory; its content is discarded.
    pub fn push(&mut self, chunk: &[u8], mut into: Batch) -> Batch {
        self.begin(&mut into);
        into.bytes.extend_from_slice(chunk);
        self.lex(&mut into, false);
        into
    }

    /// Lexes the end of the file.
    pub fn finish(&mut self, mut into: Batch) -> Batch {
        self.begin(&mut into);
        self.lex(&mut into, true);
        into
    }

    /// Empties `batch` and puts the bytes kept from the last chunk into it; the caller appends the next chunk to
    /// `batch.bytes` and calls [`Lexer::lex`].
    pub fn begin(&mut self, batch: &mut Batch) {
        batch.records.clear();
        batch.unread.clear();
        batch.names = 0;
        batch.bytes.clear();
        batch.bytes.extend_from_slice(&self.tail);
        batch.lines = 0;
    }

    /// Lexes `batch.bytes` as far as its records are complete; `last` is true if the file ends with these bytes.
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
