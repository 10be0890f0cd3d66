//! Replay of a capture: the same sessions, each with its round trips and think times.
//!
//! [`read`] loads a capture, [`stretch`] cuts a part out of it, [`play`] runs a session, and [`order`] preserves the
//! order of sessions and of commits. [`ids`] maps keys that are generated again, at the positions that [`keys`] has for
//! each [`shape`] of a statement.
//!
//! Limits: all sessions log in as the configured user. Round trips whose messages were not kept completely (texts that
//! mention a password, messages over 64 MiB) are left out and counted.

mod bind;
pub mod ids;
pub mod keys;
pub mod order;
mod outcome;
pub mod places;
mod play;
pub mod read;
pub mod shape;
mod spoken;
pub mod stretch;
pub mod timed;
pub mod values;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use dyno_evidence::EvidenceError;
use dyno_load::ConnectionSpec;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use ids::Ids;
use order::{Ends, Order, PATIENCE};
pub use outcome::Outcome;
use places::KeyPlan;
pub use play::Progress;
use play::{Stage, give_up, play};
use stretch::Cut;
use timed::{Clock, Timed};
use values::Kind;

/// Reason why nothing is replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// No messages were captured.
    #[error(
        "{0} has no messages to replay: messages are kept only with --binds\n  next: capture with \
         dbdyno trace proxy --binds"
    )]
    NoMessages(String),
    /// The capture would write, which was not allowed.
    #[error(
        "the capture overrides read-only transactions ({0}), and writing was not allowed\n  next: name a database for it \
         with --writes"
    )]
    Lifts(String),
    /// No transaction began in the requested part.
    #[error(
        "no transaction began in this part of the capture, which lasts {0:.1} s\n  next: name times since its first \
         message, such as --from 1min --to 2min"
    )]
    Empty(f64),
    /// The evidence cannot be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The request is invalid.
    #[error("{0}")]
    Request(String),
}

/// Parameters of a replay.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Folder of the captured run.
    pub run: PathBuf,
    /// Connection to the target, as for a load.
    pub connection: ConnectionSpec,
    /// Speed relative to the capture; 0 for no pauses at all.
    pub speed: f64,
    /// True to keep the order of commits.
    #[serde(default)]
    pub order: bool,
    /// True if the replay may write.
    #[serde(default)]
    pub writes: bool,
    /// SQL that each session sends before anything else.
    #[serde(default)]
    pub session_sql: Vec<String>,
    /// True to time transactions.
    #[serde(default)]
    pub timed: bool,
    /// Keep only what begins at or after this time since the capture's first message [ns].
    #[serde(default)]
    pub from_ns: Option<u64>,
    /// Keep only what begins before this time since the capture's first message [ns].
    #[serde(default)]
    pub to_ns: Option<u64>,
    /// Positions at which keys are mapped; without them nothing is mapped.
    #[serde(default)]
    pub keys: KeyPlan,
}

/// Report of a replay, and its timed transactions.
type Replayed = (Json, Vec<Timed>);

/// Running replay.
pub struct Replay {
    stop: Arc<AtomicBool>,
    progress: Arc<Progress>,
    turns: usize,
    thread: Mutex<Option<JoinHandle<Replayed>>>,
    timed: Mutex<Vec<Timed>>,
}

impl Replay {
    /// Starts a replay.
    ///
    /// # Errors
    /// The request is invalid, the capture cannot be read, or it writes although that was not allowed.
    pub fn start(request: &str) -> Result<Self, ReplayError> {
        let mut request: Request =
            serde_json::from_str(request).map_err(|error| ReplayError::Request(error.to_string()))?;
        if !request.speed.is_finite() || request.speed < 0.0 {
            return Err(ReplayError::Request("a speed is a number of times, or max".to_owned()));
        }
        let mut sessions = read::read(&request.run)?;
        if sessions.is_empty() {
            return Err(ReplayError::NoMessages(request.run.display().to_string()));
        }
        let cut = part(&mut sessions, request.from_ns, request.to_ns)?;
        if !request.writes {
            stays_read_only(&sessions)?;
            let options = request.connection.options.take().unwrap_or_default();
            request.connection.options =
                Some(format!("{options} -c default_transaction_read_only=on").trim().to_owned());
        }
        let (stop, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(Progress::default()));
        let kinds = std::mem::take(&mut request.keys.spaces);
        keys::attach(&mut sessions, std::mem::take(&mut request.keys));
        let turns = sessions.iter().map(|session| session.turns.len()).sum();
        let (stops, shown) = (Arc::clone(&stop), Arc::clone(&progress));
        let thread = std::thread::Builder::new()
            .name("dyno-replay".to_owned())
            .spawn(move || run(&request, &kinds, &sessions, cut, &stops, &shown))
            .map_err(|error| ReplayError::Request(format!("a thread cannot be started: {error}")))?;
        Ok(Self { stop, progress, turns, thread: Mutex::new(Some(thread)), timed: Mutex::default() })
    }

