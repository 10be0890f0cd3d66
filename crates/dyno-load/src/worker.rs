//! One thread of a block: it serves some sessions of every arm, slice after slice.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread;

use dyno_evidence::{Call, CallKind, NONE};
use mio::Registry;

use crate::LoadError;
use crate::batch::Batch;
use crate::block::{Activity, Block};
use crate::clock;
use crate::link::Link;
use crate::reactor::{Pulse, Reactor, watch};
use crate::record::Recorder;
use crate::runner::{Output, Runner};
use crate::schedule::{Arrivals, Bound};
use crate::session_state::{LogPosition, SessionState};
use crate::slice::{Length, Slice};
use crate::tally::Tally;

/// Interval at which finished transactions are added to the caller's counter [ns].
const PROGRESS_NS: i64 = 20_000_000;

/// Result of one thread.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Arm number and counts, one entry per arm and session.
    pub tallies: Vec<(usize, Tally)>,
    /// Number of connections that were re-established.
    pub reconnects: u64,
    /// CPU time of the thread [ns].
    pub cpu_ns: u64,
    /// CPU time of the thread in the slices of each arm [ns].
    pub arms_cpu_ns: Vec<u64>,
}

/// The sessions with one number, which one thread serves: their states, one per arm.
pub struct ThreadSession<'a> {
    states: &'a mut [Option<SessionState>],
    /// Tells the supervising thread what the session is doing.
    activity: &'a Activity,
    out: Output<'a>,
    tallies: Vec<Tally>,
    pulse: Pulse,
}

impl<'a> ThreadSession<'a> {
    /// Returns the sessions with these states, one per arm (`None` where the arm has fewer sessions).
    pub fn new(states: &'a mut [Option<SessionState>], activity: &'a Activity, recorder: Recorder<'a>) -> Self {
        let out = Output { recorder, tally: Tally::default(), reconnects: 0, batch: Batch::new(), only_rows: NONE };
        let tallies = states.iter().map(|_| Tally::default()).collect();
        Self { states, activity, out, tallies, pulse: Pulse::default() }
    }
}

/// Runs all slices of a block for the sessions of one thread.
///
/// # Errors
/// A session's script cannot continue, its connection cannot be re-established, or the reactor fails.
pub fn work(block: &Block<'_>, slices: &[Slice], mut sessions: Vec<ThreadSession<'_>>) -> Result<Outcome, LoadError> {
    clock::sharpen_sleep();
    let _guard = AbortOnPanic(block);
    let cpu_start = clock::thread_cpu_ns();
    let mut arms_cpu_ns = vec![0; block.plan.arms.len()];
    let result = run_slices(block, slices, &mut sessions, &mut arms_cpu_ns);
    if result.is_err() {
        block.abort();
    }
    let mut outcome = Outcome { arms_cpu_ns, ..Outcome::default() };
    for session in sessions {
        session.out.recorder.finish();
        outcome.reconnects += session.out.reconnects;
        outcome.tallies.extend(session.tallies.into_iter().enumerate());
    }
    outcome.cpu_ns = clock::thread_cpu_ns() - cpu_start;
    result.map(|()| outcome)
}

type SessionTurn<'a> = Pin<Box<dyn Future<Output = Result<(), LoadError>> + 'a>>;

/// Runs the slices, and adds the CPU time that this thread uses in each slice to that of the slice's arm.
fn run_slices(
    block: &Block<'_>,
    slices: &[Slice],
    sessions: &mut [ThreadSession<'_>],
    arms_cpu_ns: &mut [u64],
) -> Result<(), LoadError> {
    let mut reactor = Reactor::new(sessions.len()).map_err(LoadError::Reactor)?;
    let registry = reactor.registry().map_err(LoadError::Reactor)?;
    for (token, session) in sessions.iter().enumerate() {
        for link in session.states.iter().flatten().filter_map(|state| state.link.as_ref()) {
            watch(&registry, link, token).map_err(LoadError::Reactor)?;
        }
    }
    for slice in slices {
        let prepare = |start| prepare(block, slice, start);
        let Some(start) = block.gate.pass(&block.clock, prepare, || block.halted()) else {
            return Ok(());
        };
        let mut turns: Vec<SessionTurn<'_>> = Vec::with_capacity(sessions.len());
        let mut pulses = Vec::with_capacity(sessions.len());
        for (token, session) in sessions.iter_mut().enumerate() {
            let ThreadSession { states, activity, out, tallies, pulse } = session;
            let arm = usize::from(slice.arm);
            let (state, tally, pulse) = (states[arm].as_mut(), &mut tallies[arm], &*pulse);
            pulses.push(pulse);
            let activity = *activity;
            let turn = Turn { block, slice, start, activity, pulse, registry: &registry, token };
            turns.push(Box::pin(turn.take(state, out, tally)));
        }
        block.clock.sleep_until(start, || block.halted());
        let cpu_start = clock::thread_cpu_ns();
        let results = reactor.run(&block.clock, turns, &pulses).map_err(LoadError::Reactor)?;
        arms_cpu_ns[usize::from(slice.arm)] += clock::thread_cpu_ns() - cpu_start;
        results.into_iter().collect::<Result<(), LoadError>>()?;
    }
    Ok(())
}

/// One session's part in one slice.
struct Turn<'a> {
    block: &'a Block<'a>,
    slice: &'a Slice,
    start: i64,
    activity: &'a Activity,
    pulse: &'a Pulse,
    registry: &'a Registry,
    token: usize,
}

