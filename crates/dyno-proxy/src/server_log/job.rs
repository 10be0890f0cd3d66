//! An import from its start to its end: one thread reads files, another writes the capture.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use dyno_evidence::EvidenceError;
use dyno_evidence::normal::Dialect;
use dyno_evidence::trace_store::Store;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::entry::Reading;
use super::event::{Event, event};
use super::import::Import;
use super::input::Lines;
use super::spread::Spread;
use super::stamp::{Clock, Transition};
use super::syslog::Pieces;
use super::text::Head;
use super::{csvlog, jsonlog, mariadb, syslog, text};

/// Maximum number of events in a batch; `BATCH_BYTES` is the maximum number of their bytes.
const BATCH: usize = 1024;
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of waiting batches.
const WAITING: usize = 4;

/// Format of a file.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Text with `log_line_prefix`.
    Text,
    /// csvlog.
    Csvlog,
    /// jsonlog.
    Jsonlog,
    /// Text wrapped in JSON objects by a log service.
    Json,
    /// Text that was sent through syslog.
    Syslog,
    /// `MariaDB`'s slow log.
    Slow,
    /// `MariaDB`'s general log.
    General,
}

/// File to read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file.
    pub form: Form,
    /// Pattern of the prefix before an entry's severity; unused for csvlog and jsonlog.
    pub prefix: String,
    /// Year for times that have no year.
    pub year: i64,
}

/// Parameters of an import.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Folder to write to.
    pub out: PathBuf,
    /// Files, in the order in which they are read.
    pub files: Vec<File>,
    /// Translations of the word DETAIL.
    pub details: Vec<String>,
    /// Keys under which log services store the server's output.
    pub payloads: Vec<String>,
    /// Pattern of syslog's prefix.
    pub pieces: String,
    /// Offset changes of the log's time zone; empty if unknown.
    pub zone: Vec<Transition>,
    /// Database whose sessions are kept; `None` for all.
    pub database: Option<String>,
    /// True if the statements are in `MariaDB`'s dialect.
    pub is_mariadb: bool,
}

/// Reason why there is no capture.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
    /// The import was stopped.
    #[error("the import was stopped")]
    Stopped,
    /// The evidence cannot be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

/// Running import.
pub struct LogJob {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    bytes: u64,
    thread: Mutex<Option<JoinHandle<Result<Json, LogError>>>>,
}

impl LogJob {
    /// Starts an import.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn start(request: &str) -> Result<Self, LogError> {
        let invalid = |error: &dyn std::error::Error| LogError::Request(error.to_string());
        let request: Request = serde_json::from_str(request).map_err(|error| invalid(&error))?;
        let mut heads = Vec::new();
        for file in &request.files {
            heads.push(Head::new(&file.prefix, &request.details).map_err(|error| invalid(&error))?);
        }
        let pieces = Pieces::new(&request.pieces).map_err(|error| invalid(&error))?;
        let bytes = request.files.iter().filter_map(|file| file.path.metadata().ok()).map(|found| found.len()).sum();
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stops, counted) = (Arc::clone(&stop), Arc::clone(&done));
        let thread = std::thread::Builder::new()
            .name("dyno-log".to_owned())
            .spawn(move || run(&request, &heads, &pieces, &stops, &counted))
            .map_err(|error| LogError::Request(format!("a thread cannot be started: {error}")))?;
        Ok(Self { stop, done, bytes, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the number of bytes read and of all bytes.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.bytes)
    }

    /// Returns true if the import has ended.
    pub fn is_over(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks the import to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the end of the import; returns its report as JSON.
    ///
    /// # Errors
    /// The evidence cannot be written, or the import was stopped or finished before.
    pub fn finish(&self) -> Result<String, LogError> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| LogError::Request("the import is over".to_owned()))?;
        let broke = |_| LogError::Request("the import broke down".to_owned());
        thread.join().map_err(broke)?.map(|told| told.to_string())
    }
}

/// Events that are collected into batches for the writing thread.
struct Batches {
    to: SyncSender<Vec<Event>>,
    waiting: Vec<Event>,
    bytes: usize,
    is_closed: bool,
}

impl Batches {
    fn push(&mut self, event: Event) {
        self.bytes += event.size();
        self.waiting.push(event);
        if self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        self.bytes = 0;
        let batch = std::mem::replace(&mut self.waiting, Vec::with_capacity(BATCH));
        self.is_closed |= self.to.send(batch).is_err();
    }
}

/// Returns the report of reading one file, as JSON.
fn report(file: &File, lines: &Lines, reading: &Reading, span: (Option<u64>, u64), late: (u64, u64)) -> Json {
    json!({
        "path": file.path.to_string_lossy(),
        "bytes": lines.bytes,
        "entries": reading.entries,
        "from_ns": span.0,
        "to_ns": span.0.map(|_| span.1),
        "events": late.1,
        "late": late.0,
        "broken": lines.broken.as_ref().map(ToString::to_string),
    })
}