    /// Returns the progress as JSON.
    pub fn progress(&self) -> String {
        let load = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
        let progress = &self.progress;
        json!({
            "turns": load(&progress.turns), "turns_all": self.turns, "sessions": load(&progress.sessions),
            "differing": load(&progress.differing),
        })
        .to_string()
    }

    /// Returns true if the replay has ended.
    pub fn is_over(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Asks the replay to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the end of the replay; returns its report as JSON.
    ///
    /// # Errors
    /// The replay failed, or was finished before.
    pub fn finish(&self) -> Result<String, ReplayError> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| ReplayError::Request("the replay is over".to_owned()))?;
        let broke = |_| ReplayError::Request("the replay broke down".to_owned());
        let (report, timed) = thread.join().map_err(broke)?;
        *self.timed.lock().unwrap_or_else(PoisonError::into_inner) = timed;
        Ok(report.to_string())
    }

    /// Returns the timed transactions as JSON columns; empty before [`Replay::finish`].
    pub fn timed(&self) -> String {
        timed::columns(&self.timed.lock().unwrap_or_else(PoisonError::into_inner)).to_string()
    }
}

/// Returns a summary of a capture as JSON.
///
/// # Errors
/// The capture cannot be read or has no messages.
pub fn summary_of_capture(run: &Path) -> Result<String, ReplayError> {
    let sessions = read::read(run)?;
    if sessions.is_empty() {
        return Err(ReplayError::NoMessages(run.display().to_string()));
    }
    let mut summary = timed::summary(&sessions);
    summary["writes"] = json!(sessions.iter().flat_map(|one| &one.turns).filter(|turn| turn.needs_writes()).count());
    summary["lifts"] = json!(stays_read_only(&sessions).is_err());
    Ok(summary.to_string())
}

/// Returns the distinct shapes of a capture's statements, or of a part of it, with their counts, as JSON.
///
/// # Errors
/// The capture cannot be read, has no messages, or no transaction in this part.
pub fn statements(run: &Path, from_ns: Option<u64>, to_ns: Option<u64>) -> Result<String, ReplayError> {
    let mut sessions = read::read(run)?;
    if sessions.is_empty() {
        return Err(ReplayError::NoMessages(run.display().to_string()));
    }
    part(&mut sessions, from_ns, to_ns)?;
    Ok(json!(shape::shapes(&sessions)).to_string())
}

/// Checks that no statement would make a read-only session write.
fn stays_read_only(sessions: &[read::Session]) -> Result<(), ReplayError> {
    for text in sessions.iter().flat_map(|session| &session.turns).flat_map(read::Turn::texts) {
        let lower = dyno_evidence::normal::normal(text).to_ascii_lowercase();
        // Names of settings may be in literals, too.
        let raw = String::from_utf8_lossy(text).to_ascii_lowercase();
        if lower.contains("read write") || raw.contains("read_only") {
            return Err(ReplayError::Lifts(lower.chars().take(80).collect()));
        }
    }
    Ok(())
}

/// Keeps the requested part; times are since the capture's first message [ns].
pub(crate) fn part(
    sessions: &mut Vec<read::Session>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
) -> Result<Cut, ReplayError> {
    if from_ns.is_none() && to_ns.is_none() {
        return Ok(Cut::default());
    }
    let (first_ns, last_ns) = span(sessions);
    let from_ns = first_ns.saturating_add(from_ns.unwrap_or(0));
    let to_ns = to_ns.map_or(u64::MAX, |to_ns| first_ns.saturating_add(to_ns));
    let cut = stretch::cut(sessions, from_ns, to_ns);
    if sessions.is_empty() {
        let length_s = last_ns.saturating_sub(first_ns) as f64 / 1e9;
        return Err(ReplayError::Empty(length_s));
    }
    Ok(cut)
}

