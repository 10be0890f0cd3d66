//! [`Load`]: the sessions of all arms, and one block after the other.
//!
//! ```text
//!   caller's thread                     one thread per session number
//!   Load::run ---- slices ------------> gate -> slice -> gate -> slice ...
//!      |                                          |
//!      |<------- full buffers of rows ------------'
//!      v
//!   CallsWriter                         on a wish to stop: cancel requests, then closed sockets
//! ```

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_evidence::{Call, CallsWriter};
use dyno_script::{Rng, Seeds};

use crate::LoadError;
use crate::clock::Clock;
use crate::gate::Gate;
use crate::plan::{ArmPlan, Plan};
use crate::record::{self, ErrorCodes, Pool, Recorder};
use crate::schedule::Arrivals;
use crate::session::{Redo, Seat};
use crate::spec::LoadSpec;
use crate::tally::{ArmReport, BlockReport};
use crate::wire::socket::{self, Control};
use crate::wire::startup::Dialler;
use crate::worker::{self, Outcome, Turn};

/// Stack of a session's thread; a TLS handshake is the deepest it gets.
const STACK_BYTES: usize = 512 << 10;
/// How often the caller's thread looks at the wish to stop.
const LOOK: Duration = Duration::from_millis(25);
/// From the wish to stop to the cancel requests.
const CANCEL_AFTER: Duration = Duration::from_millis(250);
/// From the wish to stop to closed sockets.
const CLOSE_AFTER: Duration = Duration::from_millis(600);
/// Streams of random numbers besides the sessions' own.
const CHOICE_STREAM: u64 = 0x6368_6f69_6365;
const ARRIVAL_STREAM: u64 = 0x6172_7269_7661;

/// One turn of one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Number of the arm.
    pub arm: u16,
    /// Running number in the block.
    pub slice: u32,
    /// How long.
    pub length: Length,
}

/// How long a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// No transaction begins after this time.
    DurationNs(u64),
    /// So many transactions over all sessions.
    Transactions(u64),
}

/// What ends a blocked session.
#[derive(Debug)]
struct Handle {
    control: Control,
    process: u32,
    key: u32,
}

/// The handles of one session number, one per arm.
type Handles = Vec<Mutex<Option<Handle>>>;

/// A load on one or more engines, ready to run block after block.
#[derive(Debug)]
pub struct Load {
    plan: Plan,
    diallers: Vec<Option<Dialler>>,
    /// By session number, then by arm; `None` where the arm has fewer sessions.
    seats: Vec<Vec<Option<Seat>>>,
    handles: Vec<Handles>,
    arrivals: Vec<Option<Mutex<Arrivals>>>,
    codes: ErrorCodes,
    pool: Pool,
}

impl Load {
    /// Checks the specification and compiles all scripts; no I/O.
    pub fn new(spec: &LoadSpec) -> Result<Self, LoadError> {
        let plan = Plan::new(spec)?;
        let arms = plan.arms.len();
        let mut seats: Vec<Vec<Option<Seat>>> = Vec::new();
        seats.resize_with(plan.sessions(), || (0..arms).map(|_| None).collect());
        for (number, arm) in plan.arms.iter().enumerate() {
            let mut seeds = Seeds::new(spec.seed);
            let mut choices = Seeds::new(spec.seed ^ CHOICE_STREAM);
            for (session, row) in seats.iter_mut().enumerate().take(arm.spec.sessions.into()) {
                let seat = Seat::new(session as u16, arm, seeds.session(), choices.session());
                row[number] = Some(seat);
            }
        }
        let arrivals = plan.arms.iter().map(|arm| {
            let rate = arm.spec.rate_per_s?;
            Some(Mutex::new(Arrivals::new(Rng::new(spec.seed ^ ARRIVAL_STREAM), rate)))
        });
        Ok(Self {
            arrivals: arrivals.collect(),
            diallers: (0..arms).map(|_| None).collect(),
            handles: seats.iter().map(|_| (0..arms).map(|_| Mutex::default()).collect()).collect(),
            seats,
            plan,
            codes: ErrorCodes::default(),
            pool: Pool::default(),
        })
    }

    /// Names of the arms: what [`Call::arm`] counts.
    pub fn arm_names(&self) -> Vec<String> {
        self.plan.arms.iter().map(|arm| arm.spec.name.clone()).collect()
    }

    /// Names of scripts and commands: what [`Call::statement`] counts.
    pub fn statement_names(&self) -> &[String] {
        &self.plan.statements
    }

