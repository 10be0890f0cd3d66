//! Execution of a load ([`Load`]): the sessions of all arms, and one block after the other.
//!
//! ```text
//!   caller's thread                     a few threads, some sessions each
//!   Load::run ---- slices ------------> gate -> slice -> gate -> slice ...
//!      |                                          |
//!      |<------- full buffers of rows ------------'
//!      v
//!   CallsWriter                         on a request to stop: cancel requests, then closed sockets
//! ```

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use dyno_evidence::CallsWriter;
use dyno_script::{Rng, Seeds};

use crate::LoadError;
use crate::block::{Activity, Block, Handles, open};
use crate::clock::Clock;
use crate::dialler::Dialler;
use crate::gate::Gate;
use crate::line::Line;
use crate::plan::{ArmPlan, Plan};
use crate::record::{self, Failures, Pool, Recorder};
use crate::schedule::Arrivals;
use crate::session_state::SessionState;
use crate::slice::{Quota, Slice};
use crate::spec::LoadSpec;
use crate::supervise::{RowWriter, supervise};
use crate::tally::{ArmReport, BlockReport, LineReport};
use crate::worker::{self, Outcome, ThreadSession};

/// Seeds of random streams that are not used for values in scripts: for the choice of scripts, and for arrivals.
pub(crate) const CHOICE_STREAM: u64 = 0x6368_6f69_6365;
const ARRIVAL_STREAM: u64 = 0x6172_7269_7661;

/// Load on one or more engines, ready to run block after block.
#[derive(Debug)]
pub struct Load {
    plan: Plan,
    diallers: Vec<Option<Dialler>>,
    /// For each arm, the network line that its sessions use, or `None` for a direct connection.
    lines: Vec<Option<Arc<Line>>>,
    /// State of each session, by session number, then by arm; `None` where the arm has fewer sessions.
    states: Vec<Vec<Option<SessionState>>>,
    handles: Vec<Handles>,
    arrivals: Vec<Option<Mutex<Arrivals>>>,
    failures: Failures,
    pool: Pool,
    /// One clock for all blocks, so that a step of the wall clock between blocks does not reach the evidence.
    clock: Clock,
}

impl Load {
    /// Checks the specification and compiles all scripts; no I/O.
    ///
    /// # Errors
    /// The specification is invalid, or a script does not parse.
    pub fn new(spec: &LoadSpec) -> Result<Self, LoadError> {
        let plan = Plan::new(spec)?;
        let arms = plan.arms.len();
        let mut states: Vec<Vec<Option<SessionState>>> = Vec::new();
        states.resize_with(plan.sessions(), || (0..arms).map(|_| None).collect());
        for (number, arm) in plan.arms.iter().enumerate() {
            let mut seeds = Seeds::new(spec.seed);
            let mut choices = Seeds::new(spec.seed ^ CHOICE_STREAM);
            for (session, row) in states.iter_mut().enumerate().take(arm.spec.sessions.into()) {
                let state = SessionState::new(session as u16, arm, seeds.session(), choices.session());
                row[number] = Some(state);
            }
        }
        let arrivals = plan.arms.iter().map(|arm| {
            let rate = arm.spec.rate_per_s?;
            Some(Mutex::new(Arrivals::new(Rng::new(spec.seed ^ ARRIVAL_STREAM), rate)))
        });
        Ok(Self {
            arrivals: arrivals.collect(),
            diallers: (0..arms).map(|_| None).collect(),
            lines: (0..arms).map(|_| None).collect(),
            handles: states.iter().map(|_| (0..arms).map(|_| Mutex::default()).collect()).collect(),
            states,
            plan,
            failures: Failures::default(),
            pool: Pool::default(),
            clock: Clock::new(),
        })
    }

    /// Returns the names of the arms, indexed by [`Call::arm`].
    pub fn arm_names(&self) -> Vec<String> {
        self.plan.arms.iter().map(|arm| arm.spec.name.clone()).collect()
    }

    /// Returns the names of scripts and commands, indexed by [`Call::statement`].
    pub fn statement_names(&self) -> &[String] {
        &self.plan.statements
    }

    /// Logs in to the server of each arm once and disconnects, so that a refused login is found before anything is
    /// written.
    ///
    /// # Errors
    /// A server cannot be reached or refuses the login, or an arm's line cannot be created.
    pub fn try_connect(&mut self, stop: &Arc<AtomicBool>) -> Result<(), LoadError> {
        for arm in 0..self.plan.arms.len() {
            self.prepare_dialler(arm)?;
            let Some(dialler) = &self.diallers[arm] else { continue };
            let link = dialler.connect(None, stop, &Arc::default());
            link.map_err(|e| LoadError::connect(dialler.spec(), e))?.terminate();
        }
        Ok(())
    }

