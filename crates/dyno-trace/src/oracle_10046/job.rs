//! Reading any number of traces: for a profile, for an import, or to see what is in them.
//!
//! Several files are read side by side, one thread each; a single file is lexed by several threads
//! and accounted for by one. What is refused is told, and the others are read all the same.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dyno_evidence::EvidenceError;
use serde_json::{Map, Value as Json, json};

use super::accounting::Account;
use super::check::{FileReport, account_json, report};
use super::evidence::{Evidence, FileOptions, Folder, finish};
use super::files::{ReadOptions, read_file};
use super::filter::{Field, Filter, FilterError};
use super::input::{Source, expand};
use super::profile::{BY_MAX, Profile, Request, Summing, profile_json};
use super::reader::{CENTISECOND_NS, MICROSECOND_NS, Reader, Reading};
use super::refusal::Refusal;
use super::rows::{NoSink, Sink};
use super::statements::Registry;

/// Why a job ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A file, directory or pattern is not read.
    #[error("{refusal}\n  next: {}", refusal.next_step())]
    Refused {
        /// Why.
        refusal: Refusal,
    },
    /// The evidence could not be written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
    /// Waits, and no time in any of them.
    #[error(
        "{path}: {waits} WAIT lines and not one with a time that could be read: the lines are not \
         written as any known version does it\n  next: look at them with `trace check`, and keep \
         the file: the reader has to learn this version"
    )]
    NoElapsed {
        /// The file.
        path: String,
        /// Number of lines.
        waits: u64,
    },
    /// Options or a request that cannot be understood.
    #[error("{0}")]
    Options(String),
    /// A filter that cannot be understood.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// What is read, and how.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// Files, directories and patterns, each with its arm.
    pub files: Vec<(String, String)>,
    /// A message from the client that takes so long is think time.
    pub think_time_ns: i64,
    /// Whether binds are kept.
    pub binds: bool,
    /// Threads; as many as there are processors where it is not said.
    pub threads: Option<usize>,
    /// Whether times are centiseconds (8i); as the header tells where it is not said.
    pub centiseconds: Option<bool>,
    /// Bytes lexed at a time.
    pub chunk_bytes: Option<usize>,
}

impl From<Refusal> for JobError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { refusal }
    }
}

fn wrong(what: &str) -> JobError {
    JobError::Options(what.to_owned())
}

impl JobOptions {
    /// From JSON: `files` (paths, or `{"path", "arm"}`), `think_time_ns`, `binds`, `threads`,
    /// `centiseconds`.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let json: Json = serde_json::from_str(text).map_err(|e| JobError::Options(e.to_string()))?;
        let files = json["files"].as_array().ok_or_else(|| wrong("files: a list of paths is needed"))?;
        let file = |file: &Json| match file {
            Json::String(path) => Ok((path.clone(), String::new())),
            other => {
                let path = other["path"].as_str().ok_or_else(|| wrong("files: a path is needed"))?;
                Ok((path.to_owned(), other["arm"].as_str().unwrap_or_default().to_owned()))
            }
        };
        Ok(Self {
            files: files.iter().map(file).collect::<Result<_, JobError>>()?,
            think_time_ns: json["think_time_ns"].as_i64().unwrap_or(1_000_000_000),
            binds: json["binds"].as_bool().unwrap_or(false),
            threads: json["threads"].as_u64().map(|threads| threads as usize),
            centiseconds: json["centiseconds"].as_bool(),
            chunk_bytes: json["chunk_bytes"].as_u64().map(|bytes| bytes as usize),
        })
    }

    /// These files, all else as usual.
    pub fn of<P: AsRef<str>>(paths: &[P]) -> Self {
        Self {
            files: paths.iter().map(|path| (path.as_ref().to_owned(), String::new())).collect(),
            think_time_ns: 1_000_000_000,
            binds: false,
            threads: None,
            centiseconds: None,
            chunk_bytes: None,
        }
    }

    fn reading(&self, statements: bool) -> Reading {
        let unit = |centiseconds| if centiseconds { CENTISECOND_NS } else { MICROSECOND_NS };
        Reading {
            unit_ns: self.centiseconds.map(unit),
            think_time_ns: self.think_time_ns,
            statements,
        }
    }
}

/// What a profile is asked for, from JSON: `by`, `where`, `from_ns`, `to_ns`, `depth`, `top`.
pub fn request_from_json(text: &str) -> Result<Request, JobError> {
    let json: Json = serde_json::from_str(text).map_err(|e| JobError::Options(e.to_string()))?;
    let mut request = Request::default();
    if let Some(by) = json["by"].as_array().filter(|by| !by.is_empty()) {
        let field = |name: &Json| {
            let name = name.as_str().unwrap_or_default();
            Field::to_group_by(name).ok_or_else(|| {
                let known: Vec<&str> = Field::ALL[..Field::ALL.len() - 2].iter().map(|(n, _)| *n).collect();
                JobError::Options(format!(
                    "by: there is no {name:?}\n  next: choose from {}",
                    known.join(", ")
                ))
            })
        };
        request.by = by.iter().map(field).collect::<Result<_, JobError>>()?;
    }
    if request.by.len() > BY_MAX {
        return Err(JobError::Options(format!("by: at most {BY_MAX} at once")));
    }
    request.filter = json["where"].as_str().map(Filter::parse).transpose()?;
    request.from_ns = json["from_ns"].as_i64();
    request.to_ns = json["to_ns"].as_i64();
    request.depth = json["depth"].as_u64().map(|depth| depth.min(254) as u8);
    request.top = json["top"].as_u64().map(|top| top as usize);
    Ok(request)
}

