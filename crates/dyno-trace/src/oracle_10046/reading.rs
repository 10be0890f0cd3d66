//! Options for reading, and the receiver of batches; common to files read at offsets and to streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compression::Compression;
use super::lexer::Options;
use super::record::{Batch, NONE, Placed, Reason, Record, Text, Unread};

/// Bytes examined to detect the kind of file.
pub(super) const FIRST: usize = 1 << 20;

/// Options for reading a file.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// File number among those read: [`Batch::file`].
    pub file: u32,
    /// True if binds become records.
    pub binds: bool,
    /// Number of threads that read and lex in addition to the calling thread; with 0, the calling thread does
    /// everything.
    pub threads: usize,
    /// Approximate size of a batch [bytes].
    pub chunk_bytes: usize,
    /// Longest line or text [bytes].
    pub cap: usize,
    /// Counter of the bytes read from disk, for a progress display.
    pub taken: Arc<AtomicU64>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            file: 0,
            binds: false,
            threads: 1,
            chunk_bytes: 256 * 1024,
            cap: Options::default().cap,
            taken: Arc::default(),
        }
    }
}

impl ReadOptions {
    pub(super) fn lexer(&self) -> Options {
        Options { binds: self.binds, cap: self.cap.clamp(16, 1 << 30), ..Options::default() }
    }

    pub(super) fn chunk(&self) -> usize {
        self.chunk_bytes.clamp(1, 64 << 20)
    }
}

/// Counts of a file that was read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// Compression of the file.
    pub compression: Compression,
    /// Size of the text [bytes].
    pub bytes: u64,
    /// Number of lines.
    pub lines: u64,
    /// Number of records of every kind.
    pub records: u64,
}

/// Receiver of a file's batches: counts their contents, and checks that there are records of the event.
pub(super) struct Sink<'a, E> {
    on_batch: &'a mut dyn FnMut(Batch) -> Result<Batch, E>,
    pub end: FileEnd,
    pub any_record: bool,
    last_tim: i64,
}

impl<'a, E> Sink<'a, E> {
    pub(super) fn new(on_batch: &'a mut dyn FnMut(Batch) -> Result<Batch, E>, compression: Compression) -> Self {
        let end = FileEnd { compression, bytes: 0, lines: 0, records: 0 };
        Sink { on_batch, end, any_record: false, last_tim: NONE }
    }

    /// Passes a batch on and returns it for reuse; `last` is true if the file ends with it.
    pub(super) fn take(&mut self, mut batch: Batch, last: bool) -> Result<Batch, E> {
        if last {
            doubt(&mut batch, self.last_tim);
        }
        self.last_tim = last_tim(&batch.records).unwrap_or(self.last_tim);
        self.end.bytes += batch.bytes.len() as u64;
        self.end.lines += u64::from(batch.lines);
        self.end.records += batch.records.len() as u64;
        self.any_record = self.any_record || batch.records.iter().any(|r| is_of_event(&r.record));
        if batch.bytes.is_empty() {
            return Ok(batch);
        }
        (self.on_batch)(batch)
    }
}

fn last_tim(records: &[Placed]) -> Option<i64> {
    records.iter().rev().map(|placed| placed.record.tim()).find(|tim| *tim != NONE)
}

/// Removes the last record of a file if it is on a line without an end and its clock is far before the previous one:
/// the file was cut inside the number.
fn doubt(batch: &mut Batch, last_tim_before: i64) {
    let Some((placed, before)) = batch.records.split_last() else { return };
    let line = &batch.bytes[placed.at as usize..];
    let tim = placed.record.tim();
    let before = last_tim(before).unwrap_or(last_tim_before);
    if line.contains(&b'\n') || tim == NONE || before == NONE || tim >= before / 5 {
        return;
    }
    let text = Text { start: placed.at, len: line.len().min(256) as u32 };
    let unread = Unread { reason: Reason::Truncated, at: placed.at, line: placed.line, text };
    batch.unread.push(unread);
    batch.records.pop();
}

/// Returns true if only event 10046 writes such records.
fn is_of_event(record: &Record) -> bool {
    !matches!(record, Record::Stamp(_) | Record::Header(_) | Record::Other(_) | Record::Bind(_))
}

/// Counts bytes read from a plain file.
pub(super) fn count(options: &ReadOptions, bytes: usize) {
    options.taken.fetch_add(bytes as u64, Ordering::Relaxed);
}