    fn prepare_dialler(&mut self, arm: usize) -> Result<(), LoadError> {
        let plan = self.arm(arm)?;
        if self.diallers[arm].is_none() {
            let connection = &plan.spec.connection;
            let dialler = Dialler::new(connection).map_err(|e| LoadError::connect(connection, e))?;
            let line = plan.spec.network.map(|spec| Line::open(spec).map(Arc::new)).transpose();
            let line = line.map_err(LoadError::Line)?;
            let name = &plan.spec.name;
            let feed = feed(&plan.spec.variables)
                .map_err(|words| LoadError::spec(name, words, "give two digits for each byte"))?;
            self.diallers[arm] = Some(dialler.by(line.clone()).feeding(feed));
            self.lines[arm] = line;
        }
        Ok(())
    }

    /// Opens the sessions of an arm that are not open, and runs `session_sql` on each; `stop` interrupts the attempt.
    ///
    /// # Errors
    /// There is no such arm, a connection fails, or a statement of `session_sql` fails.
    pub fn connect(&mut self, arm: usize, stop: &Arc<AtomicBool>) -> Result<(), LoadError> {
        self.prepare_dialler(arm)?;
        let plan = &self.plan.arms[arm];
        let dialler = &self.diallers[arm];
        for (row, handles) in self.states.iter_mut().zip(&self.handles) {
            if let (Some(state), Some(dialler)) = (row[arm].as_mut(), dialler)
                && state.link.is_none()
            {
                open(plan, dialler, state, &handles[arm], None, stop)?;
            }
        }
        Ok(())
    }

