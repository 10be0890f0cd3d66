//! Worker of a job: a session in the job's snapshot that processes one chunk after the other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dyno_load::LONG_BYTES;

use crate::column::Columns;
use crate::encode::Place;
use crate::encoder::{Encoder, Form as Encoded};
use crate::error::MoveError;
use crate::hash::{Tally, hash_batch};
use crate::lines::lines;
use crate::rows::Cutter;
use crate::session::{SEND_BYTES, Session, give_up};
use crate::single::Single;
use crate::sink::Sink;
use crate::spec::{ChunkDone, ChunkSpec, Form, JobSpec, PartDone, Refused};

/// Longest pause of a worker that exceeds its rate, before it checks again.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of bytes between two checks of the rate.
const STRIDE_BYTES: u64 = 64 << 10;

/// State that all workers share.
pub struct Shared {
    pub spec: JobSpec,
    /// Single file for all rows.
    pub single: Option<Single>,
    /// Number of workers that have not ended.
    pub live: AtomicUsize,
    pub next: AtomicUsize,
    /// Number of workers that have taken their snapshots, or have failed before that.
    pub begun: AtomicUsize,
    pub stop: Arc<AtomicBool>,
    /// Number of bytes in COPY's form, received or sent.
    pub bytes: AtomicU64,
    /// Number of rows of finished chunks, and of files being loaded.
    pub rows: AtomicU64,
    pub started: Instant,
}

impl Shared {
    /// Returns one worker's memory for batches, and its memory for a row group [bytes].
    pub(crate) fn shares(&self) -> (usize, usize) {
        let each = (self.spec.memory_bytes / self.spec.workers.max(1) as u64) as usize;
        ((each / 16).clamp(64 << 10, 8 << 20), (each / 3).max(256 << 10))
    }

    /// Counts bytes of COPY that were received or sent; waits if that exceeds the rate.
    #[inline]
    pub(crate) fn came(&self, bytes: usize) -> Result<(), MoveError> {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        // Not for every row.
        if before / STRIDE_BYTES == (before + bytes as u64) / STRIDE_BYTES {
            return Ok(());
        }
        self.keep_rate()
    }

    /// Waits while all workers together exceed their rate.
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

/// Result of a chunk, for its report.
pub(crate) struct Moved {
    pub started: Instant,
    pub bytes: u64,
    pub file_bytes: u64,
    pub tally: Tally,
    pub refused: Vec<Refused>,
    pub parts: Vec<PartDone>,
    /// Number of rows already counted in the progress.
    pub reported: u64,
}

impl Moved {
    /// Returns an empty result of a chunk that began at `started`.
    pub fn of(started: Instant) -> Self {
        Self {
            started,
            bytes: 0,
            file_bytes: 0,
            tally: Tally::default(),
            refused: Vec::new(),
            parts: Vec::new(),
            reported: 0,
        }
    }
}

/// Worker with its session, and a session at the target if rows are forwarded.
pub struct Worker<'a> {
    pub(crate) shared: &'a Shared,
    number: usize,
    pub(crate) session: Session,
    pub(crate) target: Option<Session>,
}

impl<'a> Worker<'a> {
    /// Logs in and takes the snapshot.
    ///
    /// # Errors
    /// A connection fails, or a statement is refused.
    pub fn begin(shared: &'a Shared, number: usize) -> Result<Self, MoveError> {
        let mut session = Session::connect(&shared.spec.connection, &shared.stop)?;
        for sql in &shared.spec.session_sql {
            session.run(sql)?;
        }
        let mut target = None;
        if let Some(spec) = &shared.spec.target {
            let mut session = Session::connect(&spec.connection, &shared.stop)?;
            for sql in &spec.session_sql {
                session.run(sql)?;
            }
            target = Some(session);
        }
        Ok(Self { shared, number, session, target })
    }

    /// Returns the next chunk that no worker has taken, or `None`.
    pub fn next(&self) -> Option<&'a ChunkSpec> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.spec.chunks.get(self.shared.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Processes a chunk in the way that its specification demands.
    ///
    /// # Errors
    /// A server, a file or a value caused an error, or the row counts differ.
    pub fn work(&mut self, chunk: &ChunkSpec) -> Result<ChunkDone, MoveError> {
        let text = self.shared.spec.single.as_ref().is_some_and(|single| single.form == Form::Csv);
        if let (Some(path), Some(column)) = (&chunk.path, &chunk.partition) {
            return self.read_parts(chunk, column, path);
        }
        match &chunk.path {
            Some(path) if chunk.load && chunk.raw => self.load_text(chunk, path),
            Some(path) if chunk.load => self.load(chunk, path),
            None if chunk.raw => self.relay(chunk),
            None if text => self.text(chunk),
            _ => self.read(chunk),
        }
    }