    /// Opens the sessions of an arm that are not open, and runs `session_sql` on each.
    pub fn connect(&mut self, arm: usize) -> Result<(), LoadError> {
        let plan = self.arm(arm)?;
        if self.diallers[arm].is_none() {
            let connection = &plan.spec.connection;
            let dialler = Dialler::new(connection);
            self.diallers[arm] = Some(dialler.map_err(|e| LoadError::connect(connection, e))?);
        }
        let plan = &self.plan.arms[arm];
        let dialler = &self.diallers[arm];
        for (row, handles) in self.seats.iter_mut().zip(&self.handles) {
            if let (Some(seat), Some(dialler)) = (row[arm].as_mut(), dialler)
                && seat.link.is_none()
            {
                open(plan, dialler, seat, &handles[arm], None)?;
            }
        }
        Ok(())
    }

    /// Says goodbye to the server on all sessions of an arm.
    pub fn disconnect(&mut self, arm: usize) {
        for (row, handles) in self.seats.iter_mut().zip(&self.handles) {
            let seat = row.get_mut(arm).and_then(Option::as_mut);
            if let Some(link) = seat.and_then(|seat| seat.link.take()) {
                link.terminate();
            }
            if let Some(handle) = handles.get(arm) {
                *handle.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        }
    }

    /// Runs the slices of one block in order; sessions stay open afterwards. Connects arms that
    /// are not connected. `progress` counts transactions as they end.
    ///
    /// # Errors
    /// A script that cannot go on, a connection that does not come back, evidence that cannot be
    /// written. Rows recorded until then are in the writer.
    pub fn run(
        &mut self,
        block: u32,
        slices: &[Slice],
        writer: &mut CallsWriter,
        stop: &AtomicBool,
        progress: &AtomicU64,
    ) -> Result<BlockReport, LoadError> {
        for slice in slices {
            self.connect(slice.arm.into())?;
        }
        let threads = self.seats.len();
        let clock = Clock::new();
        let shared = Shared {
            plan: &self.plan,
            diallers: &self.diallers,
            handles: &self.handles,
            arrivals: &self.arrivals,
            codes: &self.codes,
            gate: Gate::new(threads),
            turn: Turn::default(),
            clock,
            block,
            progress,
            stop,
            abort: AtomicBool::new(false),
        };
        let started_ns = clock.now_ns();
        let active: Vec<AtomicU16> = (0..threads).map(|_| AtomicU16::new(0)).collect();
        let mut keeper =
            Keeper { writer, pool: &self.pool, codes: &self.codes, held: Vec::new(), rows: 0 };
        let seats = &mut self.seats;
        let outcomes = thread::scope(|scope| {
            let (sender, receiver) = sync_channel(record::WAITING_BUFFERS);
            let mut running = Vec::with_capacity(threads);
            for ((number, row), active) in seats.iter_mut().enumerate().zip(&active) {
                let rows = record::buffer_rows(threads);
                let recorder = Recorder::new(rows, keeper.pool, sender.clone());
                let shared = &shared;
                let spawned = thread::Builder::new()
                    .name(format!("session-{number}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        worker::work(shared, slices, row, active, recorder)
                    });
                match spawned {
                    Ok(thread) => running.push(thread),
                    Err(source) => {
                        shared.abort();
                        return Err(LoadError::Thread { session: number, source });
                    }
                }
            }
            drop(sender);
            let kept = attend(&shared, &receiver, &active, &mut keeper);
            let mut outcomes = Vec::with_capacity(threads);
            for thread in running {
                match thread.join() {
                    Ok(outcome) => outcomes.push(outcome),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            kept.map(|()| outcomes)
        })?;
        keeper.write()?;
        let interrupted = stop.load(Ordering::Relaxed);
        let ended_ns = clock.now_ns();
        let mut report = BlockReport {
            started_ns,
            ended_ns,
            reconnects: 0,
            cpu_ns: 0,
            interrupted,
            arms: (0..self.plan.arms.len())
                .map(|arm| ArmReport { arm: arm as u16, ..ArmReport::default() })
                .collect(),
            error_codes: self.codes.list(),
        };
        for outcome in outcomes {
            merge(&mut report, outcome?);
        }
        Ok(report)
    }

    fn arm(&self, arm: usize) -> Result<&ArmPlan, LoadError> {
        self.plan.arms.get(arm).ok_or_else(|| {
            LoadError::spec("load", format!("there is no arm {arm}"), "count arms from 0")
        })
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
    for (tally, arm) in outcome.tallies.into_iter().zip(&mut report.arms) {
        tally.add_to(arm);
    }
}

/// Connects a session and prepares it as the arm wants it.
fn open(
    arm: &ArmPlan,
    dialler: &Dialler,
    seat: &mut Seat,
    handle: &Mutex<Option<Handle>>,
    limit: Option<Duration>,
) -> Result<(), LoadError> {
    let refused = |e| LoadError::connect(dialler.spec(), e);
    let mut link = dialler.connect(limit).map_err(refused)?;
    let timeout = arm.spec.statement_timeout_ms.map(|ms| format!("set statement_timeout = {ms}"));
    for sql in arm.spec.session_sql.iter().chain(&timeout) {
        let error = match link.run(sql) {
            Ok(None) => continue,
            Ok(Some(error)) => (*error).into(),
            Err(error) => error,
        };
        let (arm, sql) = (arm.spec.name.clone(), sql.clone());
        return Err(LoadError::SessionSql { arm, sql, source: Box::new(error) });
    }
    let (process, key) = link.cancel_key();
    let control = link.control().map_err(refused)?;
    *handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(Handle { control, process, key });
    seat.link = Some(link);
    seat.redo = Redo::default();
    Ok(())
}

/// What all threads of a block see.
pub struct Shared<'a> {
    pub plan: &'a Plan,
    diallers: &'a [Option<Dialler>],
    handles: &'a [Handles],
    pub arrivals: &'a [Option<Mutex<Arrivals>>],
    pub codes: &'a ErrorCodes,
    pub gate: Gate,
    pub turn: Turn,
    pub clock: Clock,
    pub block: u32,
    pub progress: &'a AtomicU64,
    stop: &'a AtomicBool,
    abort: AtomicBool,
}

impl Shared<'_> {
    /// Whether the caller wants to stop.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether to stop for any reason.
    #[inline]
    pub fn halted(&self) -> bool {
        self.stopped() || self.abort.load(Ordering::Relaxed)
    }

    /// Ends the block because it cannot go on.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::Relaxed);
    }

    /// Connects a session again.
    pub fn connect(
        &self,
        arm: u16,
        seat: &mut Seat,
        limit: Option<Duration>,
    ) -> Result<(), LoadError> {
        let (session, arm) = (usize::from(seat.number), usize::from(arm));
        let plan = &self.plan.arms[arm];
        match &self.diallers[arm] {
            Some(dialler) => open(plan, dialler, seat, &self.handles[session][arm], limit),
            None => Err(LoadError::spec(&plan.spec.name, "the arm is not connected", "connect it")),
        }
    }

    /// Calls `act` with what ends each session that is at work.
    fn each_active(&self, active: &[AtomicU16], act: impl Fn(&ArmPlan, &Handle)) {
        for (active, handles) in active.iter().zip(self.handles) {
            let Some(arm) = usize::from(active.load(Ordering::Acquire)).checked_sub(1) else {
                continue;
            };
            if let Some(handle) = &*handles[arm].lock().unwrap_or_else(PoisonError::into_inner) {
                act(&self.plan.arms[arm], handle);
            }
        }
    }
}

/// Keeps rows in memory up to a budget, then writes them.
struct Keeper<'a> {
    writer: &'a mut CallsWriter,
    pool: &'a Pool,
    codes: &'a ErrorCodes,
    held: Vec<Vec<Call>>,
    rows: usize,
}