    /// Closes all sessions of an arm.
    pub fn disconnect(&mut self, arm: usize) {
        for (row, handles) in self.states.iter_mut().zip(&self.handles) {
            let state = row.get_mut(arm).and_then(Option::as_mut);
            if let Some(link) = state.and_then(|state| state.link.take()) {
                link.terminate();
            }
            if let Some(handle) = handles.get(arm) {
                *handle.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }

    /// Returns the numbers by which an arm's server identifies the arm's open sessions; must not be called while a
    /// block runs.
    pub fn server_sessions(&self, arm: usize) -> Vec<u32> {
        let number = |handles: &Handles| {
            let handle = handles.get(arm)?.lock().unwrap_or_else(PoisonError::into_inner);
            handle.as_ref().map(|handle| handle.process)
        };
        self.handles.iter().filter_map(number).filter(|&number| number != 0).collect()
    }

    /// Runs the slices of one block in order; sessions stay open afterwards.
    ///
    /// Arms that are not connected are connected first. `progress` is increased by the number of finished
    /// transactions during the block.
    ///
    /// # Errors
    /// A script cannot continue, a lost connection cannot be re-established, or the evidence cannot be written. The
    /// rows recorded up to the error are in the writer.
    pub fn run(
        &mut self,
        block: u32,
        slices: &[Slice],
        writer: &mut CallsWriter,
        stop: &Arc<AtomicBool>,
        progress: &AtomicU64,
    ) -> Result<BlockReport, LoadError> {
        for slice in slices {
            match self.connect(slice.arm.into(), stop) {
                // A stop was requested: the block ends immediately.
                Err(_) if stop.load(Ordering::Relaxed) => break,
                other => other?,
            }
        }
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads(self.states.len(), cores);
        let block = Block {
            plan: &self.plan,
            diallers: &self.diallers,
            handles: &self.handles,
            arrivals: &self.arrivals,
            failures: &self.failures,
            gate: Gate::new(threads),
            quota: Quota::default(),
            clock: self.clock,
            number: block,
            progress,
            stop,
            abort: AtomicBool::new(false),
        };
        // Discards the lateness of bytes carried before the block.
        for line in self.lines.iter().flatten() {
            let _ = line.lateness();
        }
        let started_ns = block.clock.now_ns();
        let mut row_writer = RowWriter::new(writer, &self.pool, &self.failures);
        let outcomes = run_threads(&block, slices, &mut self.states, threads, &mut row_writer);
        row_writer.write()?;
        let arms = (0..self.plan.arms.len() as u16).map(|arm| ArmReport { arm, ..Default::default() });
        let mut report = BlockReport {
            started_ns,
            ended_ns: block.clock.now_ns(),
            reconnects: 0,
            cpu_ns: 0,
            threads: threads as u32,
            interrupted: block.stopped(),
            arms: arms.collect(),
            lines: Vec::new(),
            error_codes: self.failures.codes(),
        };
        for outcome in outcomes? {
            merge(&mut report, outcome?);
        }
        let lines = (0..).zip(&self.lines).filter_map(|(arm, line)| Some((arm, line.as_ref()?.lateness())));
        report.lines = lines.map(|(arm, lateness)| LineReport { arm, lateness }).collect();
        Ok(report)
    }

    fn arm(&self, arm: usize) -> Result<&ArmPlan, LoadError> {
        self.plan
            .arms
            .get(arm)
            .ok_or_else(|| LoadError::spec("load", format!("there is no arm {arm}"), "count arms from 0"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for arm in 0..self.plan.arms.len() {
            self.disconnect(arm);
        }
    }
}

fn merge(report: &mut BlockReport, outcome: Outcome) {
    report.cpu_ns += outcome.cpu_ns;
    report.reconnects += outcome.reconnects;
    for (arm, cpu_ns) in report.arms.iter_mut().zip(outcome.arms_cpu_ns) {
        arm.load_cpu_ns += cpu_ns;
    }
    for (arm, tally) in outcome.tallies {
        tally.add_to(&mut report.arms[arm]);
    }
}

/// Name of the variable whose text is sent when a statement asks the client for data.
const FEED: &str = "stdin";
/// Name of the corresponding variable for bytes that are not text, in hexadecimal.
const FEED_HEX: &str = "stdin_hex";

/// Returns the bytes to send when a statement asks the client for data, or `None` if no variable contains them.
fn feed(variables: &BTreeMap<String, String>) -> Result<Option<Arc<[u8]>>, String> {
    let Some(hex) = variables.get(FEED_HEX) else {
        return Ok(variables.get(FEED).map(|text| text.as_bytes().into()));
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(pair).collect();
    bytes.map(|bytes| Some(bytes.into())).ok_or_else(|| format!("{FEED_HEX} is no bytes in hexadecimal"))
}

/// Returns the number of threads to use for this number of sessions and cores.
///
/// With up to two sessions per core, each session has its own thread, which the server's answer wakes directly. With
/// more sessions, there is one thread per core, which handles answers in batches. Fewer threads would use less CPU but,
/// on a quiet machine, reduce throughput (`docs/explanation/performance.md`).
fn threads(sessions: usize, cores: usize) -> usize {
    if sessions <= 2 * cores { sessions } else { cores }
}

/// Runs the sessions on their threads until they end, and meanwhile stores the rows that they record.
fn run_threads(
    block: &Block<'_>,
    slices: &[Slice],
    states: &mut [Vec<Option<SessionState>>],
    threads: usize,
    row_writer: &mut RowWriter<'_>,
) -> Result<Vec<Result<Outcome, LoadError>>, LoadError> {
    let rows = record::buffer_rows(states.len());
    let activities: Vec<Activity> = states.iter().map(|_| Activity::default()).collect();
    let pool = row_writer.pool();
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(record::WAITING_BUFFERS);
        let mut crews: Vec<Vec<ThreadSession<'_>>> = (0..threads).map(|_| Vec::new()).collect();
        for (session, (row, activity)) in states.iter_mut().zip(&activities).enumerate() {
            let recorder = Recorder::new(rows, pool, sender.clone());
            crews[session % threads].push(ThreadSession::new(row, activity, recorder));
        }
        drop(sender);
        let mut running = Vec::with_capacity(threads);
        for (number, crew) in crews.into_iter().enumerate() {
            let spawned = thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn_scoped(scope, move || worker::work(block, slices, crew));
            match spawned {
                Ok(thread) => running.push(thread),
                Err(source) => {
                    block.abort();
                    return Err(LoadError::Thread { number, source });
                }
            }
        }
        supervise(block, &receiver, &activities, row_writer)?;
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok(joined.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sessions_have_a_thread_each_and_many_share_the_cores() {
        let cases = [(1, 2, 1), (4, 2, 4), (5, 2, 2), (8, 2, 2), (3, 1, 1), (32, 16, 32), (33, 16, 16)];
        for (sessions, cores, expected) in cases {
            assert_eq!(threads(sessions, cores), expected, "{sessions} on {cores}");
        }
    }

    #[test]
    fn what_is_fed_is_text_or_bytes_in_hexadecimal() {
        let of = |name: &str, value: &str| feed(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert_eq!(of("x", "y").expect("nothing"), None);
        assert_eq!(of(FEED, "0a").expect("text").as_deref(), Some(&b"0a"[..]));
        assert_eq!(of(FEED_HEX, "0aFF").expect("bytes").as_deref(), Some(&[10, 255][..]));
        assert!(of(FEED_HEX, "0a0").is_err() && of(FEED_HEX, "zz").is_err());
    }

    #[test]
    fn a_load_may_move_to_another_thread() {
        fn sent<T: Send>() {}
        sent::<Load>();
    }
}
