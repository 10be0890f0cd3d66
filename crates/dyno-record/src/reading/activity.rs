//! Active sessions of a server, read from its memory: for each period, how often each session was found in each state.
//!
//! One thread looks at the memory about once per millisecond, less often on a busy machine, and closes a period when it
//! is over. It writes nothing to the server and sends no query. The looks end with the server, and when the server creates new shared memory after a
//! crash; the caller must then start again.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value as Json, json};

use crate::RecordError;
use crate::perf::{clock, now_ns};
use crate::process;
use crate::recording::who;
use crate::session::Who;

use super::looks::Looks;
use super::pace::{PACE_NS, Pace, UNASKED, idle_share};
use super::rhythm::{LOOK_NS, Rhythm, machine_ticks, sleep_exactly};
use super::stretches::Pause;
use super::tally::{Found, Sum, Tally};
use super::target::Target;

/// Number of periods that are kept if the caller does not take them.
const PERIODS_MOST: usize = 3600;
/// Time between two checks that the server still uses its memory [ns].
const CHECKED_NS: u64 = 500_000_000;
/// Share of the machine that looks may take while fewer than `IDLE` processors are idle.
const BUSY: f64 = 0.0025;
const IDLE: f64 = 0.5;
/// Number of threads that look at a server; this process can watch several servers.
static READERS: AtomicUsize = AtomicUsize::new(0);
/// Smallest number of looks in a period.
const LOOKS_LEAST: u64 = 10;
/// Class `Activity` in the number of an event: idle background processes.
const ACTIVITY: u32 = 0x05;

/// Active sessions of a server, read by a thread; the thread ends when this is dropped.
pub struct Activity {
    periods: Arc<Mutex<VecDeque<Json>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Reason why the server's memory is copied; `None` if it is mapped.
    pub unmapped: Option<String>,
}

impl Activity {
    /// Begins to look at the server that process `pid` belongs to, once every `look_ns`; a period ends every
    /// `period_ns`.
    ///
    /// # Errors
    /// The server cannot be read.
    pub fn start(pid: i32, look_ns: u64, period_ns: u64) -> Result<Self, RecordError> {
        let target = Target::of(pid)?;
        let (memory, arrays) = target.open(true)?;
        let unmapped = memory.unmapped.clone();
        let horizons = target.horizons(&memory, &arrays);
        let looks = Looks::new(memory, arrays, target.running(), 0).summed(horizons);
        let (periods, stop) = (Arc::new(Mutex::new(VecDeque::new())), Arc::new(AtomicBool::new(false)));
        let job = Job {
            looks,
            target,
            look_ns: look_ns.max(1),
            period_ns: period_ns.max(look_ns),
            tally: Tally::default(),
            who: HashMap::new(),
            periods: periods.clone(),
        };
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("dyno-activity".to_owned())
            .spawn(move || job.run(&stopped))
            .map_err(|error| RecordError::System("a thread cannot be started".to_owned(), error))?;
        Ok(Self { periods, stop, thread: Some(thread), unmapped })
    }

    /// Returns the finished periods as JSON, and removes them.
    pub fn take(&self) -> String {
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        Json::from(periods.drain(..).collect::<Vec<_>>()).to_string()
    }

    /// Returns true if the looks have ended, because the server has ended or has created new shared memory.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the looks and releases the memory.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that broke down has nothing to say.
            drop(thread.join());
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Job {
    looks: Looks,
    target: Target,
    look_ns: u64,
    period_ns: u64,
    tally: Tally,
    who: HashMap<u32, Who>,
    periods: Arc<Mutex<VecDeque<Json>>>,
}

impl Job {
    fn run(mut self, stop: &AtomicBool) {
        sleep_exactly();
        let begin_ns = now_ns();
        let mut rhythm = Rhythm::new(None, begin_ns);
        let mut allowed = Allowed::new(begin_ns);
        rhythm.pace = self.pace(allowed.paid_ns(begin_ns, LOOK_NS));
        let mut pause = Pause::new(rhythm.pace);
        let (mut end_ns, mut checked_ns) = (begin_ns + self.period_ns, begin_ns);
        while !stop.load(Ordering::Relaxed) {
            rhythm.wait();
            self.looks.look(&mut pause);
            self.tally.add(self.looks.take());
            let at_ns = now_ns();
            if at_ns >= end_ns {
                let spent_ns = rhythm.spent_ns();
                let looks = self.close(spent_ns);
                end_ns = at_ns + self.period_ns - (at_ns - end_ns) % self.period_ns;
                rhythm.pace = self.pace(allowed.paid_ns(at_ns, spent_ns / looks.max(1)));
                pause.change(rhythm.pace);
            }
            if at_ns - checked_ns >= CHECKED_NS {
                checked_ns = at_ns;
                if process::over(self.target.postmaster, None).is_some() || !self.looks.is_current() {
                    return;
                }
            }
        }
    }

    /// Returns the pace for looks that must be at least `paid_ns` apart.
    fn pace(&self, paid_ns: u64) -> Pace {
        Pace::Every(paid_ns.min(self.period_ns / LOOKS_LEAST).max(self.look_ns))
    }

