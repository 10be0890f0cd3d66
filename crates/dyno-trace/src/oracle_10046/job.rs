//! Jobs that read any number of traces: for a profile, for an import, or for a report on their contents.
//!
//! Several files are read in parallel, one thread each; a single file is lexed by several threads, and one thread
//! accounts for its time. A refused file is reported, and the others are still read.

mod options;
mod report;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dyno_evidence::EvidenceError;
use serde_json::{Map, Value as Json, json};

use super::check::{FileReport, report};
use super::evidence::{Evidence, FileOptions, Folder, finish};
use super::files::{ReadOptions, read_file};
use super::filter::FilterError;
use super::input::{Source, expand};
use super::profile::{Profile, Request, Summing, profile_json};
use super::reader::{Reader, Reading};
use super::refusal::Refusal;
use super::rows::{NoSink, Sink};
use super::statements::Registry;
pub use options::{JobOptions, request_from_json};
use report::JobReport;

/// Reason why a job ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A file, directory or pattern cannot be read.
    #[error("{refusal}\n  next: {}", refusal.next_step())]
    Refused {
        /// The refusal.
        refusal: Refusal,
    },
    /// The evidence could not be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// All waits lack a time.
    #[error(
        "{path}: {waits} WAIT lines and not one with a time that could be read: the lines are not \
         written as any known version does it\n  next: look at them with `trace check`, and keep \
         the file: the reader has to learn this version"
    )]
    NoElapsed {
        /// The file.
        path: String,
        /// Number of WAIT lines.
        waits: u64,
    },
    /// Options or a request are invalid.
    #[error("{0}")]
    Options(String),
    /// The stamps of a file show that its times have another unit: it is read again with that unit.
    #[error("times have another unit")]
    Unit,
    /// A filter is invalid.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl From<Refusal> for JobError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal }
    }
}

/// One file to read.
struct Task {
    number: u32,
    source: Source,
    arm: String,
}

/// Report on a file, and the damage after its readable part, if any.
type Read = (FileReport, Option<Refusal>);

/// Result of reading a file.
type Outcome<T> = Result<T, JobError>;

/// Reason why all files must be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// The order of the files' threads affected the result: files must be read one after the other.
    Alone,
    /// The unit of time of a file is now known.
    Unit,
}

/// A job on some traces, which another thread may watch and stop.
#[derive(Debug)]
pub struct Job {
    options: JobOptions,
    taken: Arc<AtomicU64>,
    total: AtomicU64,
    stop: AtomicBool,
    /// Unit of time [ns] of each file whose stamps show another unit than the assumed one, by the file's number.
    units: Mutex<BTreeMap<u32, i64>>,
}

impl Job {
    /// Returns a job that has not started.
    pub fn new(options: JobOptions) -> Self {
        Self {
            options,
            taken: Arc::default(),
            total: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            units: Mutex::default(),
        }
    }

