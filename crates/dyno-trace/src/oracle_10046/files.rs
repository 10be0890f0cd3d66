//! One file from front to back: batches in the order of the file, on the calling thread.
//!
//! ```no_run
//! use dyno_trace::oracle_10046::files::{ReadOptions, read_file};
//! use dyno_trace::oracle_10046::input::expand;
//! use dyno_trace::oracle_10046::refusal::Refusal;
//!
//! let (sources, _refused) = expand(&["/traces"]);
//! let mut records = 0;
//! for source in &sources {
//!     read_file::<Refusal>(source, &ReadOptions::default(), &mut |batch| {
//!         records += batch.records.len();
//!         Ok(batch)
//!     })?;
//! }
//! # Ok::<(), Refusal>(())
//! ```

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::input::{Compression, Input, Source, TooDense, open};
use super::lexer::{Lexer, Options};
use super::record::{Batch, NONE, Placed, Reason, Record, Text, Unread};
use super::refusal::Refusal;
use super::sniff::{sniff, without_records};
use super::split;

/// Bytes looked at to tell what kind of file it is.
pub(super) const FIRST: usize = 1 << 20;

/// How to read a file.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Number of the file among those read: [`Batch::file`].
    pub file: u32,
    /// Whether binds become records.
    pub binds: bool,
    /// Threads that read and lex beside the calling one; 0: the calling one does it all.
    pub threads: usize,
    /// Bytes per batch, more or less.
    pub chunk_bytes: usize,
    /// Longest line or text in bytes.
    pub cap: usize,
    /// Counts the bytes read from disk, for whoever shows progress.
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

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// How the file is compressed.
    pub compression: Compression,
    /// Bytes of text.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Records of every kind.
    pub records: u64,
}

/// Takes the batches of a file, checks that there are records of the event in it, counts.
pub(super) struct Sink<'a, E> {
    on_batch: &'a mut dyn FnMut(Batch) -> Result<Batch, E>,
    pub end: FileEnd,
    any_record: bool,
    last_tim: i64,
}

impl<'a, E> Sink<'a, E> {
    fn new(on_batch: &'a mut dyn FnMut(Batch) -> Result<Batch, E>, compression: Compression) -> Self {
        let end = FileEnd { compression, bytes: 0, lines: 0, records: 0 };
        Sink { on_batch, end, any_record: false, last_tim: NONE }
    }

    /// Hands a batch on; gives it back for reuse. `last`: the file ends with it.
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

/// Takes back the last record of a file if it stands on a line without an end and its clock is much
/// before the one before it: the file was cut inside the number.
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

/// Whether only event 10046 writes such records.
fn is_of_event(record: &Record) -> bool {
    !matches!(record, Record::Stamp(_) | Record::Header(_) | Record::Other(_) | Record::Bind(_))
}

/// Reads one file. `on_batch` gets the batches in the order of the file, on this thread, and gives
/// each back for reuse. Fails with what `on_batch` fails with, or with a [`Refusal`]; one that
/// shows only later (damaged compression, no record to the end) comes after batches were given.
pub fn read_file<E: From<Refusal>>(
    source: &Source,
    options: &ReadOptions,
    on_batch: &mut dyn FnMut(Batch) -> Result<Batch, E>,
) -> Result<FileEnd, E> {
    let path = source.path();
    match open(source, &options.taken)? {
        Input::File(file, bytes) => {
            let mut sink = Sink::new(on_batch, Compression::Plain);
            let first = split::first_bytes(&file, bytes, &path)?;
            sniff(&path, &first, first.len() as u64 == bytes)?;
            split::read(&file, bytes, &path, options, &mut sink)?;
            finish(&sink, &path, &first)
        }
        Input::Stream(mut reader, compression) => {
            let mut sink = Sink::new(on_batch, compression);
            let mut first = Vec::new();
            let failed = reader.by_ref().take(FIRST as u64).read_to_end(&mut first).err();
            if failed.is_none() || !first.is_empty() {
                sniff(&path, &first, first.len() < FIRST && failed.is_none())?;
            }
            stream(&first, failed, &mut *reader, &path, options, &mut sink)?;
            finish(&sink, &path, &first)
        }
    }
}

fn finish<E: From<Refusal>>(sink: &Sink<'_, E>, path: &Path, first: &[u8]) -> Result<FileEnd, E> {
    if sink.any_record { Ok(sink.end) } else { Err(without_records(path, first).into()) }
}

/// What is unpacked on the way, lexed a chunk at a time.
struct Unpacked<'a> {
    lexer: Lexer,
    /// What was read to tell what kind of file it is.
    first: &'a [u8],
    reader: &'a mut (dyn Read + Send),
    chunk: usize,
    /// Why nothing more comes.
    failed: Option<io::Error>,
    ended: bool,
}