impl<'a> Turn<'a> {
    /// Runs the session's part of the slice, if the arm has this session.
    async fn take(
        self,
        state: Option<&'a mut SessionState>,
        out: &mut Output<'_>,
        tally: &mut Tally,
    ) -> Result<(), LoadError> {
        let Some(state) = state else { return Ok(()) };
        self.activity.begin(self.slice.arm);
        std::mem::swap(&mut out.tally, tally);
        let result = self.play(state, out).await;
        std::mem::swap(&mut out.tally, tally);
        self.activity.end();
        if result.is_err() {
            // This also ends the other sessions of this thread.
            self.block.abort();
        }
        result
    }

    async fn play(&self, state: &'a mut SessionState, out: &mut Output<'_>) -> Result<(), LoadError> {
        let Self { block, slice, start, activity, pulse, registry, token } = *self;
        let arm = &block.plan.arms[usize::from(slice.arm)];
        // Other arms write redo, too: the growth of the log since an earlier slice is not counted.
        state.redo = LogPosition::default();
        // Between its slices the session waited on its other connections.
        state.link.as_mut().into_iter().for_each(Link::doubt);
        let before = out.tally.transactions();
        let mut runner = Runner {
            block,
            arm,
            arm_number: slice.arm,
            slice: slice.slice,
            script: None,
            state,
            out,
            activity,
            pulse,
            registry,
            token,
        };
        let mut progress = Progress { counted: before, shown_ns: start };
        let last = match &block.arrivals[usize::from(slice.arm)] {
            Some(arrivals) => open_loop(&mut runner, slice, start, arrivals, &mut progress).await,
            None => closed_loop(&mut runner, bound(slice, start), &mut progress).await,
        };
        progress.show(block, &runner.out.tally);
        if last.is_err() {
            // Closing the connection also ends the transaction that is still open at the server.
            runner.state.link = None;
        }
        let last = last?;
        if runner.out.tally.transactions() > before {
            runner.out.tally.busy_ns += (last - start).max(0) as u64;
        }
        Ok(())
    }
}

/// Aborts the block if this thread panics: threads at the gate must not wait for a thread that no longer exists.
struct AbortOnPanic<'a>(&'a Block<'a>);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abort();
        }
    }
}

fn bound(slice: &Slice, start: i64) -> Bound {
    match slice.length {
        Length::DurationNs(length) => Bound::Until(start.saturating_add_unsigned(length)),
        Length::Transactions(count) => Bound::Starts(count),
    }
}

fn prepare(block: &Block<'_>, slice: &Slice, start: i64) {
    if let Length::Transactions(count) = slice.length {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        block.quota.left.store(count, Ordering::Relaxed);
    }
    if let Some(arrivals) = &block.arrivals[usize::from(slice.arm)] {
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.begin(start, bound(slice, start));
    }
}

struct Progress {
    counted: u64,
    shown_ns: i64,
}

impl Progress {
    #[inline]
    fn tick(&mut self, now: i64, runner: &Runner<'_, '_, '_>) {
        if now - self.shown_ns >= PROGRESS_NS {
            self.shown_ns = now;
            self.show(runner.block, &runner.out.tally);
        }
    }

    fn show(&mut self, block: &Block<'_>, tally: &Tally) {
        let done = tally.transactions();
        block.progress.fetch_add(done - self.counted, Ordering::Relaxed);
        self.counted = done;
    }
}

/// Runs transactions one after the other; returns the end of the last one [ns since the epoch].
async fn closed_loop(runner: &mut Runner<'_, '_, '_>, bound: Bound, progress: &mut Progress) -> Result<i64, LoadError> {
    let block = runner.block;
    let mut now = block.clock.now_ns();
    loop {
        let begins = match bound {
            Bound::Until(end) => now < end,
            Bound::Starts(_) => block.quota.left.fetch_sub(1, Ordering::Relaxed) > 0,
        };
        if !begins || block.halted() {
            return Ok(now);
        }
        now = runner.transaction(now, NONE).await?;
        progress.tick(now, runner);
    }
}

/// Serves arrivals, each with a session that is free; returns the end of the last transaction [ns since the epoch].
async fn open_loop(
    runner: &mut Runner<'_, '_, '_>,
    slice: &Slice,
    start: i64,
    arrivals: &Mutex<Arrivals>,
    progress: &mut Progress,
) -> Result<i64, LoadError> {
    let (block, spec) = (runner.block, &runner.arm.spec);
    let cap = Arrivals::cap_ns(start, bound(slice, start), spec.rate_per_s.unwrap_or(1.0));
    let limit = spec.latency_limit_ns.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let mut now = block.clock.now_ns();
    let mut last = now;
    loop {
        let arrival = arrivals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(intended) = arrival.filter(|_| !block.halted()) else { return Ok(last) };
        let free = now;
        if now < intended {
            now = runner.pulse.sleep_until(&block.clock, intended, || block.halted()).await;
            if now < intended {
                return Ok(last);
            }
        }
        if now > cap || now - intended > limit {
            skip(runner, now, intended);
            now = block.clock.now_ns();
            continue;
        }
        let lag = now - intended.max(free);
        runner.out.tally.lag_max_ns = runner.out.tally.lag_max_ns.max(lag);
        now = runner.transaction(now, intended).await?;
        last = now;
        progress.tick(now, runner);
    }
}

/// Counts an arrival that no session served in time, and records it as a row of a separate kind.
fn skip(runner: &mut Runner<'_, '_, '_>, now: i64, intended: i64) {
    let script = &runner.arm.scripts[0];
    let row = runner.row(script.name, CallKind::Skipped, now, 0);
    runner.out.recorder.push(Call { intended_ns: intended, ..row });
    runner.out.tally.skipped += 1;
}