    /// Returns the number of bytes read and the total number, both as stored on disk (compressed); the total is 0 until
    /// it is known.
    pub fn progress(&self) -> (u64, u64) {
        (self.taken.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Asks the job to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn tasks(&self) -> (Vec<Task>, Vec<Refusal>) {
        let (mut tasks, mut refusals) = (Vec::new(), Vec::new());
        let mut arms: Vec<&str> = Vec::new();
        for (_, arm) in &self.options.files {
            if !arms.contains(&arm.as_str()) {
                arms.push(arm);
            }
        }
        for arm in arms {
            let files = self.options.files.iter().filter(|(_, own)| own == arm);
            let paths: Vec<&String> = files.map(|(path, _)| path).collect();
            let (sources, refused) = expand(&paths);
            refusals.extend(refused);
            for source in sources {
                tasks.push(Task { number: tasks.len() as u32, source, arm: arm.to_owned() });
            }
        }
        let total = tasks.iter().map(|task| task.source.bytes()).sum();
        self.total.store(total, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
        (tasks, refusals)
    }

    fn units(&self) -> MutexGuard<'_, BTreeMap<u32, i64>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the options for reading a file, including its unit of time if that has been learnt.
    fn reading(&self, task: &Task, statements: bool) -> Reading {
        let learnt = self.units().get(&task.number).copied();
        let asked = self.options.reading(task.number, statements);
        Reading { unit_ns: asked.unit_ns.or(learnt), ..asked }
    }

    /// Repeats `work` until no file requires another reading. The loop ends: a unit is determined once per file, and
    /// files that are read one after the other keep their order.
    fn until_done<T>(&self, mut work: impl FnMut(bool) -> Result<T, Again>) -> T {
        let mut alone = false;
        loop {
            match work(alone) {
                Ok(done) => return done,
                Err(again) => alone |= again == Again::Alone,
            }
            self.taken.store(0, Ordering::Relaxed);
        }
    }

    fn threads(&self) -> usize {
        let found = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.options.threads.filter(|threads| *threads > 0).unwrap_or_else(found)
    }

    /// Runs `work` for every file, one after the other if `alone`; the results are in the order of the files.
    fn each<T: Send>(&self, tasks: &[Task], alone: bool, work: impl Fn(&Task, usize) -> T + Sync) -> Vec<T> {
        let threads = self.threads();
        if tasks.len() < 2 || threads < 2 || alone {
            let lexing = if tasks.len() < 2 || alone { threads - 1 } else { 0 };
            return tasks.iter().map(|task| work(task, lexing)).collect();
        }
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(tasks.len()));
        std::thread::scope(|scope| {
            for _ in 0..threads.min(tasks.len()) {
                scope.spawn(|| {
                    while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                        && let Some(task) = tasks.get(at)
                    {
                        let result = work(task, 0);
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// Reads a file into a sink. Text before damage is kept; the damage is returned.
    fn read<S: Sink>(
        &self,
        task: &Task,
        lexing: usize,
        reader: &mut Reader<S>,
    ) -> Result<(String, Option<Refusal>), JobError> {
        let defaults = ReadOptions::default();
        let options = ReadOptions {
            file: task.number,
            binds: self.options.binds,
            threads: lexing,
            chunk_bytes: self.options.chunk_bytes.unwrap_or(defaults.chunk_bytes),
            taken: Arc::clone(&self.taken),
            ..defaults
        };
        let ended = read_file::<JobError>(&task.source, &options, &mut |batch| {
            if self.stop.load(Ordering::Relaxed) {
                return Err(JobError::Stopped);
            }
            reader.batch(&batch)?;
            if let Some(unit_ns) = reader.other_unit_ns().filter(|_| task.source != Source::Stdin) {
                self.units().insert(task.number, unit_ns);
                return Err(JobError::Unit);
            }
            Ok(batch)
        });
        let ended = match ended {
            Ok(end) => (end.compression.to_string(), None),
            Err(JobError::Refused { refusal: damage @ (Refusal::Damaged { .. } | Refusal::TooDense { .. }) }) => {
                (String::new(), Some(damage))
            }
            Err(error) => return Err(error),
        };
        reader.finish();
        if reader.tally.lost_all_waits() {
            let waits = reader.tally.count("wait") + reader.tally.torn_waits;
            return Err(JobError::NoElapsed { path: path_of(task), waits });
        }
        Ok(ended)
    }

    /// Returns the profile of the sessions' time as the text of a JSON object.
    ///
    /// # Errors
    /// No file can be read, no wait has a time, or the job was stopped.
    pub fn profile(&self, request: &Request) -> Result<String, JobError> {
        self.profile_map(request).map(|told| Json::Object(told).to_string())
    }

    /// Returns the profile as a JSON object.
    ///
    /// # Errors
    /// No file can be read, no wait has a time, or the job was stopped.
    pub fn profile_map(&self, request: &Request) -> Result<Map<String, Json>, JobError> {
        let (tasks, refusals) = self.tasks();
        let (profile, outcomes) = self.until_done(|alone| self.profile_tasks(&tasks, request, alone));
        let mut whole = JobReport::new(refusals);
        for outcome in outcomes {
            if let Some((report, damage)) = whole.good(outcome)? {
                whole.file(report, damage.as_ref());
            }
        }
        whole.some_file()?;
        let mut told = profile_json(&profile, request);
        told.extend(whole.counts());
        Ok(told)
    }

    /// Returns the profile and the result of each file.
    fn profile_tasks(
        &self,
        tasks: &[Task],
        request: &Request,
        alone: bool,
    ) -> Result<(Profile, Vec<Outcome<Read>>), Again> {
        let registry = Registry::default();
        let profile = Mutex::new(Profile::default());
        let work = |task: &Task, lexing: usize| -> Outcome<Read> {
            let path = path_of(task);
            let reading = self.reading(task, request.needs_statements());
            let mut reader = Reader::new(Summing::new(request, &path), reading, registry.clone());
            let (compression, damage) = self.read(task, lexing, &mut reader)?;
            let report = report(&reader, &path, &compression, &[]);
            let mut profile = profile.lock().unwrap_or_else(PoisonError::into_inner);
            profile.take(reader.sink);
            for (name, account) in &report.sessions {
                profile.session(account, name, &path, request);
            }
            report.span_ns.inspect(|(from, to)| profile.span(*from, *to));
            Ok((report, damage))
        };
        let outcomes = self.each(tasks, alone, work);
        let profile = profile.into_inner().unwrap_or_else(PoisonError::into_inner);
        again(&outcomes, &registry, alone)?;
        Ok((profile, outcomes))
    }

    /// Writes the evidence of the traces into a folder; returns a report as JSON.
    ///
    /// # Errors
    /// No file can be read, the evidence cannot be written, or the job was stopped.
    pub fn import(&self, out: &Path) -> Result<String, JobError> {
        let (tasks, refusals) = self.tasks();
        let outcomes = self.until_done(|alone| self.import_tasks(&tasks, out, alone))?;
        let mut whole = JobReport::new(refusals);
        for outcome in outcomes {
            if let Some((report, damage)) = whole.good(outcome)? {
                whole.file(report, damage.as_ref());
            }
        }
        whole.some_file()?;
        Ok(whole.text())
    }

    /// Imports the files into `out` and returns the result of each; an error of the outer [`Outcome`] concerns the
    /// folder.
    fn import_tasks(&self, tasks: &[Task], out: &Path, alone: bool) -> Result<Outcome<Vec<Outcome<Read>>>, Again> {
        let registry = Registry::default();
        let folder = match Folder::create(out) {
            Ok(folder) => Arc::new(folder),
            Err(error) => return Ok(Err(error.into())),
        };
        // The numbers of a file's sessions and contexts have its own number in front.
        let bits = 32 - (tasks.len().max(1) as u32 - 1).checked_ilog2().map_or(0, |log| log + 1);
        let work = |task: &Task, lexing: usize| -> Outcome<Read> {
            let options = FileOptions {
                file: task.number,
                base: (u64::from(task.number) << bits) as u32,
                arm: task.arm.clone(),
                binds: self.options.binds,
            };
            let sink = Evidence::new(&folder, &registry, options);
            let reading = self.reading(task, true);
            let mut reader = Reader::new(sink, reading, registry.clone());
            let (compression, damage) = self.read(task, lexing, &mut reader)?;
            let path = path_of(task);
            finish(&mut reader, &path)?;
            folder.done(task.number)?;
            let more = [("file", json!(task.number)), ("arm", json!(task.arm))];
            Ok((report(&reader, &path, &compression, &more), damage))
        };
        let outcomes = self.each(tasks, alone, work);
        again(&outcomes, &registry, alone)?;
        // All parts of files are written and their writers gone.
        let finished = match Arc::into_inner(folder) {
            Some(folder) if outcomes.iter().any(Result::is_ok) => folder.finish(),
            _ => Ok(()),
        };
        Ok(finished.map(|()| outcomes).map_err(JobError::from))
    }

    /// Returns a report on the contents of the traces as JSON.
    ///
    /// # Errors
    /// No file can be read, or the job was stopped.
    pub fn check(&self) -> Result<String, JobError> {
        let (tasks, refusals) = self.tasks();
        let registry = Registry::default();
        let work = |task: &Task, lexing: usize| -> Outcome<Read> {
            let reading = self.reading(task, false);
            let mut reader = Reader::new(NoSink, reading, registry.clone());
            let (compression, damage) = self.read(task, lexing, &mut reader)?;
            Ok((report(&reader, &path_of(task), &compression, &[]), damage))
        };
        let mut whole = JobReport::new(refusals);
        let outcomes = self.until_done(|alone| {
            let outcomes = self.each(&tasks, alone, work);
            again(&outcomes, &registry, alone).map(|()| outcomes)
        });
        for outcome in outcomes {
            match outcome {
                Err(JobError::Stopped) => return Err(JobError::Stopped),
                Err(error) => whole.refuse(&error),
                Ok((report, damage)) => whole.file(report, damage.as_ref()),
            }
        }
        Ok(whole.text())
    }
}

/// Returns an error with the reason if the files must be read again.
fn again<T>(outcomes: &[Outcome<T>], registry: &Registry, alone: bool) -> Result<(), Again> {
    if outcomes.iter().any(|outcome| matches!(outcome, Err(JobError::Unit))) {
        return Err(Again::Unit);
    }
    if registry.is_disordered() && !alone { Err(Again::Alone) } else { Ok(()) }
}

fn path_of(task: &Task) -> String {
    task.source.path().to_string_lossy().into_owned()
}
