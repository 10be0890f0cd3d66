//! The thread of one session number: it serves that session of every arm, slice after slice.

use std::sync::atomic::{AtomicI64, AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_evidence::{Call, CallKind, NONE};

use crate::LoadError;
use crate::clock;
use crate::pipeline::Batch;
use crate::record::Recorder;
use crate::run::{Length, Slice};
use crate::schedule::{Arrivals, Bound};
use crate::session::{Output, Redo, Runner, Seat};
use crate::shared::Shared;
use crate::tally::Tally;

/// How often finished transactions are added to the caller's counter.
const PROGRESS_NS: i64 = 20_000_000;
/// How long a lost connection is tried again.
const RECONNECT_FOR: Duration = Duration::from_secs(10);
/// How long one try may take.
const RECONNECT_TRY: Duration = Duration::from_secs(2);

/// What the threads share of one slice; set by the last thread at the gate.
#[derive(Debug, Default)]
pub struct Turn {
    /// Transactions left to begin, in a closed loop that counts them.
    left: AtomicI64,
}

/// What a thread brings back.
#[derive(Debug)]
pub struct Outcome {
    /// One per arm.
    pub tallies: Vec<Tally>,
    /// Connections that were made again.
    pub reconnects: u64,
    /// CPU time of the thread [ns].
    pub cpu_ns: u64,
}

/// Runs all slices of a block for one session number; `seats` has one per arm or none.
pub fn work(
    shared: &Shared<'_>,
    slices: &[Slice],
    seats: &mut [Option<Seat>],
    active: &AtomicU16,
    recorder: Recorder<'_>,
) -> Result<Outcome, LoadError> {
    clock::sharpen_sleep();
    let _guard = AbortOnPanic(shared);
    let cpu_start = clock::thread_cpu_ns();
    let mut out = Output { recorder, tally: Tally::default(), reconnects: 0, batch: Batch::new() };
    let mut tallies: Vec<Tally> = seats.iter().map(|_| Tally::default()).collect();
    let mut result = Ok(());
    for slice in slices {
        let arm = usize::from(slice.arm);
        let prepare = |start| prepare(shared, slice, start);
        let Some(start) = shared.gate.pass(&shared.clock, prepare, || shared.halted()) else {
            break;
        };
        let Some(seat) = seats[arm].as_mut() else { continue };
        active.store(slice.arm + 1, Ordering::Release);
        out.tally = std::mem::take(&mut tallies[arm]);
        result = run_slice(shared, slice, seat, &mut out, start);
        tallies[arm] = std::mem::take(&mut out.tally);
        active.store(0, Ordering::Release);
        if result.is_err() {
            // What the server still holds of the transaction ends with the connection.
            seat.link = None;
            shared.abort();
            break;
        }
    }
    out.recorder.finish();
    let cpu_ns = clock::thread_cpu_ns() - cpu_start;
    result.map(|()| Outcome { tallies, reconnects: out.reconnects, cpu_ns })
}

/// Threads that wait at the gate must not wait for one that is gone.
struct AbortOnPanic<'a>(&'a Shared<'a>);

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

fn prepare(shared: &Shared<'_>, slice: &Slice, start: i64) {
    if let Length::Transactions(count) = slice.length {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        shared.turn.left.store(count, Ordering::Relaxed);
    }
    if let Some(arrivals) = &shared.arrivals[usize::from(slice.arm)] {
        let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.begin(start, bound(slice, start));
    }
}

fn run_slice<'a>(
    shared: &'a Shared<'a>,
    slice: &Slice,
    seat: &'a mut Seat,
    out: &mut Output<'_>,
    start: i64,
) -> Result<(), LoadError> {
    let arm_number = slice.arm;
    let arm = &shared.plan.arms[usize::from(arm_number)];
    // Other arms write redo too: what the log grew by since an earlier slice is not ours.
    seat.redo = Redo::default();
    let busy_before = out.tally.transactions();
    let mut runner = Runner { shared, arm, arm_number, slice: slice.slice, seat, out };
    shared.clock.sleep_until(start, || shared.halted());
    let mut progress = Progress { counted: busy_before, shown_ns: start };
    let last = match &shared.arrivals[usize::from(arm_number)] {
        Some(arrivals) => open_loop(&mut runner, slice, start, arrivals, &mut progress),
        None => closed_loop(&mut runner, bound(slice, start), &mut progress),
    };
    progress.show(shared, &out.tally);
    let last = last?;
    if out.tally.transactions() > busy_before {
        out.tally.busy_ns += (last - start).max(0) as u64;
    }
    Ok(())
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
            self.show(runner.shared, &runner.out.tally);
        }
    }

    fn show(&mut self, shared: &Shared<'_>, tally: &Tally) {
        let done = tally.transactions();
        shared.progress.fetch_add(done - self.counted, Ordering::Relaxed);
        self.counted = done;
    }
}