impl Keeper<'_> {
    fn keep(&mut self, buffer: Vec<Call>) -> Result<(), LoadError> {
        self.rows += buffer.len();
        self.held.push(buffer);
        if self.rows >= record::HELD_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), LoadError> {
        let codes = self.codes.list();
        for buffer in self.held.drain(..) {
            self.writer.push(&buffer, &codes)?;
            self.pool.give(buffer);
        }
        self.rows = 0;
        Ok(())
    }
}

/// Takes full buffers until all threads are done; ends blocked reads when told to stop.
fn attend(
    shared: &Shared<'_>,
    receiver: &Receiver<Vec<Call>>,
    active: &[AtomicU16],
    keeper: &mut Keeper<'_>,
) -> Result<(), LoadError> {
    let mut halted_at: Option<Instant> = None;
    let mut step = 0;
    let mut kept = Ok(());
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(buffer) if kept.is_ok() => {
                kept = keeper.keep(buffer);
                if kept.is_err() {
                    shared.abort();
                }
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return kept,
        }
        if !shared.halted() {
            continue;
        }
        let since = halted_at.get_or_insert_with(Instant::now).elapsed();
        if step == 0 && since >= CANCEL_AFTER {
            step = 1;
            shared.each_active(active, |arm, handle| {
                // A server that does not take it is told by the closed socket.
                let _ = socket::cancel(&arm.spec.connection, handle.process, handle.key);
            });
        } else if step == 1 && since >= CLOSE_AFTER {
            step = 2;
            shared.each_active(active, |_, handle| handle.control.shut_down());
        }
    }
}