/// One file to read.
struct Task {
    number: u32,
    source: Source,
    arm: String,
}

/// What became of a file.
type Outcome<T> = Result<T, JobError>;

/// A reading of some traces, which another thread may watch and stop.
#[derive(Debug)]
pub struct Job {
    options: JobOptions,
    taken: Arc<AtomicU64>,
    total: AtomicU64,
    stop: AtomicBool,
}

impl Job {
    /// A job that has not begun.
    pub fn new(options: JobOptions) -> Self {
        Self { options, taken: Arc::default(), total: AtomicU64::new(0), stop: AtomicBool::new(false) }
    }

    /// Bytes read and bytes in all, as they are on disk; 0 in all before it is known.
    pub fn progress(&self) -> (u64, u64) {
        (self.taken.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Ends the job soon.
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

    fn threads(&self) -> usize {
        let found = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.options.threads.filter(|threads| *threads > 0).unwrap_or_else(found)
    }

    /// Does `work` for every file; results in the order of the files.
    fn each<T: Send>(&self, tasks: &[Task], work: impl Fn(&Task, usize) -> T + Sync) -> Vec<T> {
        let threads = self.threads();
        if tasks.len() < 2 || threads < 2 {
            let lexing = if tasks.len() < 2 { threads - 1 } else { 0 };
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

    /// Reads a file into a sink. What was read before damage is kept; the damage is told.
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
            Ok(batch)
        });
        let ended = match ended {
            Ok(end) => (end.compression.to_string(), None),
            Err(JobError::Refused { refusal: damage @ Refusal::Damaged { .. } }) => {
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

    /// Where the time of the sessions went, as JSON.
    pub fn profile(&self, request: &Request) -> Result<String, JobError> {
        let (tasks, refusals) = self.tasks();
        let registry = Registry::default();
        let work = |task: &Task, lexing: usize| -> Outcome<(Summing, FileReport, Option<Refusal>)> {
            let path = path_of(task);
            let reading = self.options.reading(request.needs_statements());
            let mut reader = Reader::new(Summing::new(request, &path), reading, registry.clone());
            let (compression, damage) = self.read(task, lexing, &mut reader)?;
            let report = report(&reader, &path, &compression);
            Ok((reader.sink, report, damage))
        };
        let outcomes = self.each(&tasks, work);
        let mut whole = Told::new(refusals);
        let mut profile = Profile::default();
        for (task, outcome) in tasks.iter().zip(outcomes) {
            if let Some((summing, report, damage)) = whole.good(outcome)? {
                profile.take(summing);
                let path = path_of(task);
                for (name, account) in &report.sessions {
                    profile.session(account, name, &path, request);
                }
                report.span_ns.inspect(|(from, to)| profile.span(*from, *to));
                whole.file(report, damage);
            }
        }
        whole.some_file()?;
        let mut told = profile_json(&profile, request);
        told.extend(whole.counts());
        Ok(Json::Object(told).to_string())
    }

    /// Writes the evidence of the traces into a folder; tells about them as JSON.
    pub fn import(&self, out: &Path) -> Result<String, JobError> {
        let (tasks, refusals) = self.tasks();
        let registry = Registry::default();
        let folder = Arc::new(Folder::create(out)?);
        let bits = 32 - (tasks.len().max(1) as u32 - 1).checked_ilog2().map_or(0, |log| log + 1);
        let work = |task: &Task, lexing: usize| -> Outcome<(FileReport, Option<Refusal>)> {
            let options = FileOptions {
                file: task.number,
                base: (u64::from(task.number) << bits) as u32,
                arm: task.arm.clone(),
                binds: self.options.binds,
            };
            let sink = Evidence::new(&folder, &registry, options);
            let mut reader = Reader::new(sink, self.options.reading(true), registry.clone());
            let (compression, damage) = self.read(task, lexing, &mut reader)?;
            let path = path_of(task);
            finish(&mut reader, &path)?;
            Ok((report(&reader, &path, &compression), damage))
        };
        let outcomes = self.each(&tasks, work);
        let mut whole = Told::new(refusals);
        for (task, outcome) in tasks.iter().zip(outcomes) {
            if let Some((mut report, damage)) = whole.good(outcome)? {
                if let Json::Object(told) = &mut report.json {
                    told.insert("file".to_owned(), json!(task.number));
                    told.insert("arm".to_owned(), json!(task.arm));
                }
                whole.file(report, damage);
            }
        }
        whole.some_file()?;
        // All parts of files are written and their writers gone.
        if let Some(folder) = Arc::into_inner(folder) {
            folder.finish()?;
        }
        Ok(whole.json().to_string())
    }

    /// What is in the traces, as JSON.
    pub fn check(&self) -> Result<String, JobError> {
        let (tasks, refusals) = self.tasks();
        let registry = Registry::default();
        let work = |task: &Task, lexing: usize| -> Outcome<(FileReport, Option<Refusal>)> {
            let mut reader = Reader::new(NoSink, self.options.reading(false), registry.clone());
            let (compression, damage) = self.read(task, lexing, &mut reader)?;
            Ok((report(&reader, &path_of(task), &compression), damage))
        };
        let mut whole = Told::new(refusals);
        for outcome in self.each(&tasks, work) {
            match outcome {
                Err(JobError::Stopped) => return Err(JobError::Stopped),
                Err(error) => whole.refuse(&error),
                Ok((report, damage)) => whole.file(report, damage),
            }
        }
        Ok(whole.json().to_string())
    }
}

fn path_of(task: &Task) -> String {
    task.source.path().to_string_lossy().into_owned()
}

/// What is told of all files together.
struct Told {
    files: Vec<FileReport>,
    refused: Vec<Json>,
    first_refusal: Option<JobError>,
}

fn refusal_json(refusal: &Refusal) -> Json {
    json!({
        "path": refusal.path().map(|path| path.to_string_lossy()),
        "sentence": refusal.to_string(),
        "next_step": refusal.next_step(),
    })
}

impl Told {
    fn new(refusals: Vec<Refusal>) -> Self {
        let refused = refusals.iter().map(refusal_json).collect();
        let first_refusal = refusals.into_iter().next().map(JobError::from);
        Self { files: Vec::new(), refused, first_refusal }
    }

    /// What a file gave; a refusal is noted and the others go on; anything else ends the job.
    fn good<T>(&mut self, outcome: Outcome<T>) -> Result<Option<T>, JobError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(JobError::Refused { refusal }) => {
                self.refused.push(refusal_json(&refusal));
                self.first_refusal.get_or_insert(JobError::Refused { refusal });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn refuse(&mut self, error: &JobError) {
        match error {
            JobError::Refused { refusal } => self.refused.push(refusal_json(refusal)),
            other => self.refused.push(json!({"path": null, "sentence": other.to_string(), "next_step": null})),
        }
    }

    fn file(&mut self, report: FileReport, damage: Option<Refusal>) {
        self.files.push(report);
        self.refused.extend(damage.as_ref().map(refusal_json));
    }

    /// Fails with the first refusal if there is nothing else.
    fn some_file(&mut self) -> Result<(), JobError> {
        if !self.files.is_empty() {
            return Ok(());
        }
        Err(self.first_refusal.take().unwrap_or_else(|| wrong("no files were given")))
    }

    fn unread(&self) -> Json {
        let mut counts: Map<String, Json> = Map::new();
        for missed in self.files.iter().flat_map(|file| &file.tally.missed) {
            let word = super::tally::word_of(*missed.0);
            let before = counts.get(word).and_then(Json::as_u64).unwrap_or(0);
            counts.insert(word.to_owned(), json!(before + missed.1.count));
        }
        Json::Object(counts)
    }

    fn counts(&self) -> Map<String, Json> {
        let sum = |value: fn(&FileReport) -> u64| self.files.iter().map(value).sum::<u64>();
        let mut told = Map::new();
        told.insert("files".to_owned(), json!(self.files.len()));
        told.insert("bytes".to_owned(), json!(sum(|file| file.tally.bytes)));
        told.insert("lines".to_owned(), json!(sum(|file| file.tally.lines)));
        told.insert("unread".to_owned(), self.unread());
        told.insert("warnings".to_owned(), self.warnings());
        told.insert("refused".to_owned(), json!(self.refused));
        told
    }

    fn warnings(&self) -> Json {
        json!(self.files.iter().flat_map(|file| &file.warnings).collect::<Vec<_>>())
    }

    fn json(&self) -> Json {
        let mut account = Account::default();
        self.files.iter().for_each(|file| account.add(&file.account));
        let sum = |value: fn(&FileReport) -> u64| self.files.iter().map(value).sum::<u64>();
        let totals = json!({
            "files": self.files.len(),
            "bytes": sum(|file| file.tally.bytes),
            "lines": sum(|file| file.tally.lines),
            "records": sum(|file| file.tally.records.iter().sum()),
            "account": account_json(&account),
        });
        let missed = self.files.iter().any(|file| !file.tally.missed.is_empty());
        json!({
            "files": self.files.iter().map(|file| file.json.clone()).collect::<Vec<_>>(),
            "refused": self.refused,
            "ok": !missed && self.refused.is_empty() && !self.files.is_empty(),
            "totals": totals,
            "sessions": self.files.iter().map(|file| file.sessions.len()).sum::<usize>(),
            "unread": self.unread(),
            "warnings": self.warnings(),
        })
    }
}