impl Unpacked<'_> {
    /// The next batch, and whether it is the last.
    fn next(&mut self, mut batch: Batch) -> Option<(Batch, bool)> {
        if self.ended {
            return None;
        }
        self.lexer.begin(&mut batch);
        let before = batch.bytes.len();
        let (now, later) = self.first.split_at(self.chunk.min(self.first.len()));
        self.first = later;
        batch.bytes.extend_from_slice(now);
        if now.is_empty() && self.failed.is_none() {
            let mut limited = self.reader.take(self.chunk as u64);
            self.failed = limited.read_to_end(&mut batch.bytes).err();
        }
        let at_end = batch.bytes.len() == before;
        self.ended = self.first.is_empty() && (self.failed.is_some() || at_end);
        self.lexer.lex(&mut batch, self.ended);
        Some((batch, self.ended))
    }

    /// Hands all batches to `sink`, unpacked and lexed by another thread if there is one.
    fn pour<E>(&mut self, threads: usize, sink: &mut Sink<'_, E>) -> Result<(), E> {
        if threads == 0 {
            let mut spare = Batch::default();
            while let Some((batch, last)) = self.next(spare) {
                spare = sink.take(batch, last)?;
            }
            return Ok(());
        }
        let (pool, empties) = mpsc::channel();
        let (results, done) = mpsc::sync_channel(2);
        thread::scope(|scope| {
            // Moved in, so that they end before the scope waits for its thread.
            let (pool, done) = (pool, done);
            scope.spawn(move || {
                let spare = || empties.try_recv().unwrap_or_default();
                while let Some(result) = self.next(spare()) {
                    if results.send(result).is_err() {
                        return;
                    }
                }
            });
            for (batch, last) in &done {
                // Nobody takes it when the thread is through already.
                let _ = pool.send(sink.take(batch, last)?);
            }
            Ok(())
        })
    }
}

/// Reads what cannot be read by place; what came before damage is handed on.
fn stream<E: From<Refusal>>(
    first: &[u8],
    failed: Option<io::Error>,
    reader: &mut (dyn Read + Send),
    path: &Path,
    options: &ReadOptions,
    sink: &mut Sink<'_, E>,
) -> Result<(), E> {
    let lexer = Lexer::new(options.lexer()).of_file(options.file);
    let mut unpacked = Unpacked { lexer, first, reader, chunk: options.chunk(), failed, ended: false };
    unpacked.pour(options.threads, sink)?;
    let Some(source) = unpacked.failed else { return Ok(()) };
    let bytes = sink.end.bytes;
    let compression = sink.end.compression;
    let path = path.to_owned();
    Err(if compression == Compression::Plain {
        Refusal::Unreadable { path, source }
    } else if source.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooDense>) {
        Refusal::TooDense { path, source }
    } else {
        Refusal::Damaged { path, compression, bytes, source }
    }
    .into())
}

/// Counts bytes read from a plain file.
pub(super) fn count(options: &ReadOptions, bytes: usize) {
    options.taken.fetch_add(bytes as u64, Ordering::Relaxed);
}