    /// Closes a period; returns the number of its looks.
    fn close(&mut self, spent_ns: u64) -> u64 {
        let (sums, looks) = self.tally.take();
        let names: HashMap<u32, String> = self.looks.applications().collect();
        let mut rows: Vec<(Found, Sum)> = sums.into_iter().filter(|(found, _)| self.is_shown(found)).collect();
        rows.sort_unstable_by_key(|(found, sum)| (found.number, sum.until));
        let mut horizons = self.looks.take_horizons();
        // The last state in which a session was seen has the age of its horizon.
        let rows: Vec<Json> = rows
            .iter()
            .rev()
            .filter_map(|(found, sum)| {
                let horizon_age = horizons.remove(&found.number);
                self.row(found, sum, (names.get(&found.number), horizon_age))
            })
            .collect();
        for number in self.tally.forget() {
            self.who.remove(&number);
        }
        let at_us = clock(libc::CLOCK_REALTIME) / 1000;
        let mut periods = self.periods.lock().unwrap_or_else(PoisonError::into_inner);
        if periods.len() == PERIODS_MOST {
            periods.pop_front();
        }
        periods.push_back(json!({"at_us": at_us, "looks": looks, "cpu_ns": spent_ns, "rows": rows}));
        looks
    }

    /// Returns true for sessions with a transaction, and for background processes that are not idle.
    fn is_shown(&self, found: &Found) -> bool {
        match self.state(found.state) {
            Some(name) => !name.is_empty(),
            None => found.event >> 24 != ACTIVITY,
        }
    }

    /// Returns the name of a session's state: empty for a state without a transaction, `None` if there is no state.
    fn state(&self, state: u32) -> Option<&'static str> {
        let [running, fastpath] = self.target.running();
        match state {
            0 => None,
            _ if state == running => Some("active"),
            _ if state == fastpath => Some("fastpath function call"),
            _ if state == running + 1 => Some("idle in transaction"),
            _ if state == fastpath + 1 => Some("idle in transaction (aborted)"),
            _ => Some(""),
        }
    }

    /// Returns a sum as an array, in the order of `_Sum` in `memory.py`.
    ///
    /// The starts are only given for the state that lasts: they are not known for the end of the others.
    fn row(
        &mut self,
        found: &Found,
        sum: &Sum,
        (application, horizon_age): (Option<&String>, Option<u32>),
    ) -> Option<Json> {
        let pid = self.tally.processes.get(&found.number)?.pid;
        let names_of = |event| self.target.known.names.get(event).cloned();
        let event = names_of(&found.event).or_else(|| (found.event != 0).then(|| self.unnamed(found.event)));
        let (class, name) = event.map_or((None, None), |(class, name)| (Some(class), Some(name)));
        let state = self.state(found.state);
        let known = self.who.entry(found.number).or_default();
        // Until a session has logged in its title has no database.
        if known.kind.is_empty() || known.kind == "client backend" && known.database.is_empty() {
            *known = process::title(pid).map_or_else(Who::default, |title| who(&title));
        }
        Some(json!([
            found.number,
            pid,
            known.kind,
            known.user,
            known.database,
            application,
            state,
            (found.query_id != 0).then_some(found.query_id as i64),
            class,
            name,
            sum.looks,
            if sum.until == self.tally.looks { sum.since_us } else { [0; 3] },
            horizon_age,
        ]))
    }

    /// Returns the class of an event for which the program has no name, and the event number as its name.
    fn unnamed(&self, event: u32) -> (String, String) {
        let is_like = |number: &&u32| **number >> 24 == event >> 24;
        let class = self.target.known.names.keys().find(is_like).and_then(|number| self.target.known.names.get(number));
        (class.map_or_else(|| format!("class {:#04x}", event >> 24), |name| name.0.clone()), format!("{event:#010x}"))
    }
}

/// Share of the machine that the looks of all threads of this kind may take, depending on how much of the machine has
/// been idle lately.
struct Allowed {
    share: f64,
    at_ns: u64,
    ticks: (u64, u64),
}

impl Allowed {
    fn new(at_ns: u64) -> Self {
        READERS.fetch_add(1, Ordering::Relaxed);
        Self { share: BUSY, at_ns, ticks: machine_ticks() }
    }

    /// Returns the shortest time between two looks of this cost that stays within the allowed share [ns].
    fn paid_ns(&mut self, at_ns: u64, look_ns: u64) -> u64 {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as f64;
        if at_ns - self.at_ns >= PACE_NS {
            let ticks = machine_ticks();
            let is_idle = idle_share(self.ticks, ticks) * processors >= IDLE;
            (self.share, self.at_ns, self.ticks) = (if is_idle { UNASKED } else { BUSY }, at_ns, ticks);
        }
        let readers = READERS.load(Ordering::Relaxed) as f64;
        (look_ns as f64 * readers / (self.share * processors)) as u64
    }
}

impl Drop for Allowed {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}
