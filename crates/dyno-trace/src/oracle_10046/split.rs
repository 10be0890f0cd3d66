//! Plain files, read at offsets and lexed by several threads.
//!
//! The file is cut at equal distances, and each cut is moved to the next line that looks like a call or a wait. Such a
//! line can also be part of a statement's text, so a piece is only accepted if the piece before it, read to its own
//! end, ended exactly there; otherwise the stretch is read again from where the piece before it really ended. The
//! result is the same as with one thread.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use super::lexer::{Options, State, record_start, scan};
use super::reading::{FIRST, ReadOptions, Sink, count};
use super::record::Batch;
use super::refusal::Refusal;

/// Distances after a cut that are searched for a record, step by step [bytes].
const PROBES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
/// Number of bytes read beyond a piece, so that the end of its last record can be recognized by the start of the next
/// record.
const SLACK: u64 = 1 << 10;

/// Returns the beginning of a file.
pub(super) fn first_bytes(file: &File, bytes: u64, path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut first = Vec::new();
    fill(file, 0, bytes.min(FIRST as u64) as usize, &mut first).map_err(|source| unreadable(path, source))?;
    Ok(first)
}

/// Replaces the content of `to` with `count` bytes of the file from `offset` on, or with fewer if the file ends before.
fn fill(file: &File, offset: u64, count: usize, to: &mut Vec<u8>) -> io::Result<()> {
    // What was there before need not be wiped: it is overwritten, or cut off below.
    to.resize(count, 0);
    let mut end = 0;
    while end < count {
        match file.read_at(&mut to[end..], offset + end as u64) {
            Ok(0) => break,
            Ok(read) => end += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                to.clear();
                return Err(error);
            }
        }
    }
    to.truncate(end);
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> Refusal {
    Refusal::Unreadable { path: path.to_owned(), source }
}

/// Cuts of a file.
struct Plan<'a> {
    file: &'a File,
    bytes: u64,
    chunk: u64,
    options: Options,
}

/// A worker's last search for the start of a piece: the end of one piece is the start of the next.
#[derive(Default)]
struct Probe {
    bytes: Vec<u8>,
    /// Number of the piece; 0 before the first search.
    index: u64,
    /// Where the piece begins; `None` if no record was found after the cut.
    start: Option<u64>,
}

/// A piece as a worker read it, independently of what precedes the piece.
struct Piece {
    /// Start of the piece; `None` if no record was found after the cut.
    start: Option<u64>,
    /// Start of the next piece.
    until: u64,
    batch: Batch,
    state: State,
}

impl Plan<'_> {
    fn pieces(&self) -> u64 {
        self.bytes.div_ceil(self.chunk)
    }

    /// Returns where piece `index` begins.
    fn start(&self, index: u64, probe: &mut Probe) -> io::Result<Option<u64>> {
        if index == 0 {
            return Ok(Some(0));
        }
        if index >= self.pieces() {
            return Ok(Some(self.bytes));
        }
        if probe.index != index {
            (probe.index, probe.start) = (index, self.search(index * self.chunk, &mut probe.bytes)?);
        }
        Ok(probe.start)
    }

    /// Returns the start of the first record after a cut.
    fn search(&self, cut: u64, probe: &mut Vec<u8>) -> io::Result<Option<u64>> {
        for len in PROBES {
            fill(self.file, cut, self.within(cut, len as u64), probe)?;
            if let Some(found) = record_start(probe, 0) {
                return Ok(Some(cut + found as u64));
            }
            if probe.len() < len {
                break;
            }
        }
        Ok(None)
    }

    /// Returns `len`, or the number of bytes from `offset` to the end of the file if that is smaller.
    fn within(&self, offset: u64, len: u64) -> usize {
        len.min(self.bytes.saturating_sub(offset)) as usize
    }

    fn piece(&self, index: u64, mut batch: Batch, probe: &mut Probe) -> io::Result<Piece> {
        let start = self.start(index, probe)?;
        let next = self.start(index + 1, probe)?;
        let until = next.unwrap_or((index + 1) * self.chunk);
        let mut state = if index == 0 { State::default() } else { State::between_records() };
        clear(&mut batch);
        if let Some(start) = start.filter(|start| *start < until) {
            let len = self.within(start, until - start + SLACK);
            self.lex(start, len, until, &mut state, &mut batch)?;
        } else {
            batch.bytes.clear();
        }
        Ok(Piece { start, until, batch, state })
    }

    /// Lexes from `start` on, with `len` bytes loaded, until `until` is reached.
    fn lex(&self, start: u64, len: usize, until: u64, state: &mut State, batch: &mut Batch) -> io::Result<()> {
        fill(self.file, start, len, &mut batch.bytes)?;
        batch.offset = start;
        // A file that shrinks while it is read ends where nothing more comes.
        let last = batch.bytes.len() < len || start + len as u64 >= self.bytes;
        let end = scan(self.options, state, batch, (until - start) as usize, last);
        batch.bytes.truncate(end);
        Ok(())
    }
}

/// Empties a batch except for its bytes.
fn clear(batch: &mut Batch) {
    batch.records.clear();
    batch.unread.clear();
    batch.names = 0;
    batch.lines = 0;
}

/// Joiner of the pieces, in the order of the file.
struct Joiner<'a, 'b, E> {
    plan: &'a Plan<'a>,
    options: &'a ReadOptions,
    path: &'a Path,
    sink: &'a mut Sink<'b, E>,
    at: u64,
    line: u64,
    state: State,
}