/// Transactions one after the other; returns when the last one ended.
fn closed_loop(
    runner: &mut Runner<'_, '_, '_>,
    bound: Bound,
    progress: &mut Progress,
) -> Result<i64, LoadError> {
    let shared = runner.shared;
    let mut now = shared.clock.now_ns();
    loop {
        let go = match bound {
            Bound::Until(end) => now < end,
            Bound::Starts(_) => shared.turn.left.fetch_sub(1, Ordering::Relaxed) > 0,
        };
        if !go || shared.halted() {
            return Ok(now);
        }
        now = runner.transaction(now, NONE).await?;
        progress.tick(now, runner);
    }
}

/// Arrivals, each served by whichever session is free; returns when the last one ended.
fn open_loop(
    runner: &mut Runner<'_, '_, '_>,
    slice: &Slice,
    start: i64,
    arrivals: &Mutex<Arrivals>,
    progress: &mut Progress,
) -> Result<i64, LoadError> {
    let (shared, spec) = (runner.shared, &runner.arm.spec);
    let cap = Arrivals::cap_ns(start, bound(slice, start), spec.rate_per_s.unwrap_or(1.0));
    let limit =
        spec.latency_limit_ns.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let mut now = shared.clock.now_ns();
    let mut last = now;
    loop {
        let arrival = arrivals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(intended) = arrival.filter(|_| !shared.halted()) else { return Ok(last) };
        let free = now;
        if now < intended {
            now = shared.clock.sleep_until(intended, || shared.halted());
            if now < intended {
                return Ok(last);
            }
        }
        if now > cap || now - intended > limit {
            skip(runner, now, intended);
            now = shared.clock.now_ns();
            continue;
        }
        let lag = now - intended.max(free);
        runner.out.tally.lag_max_ns = runner.out.tally.lag_max_ns.max(lag);
        now = runner.transaction(now, intended).await?;
        last = now;
        progress.tick(now, runner);
    }
}

/// An arrival that nobody served in time: counted, not hidden.
fn skip(runner: &mut Runner<'_, '_, '_>, now: i64, intended: i64) {
    let script = &runner.arm.scripts[0];
    let row = runner.row(script.name, CallKind::Skipped, now, 0);
    runner.out.recorder.push(Call { intended_ns: intended, ..row });
    runner.out.tally.skipped += 1;
}

impl Runner<'_, '_, '_> {
    /// Connects again after a loss, with growing pauses. Gives up early when told to stop.
    #[cold]
    pub(crate) async fn reconnect(&mut self) -> Result<(), LoadError> {
        let deadline = Instant::now() + RECONNECT_FOR;
        let mut pause = Duration::from_millis(20);
        while !self.shared.halted() {
            match self.shared.connect(self.arm_number, self.seat, Some(RECONNECT_TRY)) {
                Ok(()) => {
                    self.out.reconnects += 1;
                    return Ok(());
                }
                Err(error) if Instant::now() + pause >= deadline => {
                    return Err(LoadError::Reconnect {
                        place: self.arm.spec.connection.place(),
                        waited_s: RECONNECT_FOR.as_secs(),
                        source: Box::new(error.into_wire()),
                    });
                }
                Err(_) => {
                    let wake = self.clock().now_ns() + pause.as_nanos() as i64;
                    self.clock().sleep_until(wake, || self.shared.halted());
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
        Ok(())
    }
}
