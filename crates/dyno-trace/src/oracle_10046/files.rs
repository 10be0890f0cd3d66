//! Reading of one file from front to back: batches in the order of the file, on the calling thread.
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
use std::sync::mpsc;
use std::thread;

use super::compression::Compression;
use super::input::{Input, Source, TooDense, open};
use super::lexer::Lexer;
use super::reading::{FIRST, Sink};
pub use super::reading::{FileEnd, ReadOptions};
use super::record::Batch;
use super::refusal::Refusal;
use super::sniff::{sniff, without_records};
use super::split;

/// Reads one file. `on_batch` is called on this thread with the batches in the order of the file and returns each for
/// reuse.
///
/// # Errors
/// The error of `on_batch`, or a [`Refusal`]; a refusal that is detected late (damaged compression, no record up to the
/// end) is returned after some batches have been passed on.
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

/// A compressed or streamed file, lexed a chunk at a time.
struct Unpacked<'a> {
    lexer: Lexer,
    /// First bytes of the text, which were read to detect the kind of file.
    first: &'a [u8],
    reader: &'a mut (dyn Read + Send),
    chunk: usize,
    /// Error that ended the stream.
    failed: Option<io::Error>,
    ended: bool,
}

impl Unpacked<'_> {
    /// Returns the next batch, and true if it is the last.
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

    /// Passes all batches to `sink`; another thread, if there is one, unpacks and lexes them.
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

/// Reads a file that cannot be read at arbitrary offsets; text before damage is passed on.
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