fn read_all(
    request: &Request,
    heads: &[Head],
    pieces: &Pieces,
    to: SyncSender<Vec<Event>>,
    stop: &Arc<AtomicBool>,
    done: &Arc<AtomicU64>,
) -> (Vec<Json>, Reading) {
    let mut reading = Reading::default();
    reading.clock = Clock::new(request.zone.clone());
    let mut batches = Batches { to, waiting: Vec::with_capacity(BATCH), bytes: 0, is_closed: false };
    let (mut files, mut spread) = (Vec::new(), Spread::default());
    for (file, head) in request.files.iter().zip(heads) {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        (reading.file, reading.entries, reading.year) = (Arc::from(&*name), 0, file.year);
        let mut lines = match Lines::open(&file.path, Arc::clone(done)) {
            Ok(lines) => lines,
            Err(error) => {
                files.push(
                    json!({"path": file.path.to_string_lossy(), "bytes": 0, "entries": 0, "events": 0, "late": 0,
                                  "from_ns": null, "to_ns": null, "broken": error.to_string()}),
                );
                continue;
            }
        };
        let (mut span, mut late, mut events) = ((None, 0), 0_u64, 0_u64);
        let mut add = |found: Event, reading: &mut Reading| {
            events += 1;
            late += u64::from(found.at_ns < span.1);
            span = (span.0.or(Some(found.at_ns)), span.1.max(found.at_ns));
            spread.add(found, reading.clock.resolution_ns, &mut |event| batches.push(event));
        };
        let add = &mut add;
        let on = |entry, reading: &mut Reading| {
            if let Some(found) = event(entry, reading) {
                add(found, reading);
            }
        };
        lines.stop_with(Arc::clone(stop));
        match file.form {
            Form::Slow => mariadb::slow::read(&mut lines, &mut reading, add),
            Form::General => mariadb::general::read(&mut lines, &mut reading, add),
            Form::Text => text::read(&mut lines, head, &mut reading, on),
            Form::Csvlog => csvlog::read(&mut lines, &mut reading, on),
            Form::Jsonlog => jsonlog::read(&mut lines, &mut reading, on),
            Form::Json => jsonlog::read_service(&mut lines, head, &request.payloads, &mut reading, on),
            Form::Syslog => syslog::read(&mut lines, pieces, head, &mut reading, on),
        }
        spread.end(&mut |event| batches.push(event));
        files.push(report(file, &lines, &reading, span, (late, events)));
        if stop.load(Ordering::Relaxed) || batches.is_closed {
            break;
        }
    }
    batches.send();
    (files, reading)
}

fn write_all(import: &mut Import, from: &Receiver<Vec<Event>>) -> Result<(), EvidenceError> {
    for batch in from {
        for event in batch {
            import.add(event);
        }
        import.flush()?;
    }
    Ok(())
}

fn run(
    request: &Request,
    heads: &[Head],
    pieces: &Pieces,
    stop: &Arc<AtomicBool>,
    done: &Arc<AtomicU64>,
) -> Result<Json, LogError> {
    let dialect = if request.is_mariadb { Dialect::MariaDb } else { Dialect::Postgres };
    let mut import = Import::new(Store::new(&request.out, 0), request.database.clone(), dialect);
    let (to, from) = sync_channel(WAITING);
    let (written, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_all(request, heads, pieces, to, stop, done));
        let written = write_all(&mut import, &from);
        // The reader must not wait for a writer that has failed.
        drop(from);
        (written, reader.join())
    });
    let Ok((files, reading)) = read else { return Err(LogError::Request("the reader broke down".to_owned())) };
    written?;
    if stop.load(Ordering::Relaxed) {
        return Err(LogError::Stopped);
    }
    let first = request.files.first().map(|file| file.path.display().to_string()).unwrap_or_default();
    let (sessions, calls, waits) = import.finish(first)?;
    Ok(told(&import, &files, reading, (sessions, calls, waits)))
}

fn told(import: &Import, files: &[Json], reading: Reading, (sessions, calls, waits): (u32, u64, u64)) -> Json {
    let Reading { clock, unused: mut unread, .. } = reading;
    unread.merge(import.unused.clone());
    let counts = &import.counts;
    json!({
        "files": files,
        "sessions": sessions,
        "calls": calls,
        "waits": waits,
        "executions": counts.executions,
        "failed": counts.failed,
        "stateless": counts.stateless,
        "untimed": counts.untimed,
        "begun_before": counts.begun_before,
        "prepared_before": counts.prepared_before,
        "with_parameters": counts.with_parameters,
        "shortest_ns": counts.shortest_ns,
        "first_ns": import.span_ns.map(|span| span.0),
        "last_ns": import.span_ns.map(|span| span.1),
        "databases": import.databases,
        "version": import.version,
        "by_gaps": import.is_by_gaps,
        "zones": clock.assumed,
        "coarse": clock.is_coarse,
        "year_assumed": clock.is_year_assumed,
        "unused": unread.to_json(),
    })
}