    /// Loads the rows of a file into a table.
    fn load(&mut self, chunk: &ChunkSpec, path: &Path) -> Result<ChunkDone, MoveError> {
        let (started, shared) = (Instant::now(), self.shared);
        let (file, before, rejects) = (chunk.place, chunk.rows_before, shared.spec.rejects);
        let place = Place { file, before, rejects, ..Place::default() };
        let form = if self.session.takes_lines() { Encoded::Lines } else { Encoded::Copy };
        let mut encoder = Encoder::open(path, chunk.groups, shared.shares().0, place, form)?;
        let (mut bytes, mut reported) = (0_u64, 0_u64);
        let counted = self.session.copy_in(&chunk.sql, |out| {
            let more = encoder.more(SEND_BYTES, out)?;
            bytes += out.len() as u64;
            let rows = encoder.tally().rows;
            shared.rows.fetch_add(rows - reported, Ordering::Relaxed);
            reported = rows;
            shared.came(out.len())?;
            Ok::<bool, MoveError>(more)
        });
        let counted = counted.inspect_err(|error| give_up(&self.session, error))?;
        let tally = encoder.tally();
        let refused = encoder.refused();
        if counted + refused.len() as u64 != tally.rows {
            return Err(MoveError::Count { counted, decoded: tally.rows });
        }
        self.done(chunk, Moved { bytes, tally, refused, reported, ..Moved::of(started) })
    }

    /// Returns the report of a finished chunk.
    pub(crate) fn done(&mut self, chunk: &ChunkSpec, moved: Moved) -> Result<ChunkDone, MoveError> {
        self.shared.rows.fetch_add(moved.tally.rows.saturating_sub(moved.reported), Ordering::Relaxed);
        // Small chunks have not been checked against the rate before.
        self.shared.keep_rate()?;
        let elapsed_ns = moved.started.elapsed().as_nanos() as u64;
        Ok(ChunkDone {
            number: chunk.number,
            rows: moved.tally.rows,
            copy_bytes: moved.bytes,
            file_bytes: moved.file_bytes,
            hash: moved.tally.hash(),
            elapsed_ns,
            ended_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
            worker: self.number,
            process: self.session.process(),
            cost: self.cost()?,
            refused: moved.refused,
            parts: moved.parts,
        })
    }

    /// Returns the costs of the session so far.
    fn cost(&mut self) -> Result<Option<String>, MoveError> {
        let Some(sql) = &self.shared.spec.cost_sql else { return Ok(None) };
        self.session.line(sql).map(Some)
    }

    /// Reads a chunk, and writes its file if the specification names one.
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
        let single = shared.single.as_ref();
        let mut target = match (&chunk.into, &mut self.target) {
            (Some(sql), Some(target)) => {
                target.begin_in(sql)?;
                Some(target)
            }
            _ => None,
        };
        let tally = Tally::default();
        let place = Place { file: chunk.place, rejects: shared.spec.rejects, ..Place::default() };
        let mut chunk_sink = ChunkSink { sink: sink.transpose()?, single, target: target.as_deref_mut(), tally, place };
        let mut cutter = Cutter::new(table.columns.len() + usize::from(chunk.partition.is_some()));
        let (mut bytes, mut is_due) = (0_u64, false);
        let copied = self.session.copy_out(&chunk.sql, table, |message| {
            bytes += message.len() as u64;
            cutter.push(message, |row| {
                let is_full = columns.push(row)?;
                if is_full && row.raw().len() < LONG_BYTES {
                    return chunk_sink.write(&mut columns);
                }
                is_due |= is_full;
                Ok(())
            })?;
            // A long row would be in memory twice: it is written after its message was released.
            if is_due && message.len() < LONG_BYTES {
                is_due = false;
                chunk_sink.write(&mut columns)?;
            }
            shared.came(message.len())
        });
        let counted = copied.inspect_err(|error: &MoveError| give_up(&self.session, error))?;
        if !cutter.is_whole() {
            return Err(MoveError::Stream("it ended in the middle".into()));
        }
        chunk_sink.write(&mut columns)?;
        if counted != columns.rows() {
            return Err(MoveError::Count { counted, decoded: columns.rows() });
        }
        let (tally, sink, refused) = (chunk_sink.tally, chunk_sink.sink, chunk_sink.place.refused);
        if let Some(target) = target {
            let arrived = target.end_in()?;
            if arrived + refused.len() as u64 != tally.rows {
                return Err(MoveError::Count { counted: arrived, decoded: tally.rows });
            }
        }
        let file_bytes = sink.map_or(Ok(0), Sink::finish)?;
        self.done(chunk, Moved { bytes, file_bytes, tally, refused, ..Moved::of(started) })
    }
}

struct ChunkSink<'a> {
    sink: Option<Sink>,
    single: Option<&'a Single>,
    /// Session at the target server, if the target accepts lines.
    target: Option<&'a mut Session>,
    tally: Tally,
    /// Position of the rows in the chunk, for a server that accepts lines.
    place: Place,
}

impl ChunkSink<'_> {
    fn write(&mut self, columns: &mut Columns) -> Result<(), MoveError> {
        let batch = columns.take()?;
        self.tally = self.tally.plus(hash_batch(&batch)?);
        if let Some(target) = &mut self.target {
            let (mut row, mut out) = (0, Vec::with_capacity(2 * SEND_BYTES));
            while row < batch.num_rows() {
                out.clear();
                row = lines(&batch, row, SEND_BYTES, &mut self.place, &mut out)?;
                target.send_in(&out)?;
            }
            self.place.before += batch.num_rows() as u64;
        }
        match (&mut self.sink, self.single) {
            (Some(sink), _) => sink.write(&batch),
            (None, Some(single)) if batch.num_rows() > 0 => single.write(&batch),
            (None, _) => Ok(()),
        }
    }
}
