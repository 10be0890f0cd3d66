//! One worker: a session in the job's snapshot that takes chunk after chunk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use dyno_load::{CopySession, WireError};

use crate::column::Columns;
use crate::encode::{end, head, rows};
use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};
use crate::read_back::open;
use crate::rows::Cutter;
use crate::sink::Sink;
use crate::spec::{ChunkDone, ChunkSpec, JobSpec};

/// Longest pause of a worker that is ahead of its rate, before it looks again.
const PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a message to the server.
const SEND_BYTES: usize = 64 << 10;
/// Bytes between two looks at the rate.
const STRIDE_BYTES: u64 = 64 << 10;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    pub spec: JobSpec,
    pub next: AtomicUsize,
    pub stop: Arc<AtomicBool>,
    /// Bytes of COPY that came.
    pub bytes: AtomicU64,
    /// Rows of it.
    pub rows: AtomicU64,
    pub started: Instant,
}

impl Shared {
    /// Of the memory for all, what one worker may use for batches, and for a row group.
    fn shares(&self) -> (usize, usize) {
        let each = (self.spec.memory_bytes / self.spec.workers.max(1) as u64) as usize;
        ((each / 16).clamp(64 << 10, 8 << 20), (each / 3).max(256 << 10))
    }

    /// Waits while all workers together are ahead of their rate.
    fn keep_rate(&self) -> Result<(), MoveError> {
        let Some(rate) = self.spec.rate_bytes_per_s.filter(|&rate| rate > 0) else { return Ok(()) };
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(MoveError::Stopped);
            }
            let due = Duration::from_secs_f64(self.bytes.load(Ordering::Relaxed) as f64 / rate as f64);
            let ahead = due.saturating_sub(self.started.elapsed());
            if ahead.is_zero() {
                return Ok(());
            }
            std::thread::sleep(ahead.min(PAUSE));
        }
    }
}

/// A worker with its session.
pub struct Worker<'a> {
    shared: &'a Shared,
    number: usize,
    session: CopySession,
}

impl<'a> Worker<'a> {
    /// Logs in and takes the snapshot.
    pub fn begin(shared: &'a Shared, number: usize) -> Result<Self, MoveError> {
        let mut session = CopySession::connect(&shared.spec.connection, &shared.stop)?;
        for sql in &shared.spec.session_sql {
            session.run(sql)?;
        }
        Ok(Self { shared, number, session })
    }

    /// The next chunk that nobody has.
    pub fn next(&self) -> Option<&'a ChunkSpec> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.spec.chunks.get(self.shared.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Moves a chunk, whichever way it goes.
    pub fn work(&mut self, chunk: &ChunkSpec) -> Result<ChunkDone, MoveError> {
        match &chunk.path {
            Some(path) if chunk.load => self.load(chunk, path),
            _ => self.read(chunk),
        }
    }

    /// Puts the rows of a file into a table.
    fn load(&mut self, chunk: &ChunkSpec, path: &Path) -> Result<ChunkDone, MoveError> {
        let (started, shared) = (Instant::now(), self.shared);
        let mut batches = open(path)?;
        let (mut batch, mut row): (Option<RecordBatch>, usize) = (None, 0);
        let (mut tally, mut bytes, mut begun) = (Tally::default(), 0_u64, false);
        let counted = self.session.copy_in(&chunk.sql, |out| {
            if !begun {
                head(out);
                begun = true;
            }
            if batch.as_ref().is_none_or(|batch| row >= batch.num_rows()) {
                batch = batches.next().transpose()?;
                row = 0;
                if let Some(batch) = &batch {
                    tally = tally.plus(hash_batch(batch)?);
                }
            }
            let more = batch.is_some();
            match &batch {
                Some(batch) => row = rows(batch, row, SEND_BYTES, out)?,
                None => end(out),
            }
            bytes += out.len() as u64;
            shared.bytes.fetch_add(out.len() as u64, Ordering::Relaxed);
            shared.keep_rate()?;
            Ok::<bool, MoveError>(more)
        });
        let counted = counted.inspect_err(|error| self.give_up(error))?;
        if counted != tally.rows {
            return Err(MoveError::Count { counted, decoded: tally.rows });
        }
        shared.rows.fetch_add(counted, Ordering::Relaxed);
        Ok(self.done(chunk, counted, bytes, 0, &tally, started))
    }

    fn done(&self, chunk: &ChunkSpec, rows: u64, bytes: u64, file: u64, tally: &Tally, started: Instant) -> ChunkDone {
        ChunkDone {
            number: chunk.number,
            rows,
            copy_bytes: bytes,
            file_bytes: file,
            hash: tally.hash(),
            elapsed_ns: started.elapsed().as_nanos() as u64,
            worker: self.number,
        }
    }

    /// Reads a chunk, and writes its file where it has one.
    fn read(&mut self, chunk: &ChunkSpec) -> Result<ChunkDone, MoveError> {
        let started = Instant::now();
        let shared = self.shared;
        let table = &shared.spec.tables[chunk.table];
        let (batch_bytes, group_bytes) = shared.shares();
        let mut columns = Columns::new(table, batch_bytes);
        let sink = chunk
            .path
            .as_deref()
            .map(|path| Sink::create(path, Arc::clone(columns.schema()), shared.spec.zstd_level, group_bytes));
        let mut chunk_sink = ChunkSink { sink: sink.transpose()?, tally: Tally::default() };
        let mut cutter = Cutter::new(table.columns.len());
        let (mut bytes, mut told) = (0_u64, 0_u64);
        let copied = self.session.copy_out(&chunk.sql, |message| {
            bytes += message.len() as u64;
            cutter.push(message, |row| {
                if columns.push(row)? {
                    chunk_sink.write(&mut columns)?;
                }
                Ok(())
            })?;
            if bytes - told >= STRIDE_BYTES {
                shared.bytes.fetch_add(bytes - told, Ordering::Relaxed);
                told = bytes;
                shared.keep_rate()?;
            }
            Ok(())
        });
        let counted = copied.inspect_err(|error: &MoveError| self.give_up(error))?;
        shared.bytes.fetch_add(bytes - told, Ordering::Relaxed);
        // Small chunks have not been looked at before.
        shared.keep_rate()?;
        if !cutter.is_whole() {
            return Err(MoveError::Stream("it ended in the middle".into()));
        }
        chunk_sink.write(&mut columns)?;
        if counted != columns.rows() {
            return Err(MoveError::Count { counted, decoded: columns.rows() });
        }
        shared.rows.fetch_add(counted, Ordering::Relaxed);
        let (tally, sink) = (chunk_sink.tally, chunk_sink.sink);
        let file_bytes = sink.map_or(Ok(0), Sink::finish)?;
        Ok(self.done(chunk, counted, bytes, file_bytes, &tally, started))
    }

    /// A server that goes on sending is told to stop.
    fn give_up(&self, error: &MoveError) {
        if !matches!(error, MoveError::Wire(WireError::Server(_) | WireError::Closed)) {
            self.session.cancel();
        }
    }
}

struct ChunkSink {
    sink: Option<Sink>,
    tally: Tally,
}

impl ChunkSink {
    fn write(&mut self, columns: &mut Columns) -> Result<(), MoveError> {
        let batch = columns.take()?;
        self.tally = self.tally.plus(hash_batch(&batch)?);
        match &mut self.sink {
            Some(sink) => sink.write(&batch),
            None => Ok(()),
        }
    }
}