impl<E: From<Refusal>> Joiner<'_, '_, E> {
    /// Adds the next piece; returns a batch for reuse.
    fn join(&mut self, piece: Piece) -> Result<Batch, E> {
        let Piece { start, until, batch, state } = piece;
        let mut spare = None;
        if let Some(start) = start.filter(|start| *start > self.at) {
            spare = Some(self.again(start)?);
        }
        let fits = start == Some(self.at) && (self.at == 0 || self.state.is_between_records());
        if !fits || batch.bytes.is_empty() {
            if self.at < until {
                self.again(until)?;
            }
            return Ok(spare.unwrap_or(batch));
        }
        self.deliver(batch, state)
    }

    fn deliver(&mut self, mut batch: Batch, state: State) -> Result<Batch, E> {
        batch.file = self.options.file;
        batch.line = self.line;
        self.at = batch.offset + batch.bytes.len() as u64;
        self.line += u64::from(batch.lines);
        self.state = state;
        count(self.options, batch.bytes.len());
        self.sink.take(batch, self.at >= self.plan.bytes)
    }

    /// Reads on from the position reached until `until` is reached or passed.
    fn again(&mut self, until: u64) -> Result<Batch, E> {
        let mut batch = Batch::default();
        let mut len = self.plan.chunk.max(SLACK);
        while self.at < until {
            clear(&mut batch);
            let mut state = self.state;
            let at = self.at;
            let enough = self.plan.within(at, len);
            self.plan.lex(at, enough, until, &mut state, &mut batch).map_err(|source| unreadable(self.path, source))?;
            if batch.bytes.is_empty() {
                if enough < len as usize {
                    // Nothing more to come: the file shrank.
                    self.at = self.plan.bytes;
                    break;
                }
                len = len.saturating_mul(2);
                continue;
            }
            batch = self.deliver(batch, state)?;
        }
        Ok(batch)
    }
}

/// Reads the whole file. The calling thread joins the pieces in the order of the file; while the next piece is not
/// ready, the calling thread lexes a piece itself.
pub(super) fn read<E: From<Refusal>>(
    file: &File,
    bytes: u64,
    path: &Path,
    options: &ReadOptions,
    sink: &mut Sink<'_, E>,
) -> Result<(), E> {
    let plan = Plan { file, bytes, chunk: options.chunk() as u64, options: options.lexer() };
    let mut joiner = Joiner { plan: &plan, options, path, sink, at: 0, line: 1, state: State::default() };
    let threads = (options.threads as u64).min(plan.pieces().saturating_sub(1)) as usize;
    if threads == 0 {
        return joiner.again(bytes).map(drop);
    }
    let (pool, empties) = mpsc::channel();
    let (results, done) = mpsc::channel();
    for _ in 0..4 * threads + 4 {
        // The receiver lives as long as this function.
        let _ = pool.send(Batch::default());
    }
    let work = Work { plan: &plan, next: Mutex::new((0, empties)) };
    thread::scope(|scope| {
        // Moved in, so that they end before the scope waits for its threads.
        let (pool, done) = (pool, done);
        for _ in 0..threads {
            let (results, work, plan) = (results.clone(), &work, &plan);
            scope.spawn(move || {
                let mut probe = Probe::default();
                while let Some((index, batch)) = work.draw() {
                    if results.send((index, plan.piece(index, batch, &mut probe))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let (mut waiting, mut probe, mut spare) = (BTreeMap::new(), Probe::default(), Vec::new());
        for index in 0..plan.pieces() {
            let piece = loop {
                waiting.extend(done.try_iter());
                if let Some(piece) = waiting.remove(&index) {
                    break piece;
                }
                if let Some((own, batch)) = work.draw_now() {
                    waiting.insert(own, plan.piece(own, batch, &mut probe));
                } else {
                    let Ok((found, piece)) = done.recv() else { return Ok(()) };
                    waiting.insert(found, piece);
                }
            };
            let piece = piece.map_err(|source| unreadable(path, source))?;
            // Given back several at once: a worker that waits for them is woken once.
            spare.push(joiner.join(piece)?);
            if spare.len() > 2 * threads + 1 {
                spare.drain(..).for_each(|batch| drop(pool.send(batch)));
            }
        }
        Ok(())
    })
}

/// Pieces still to be lexed. A thread draws a piece only together with a batch, so the lowest-numbered piece being
/// lexed always has a batch.
struct Work<'a> {
    plan: &'a Plan<'a>,
    next: Mutex<(u64, mpsc::Receiver<Batch>)>,
}

impl Work<'_> {
    /// Returns the next piece as soon as there is a batch for it, or `None` if there is none left.
    fn draw(&self) -> Option<(u64, Batch)> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = next.1.recv().ok()?;
        self.take(&mut next.0, batch)
    }

    /// Returns the next piece without waiting; `None` if there is no piece left, no batch now, or another thread holds
    /// the lock because it waits for a batch.
    fn draw_now(&self) -> Option<(u64, Batch)> {
        let mut next = self.next.try_lock().ok()?;
        let batch = next.1.try_recv().ok()?;
        self.take(&mut next.0, batch)
    }

    fn take(&self, next: &mut u64, batch: Batch) -> Option<(u64, Batch)> {
        let index = *next;
        *next += 1;
        (index < self.plan.pieces()).then_some((index, batch))
    }
}