/// Returns the time of the first message and of the last answer [ns].
fn span(sessions: &[read::Session]) -> (u64, u64) {
    let first_ns = sessions.iter().filter_map(|one| one.turns.first()).map(|turn| turn.sent_ns).min().unwrap_or(0);
    let last_ns = sessions.iter().flat_map(|one| &one.turns).filter_map(|turn| turn.done_ns).max().unwrap_or(first_ns);
    (first_ns, last_ns)
}

fn run(
    request: &Request,
    kinds: &[Kind],
    sessions: &[read::Session],
    cut: Cut,
    stop: &Arc<AtomicBool>,
    progress: &Progress,
) -> Replayed {
    let order = request.order.then(|| Order::of(sessions, PATIENCE));
    let ids = Ids::new(kinds);
    for turn in sessions.iter().flat_map(|session| &session.turns) {
        if let Some(done_ns) = turn.done_ns {
            keys::each_key(turn, |space, value, is_binary| ids.expect(space, value, is_binary, done_ns));
        }
    }
    let (first_ns, last_ns) = span(sessions);
    let stage = Stage {
        spec: &request.connection,
        stop,
        speed: request.speed,
        order: order.as_ref(),
        ids: &ids,
        begun: Instant::now(),
        first_ns,
        progress,
        session_sql: &request.session_sql,
        clock: request.timed.then(Clock::now),
    };
    let whole = play_all(&stage, sessions);
    let counts = ids.counts();
    let report = json!({
        "sessions": sessions.len(),
        "turns": whole.turns,
        "turns_all": sessions.iter().map(|one| one.turns.len()).sum::<usize>(),
        "commits": order.as_ref().map_or(0, Order::len),
        "then_ns": last_ns.saturating_sub(first_ns),
        "elapsed_ns": stage.begun.elapsed().as_nanos() as u64,
        "same": whole.same,
        "uncounted": whole.uncounted,
        "rows_differ": whole.rows_differ,
        "fails_now": whole.fails_now,
        "failed_then": whole.failed_then,
        "fails_otherwise": whole.fails_otherwise,
        "uneven": whole.uneven,
        "ids": counts.iter().map(|(count, _)| count).sum::<usize>(),
        "mapped": whole.mapped,
        "keys": counts,
        "late_keys": ids.late(),
        "out_of_order": whole.out_of_order,
        "left_out": whole.left_out,
        "outside": cut.outside,
        "set_up": cut.set_up,
        "broken": whole.broken,
        "late_ns": whole.late_ns,
        "stopped": stop.load(Ordering::Relaxed),
        "differing": whole.by_statement(),
        "told": whole.examples,
    });
    (report, whole.timed)
}

/// Guard that marks a session as ended when the guard is dropped, however the session's thread ends.
struct Ended<'a>(&'a Ends, usize);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.finish(self.1);
    }
}

/// Runs the sessions; each begins once all sessions that ended before its beginning in the capture have ended.
fn play_all(stage: &Stage<'_>, sessions: &[read::Session]) -> Outcome {
    let ends = Ends::of(sessions);
    let mut by_begin: Vec<usize> = (0..sessions.len()).collect();
    by_begin.sort_by_key(|at| sessions[*at].span_ns().0);
    let mut whole = Outcome::default();
    std::thread::scope(|scope| {
        let ends = &ends;
        let mut work = Vec::new();
        for at in by_begin {
            let session = &sessions[at];
            if !ends.wait(session.span_ns().0, stage.stop) {
                break;
            }
            let ended = Ended(ends, at);
            let thread = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, move || {
                let _ended = ended;
                play(stage, at as u32, session)
            });
            if thread.is_err() {
                give_up(stage, at as u32, session, 0);
            }
            work.push(thread);
        }
        for thread in work {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(outcome)) => whole.add(outcome),
                _ => whole.broken += 1,
            }
        }
    });
    whole
}
