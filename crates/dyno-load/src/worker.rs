//! One thread: it serves some sessions of every arm, slice after slice.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dyno_evidence::{Call, CallKind, NONE};
use mio::Registry;

use crate::LoadError;
use crate::clock;
use crate::pipeline::Batch;
use crate::reactor::{Pulse, Reactor, watch};
use crate::record::Recorder;
use crate::run::{Length, Slice};
use crate::schedule::{Arrivals, Bound};
use crate::session::{Output, Redo, Runner, Seat};
use crate::shared::{Activity, Shared};
use crate::tally::Tally;
use crate::wire::link::Link;

/// How often finished transactions are added to the caller's counter.
const PROGRESS_NS: i64 = 20_000_000;
/// How long a lost connection is tried again.
const RECONNECT_FOR: Duration = Duration::from_secs(10);
/// How long one try may take.
const RECONNECT_TRY: Duration = Duration::from_secs(1);

/// What the threads share of one slice; set by the last thread at the gate.
#[derive(Debug, Default)]
pub struct Quota {
    /// Transactions left to begin, in a closed loop that counts them.
    left: AtomicI64,
}

/// What a thread brings back.
#[derive(Debug, Default)]
pub struct Outcome {
    /// One per arm and session.
    pub tallies: Vec<(usize, Tally)>,
    /// Connections that were made again.
    pub reconnects: u64,
    /// CPU time of the thread [ns].
    pub cpu_ns: u64,
}

/// One session number at a thread.
pub struct Desk<'a> {
    seats: &'a mut [Option<Seat>],
    /// For who ends blocked sessions.
    activity: &'a Activity,
    out: Output<'a>,
    tallies: Vec<Tally>,
    pulse: Pulse,
}

impl<'a> Desk<'a> {
    /// A desk for these seats, one per arm or none.
    pub fn new(seats: &'a mut [Option<Seat>], activity: &'a Activity, recorder: Recorder<'a>) -> Self {
        let out = Output { recorder, tally: Tally::default(), reconnects: 0, batch: Batch::new(), only_rows: NONE };
        let tallies = seats.iter().map(|_| Tally::default()).collect();
        Self { seats, activity, out, tallies, pulse: Pulse::default() }
    }
}

/// Runs all slices of a block for the sessions of one thread.
pub fn work(shared: &Shared<'_>, slices: &[Slice], mut desks: Vec<Desk<'_>>) -> Result<Outcome, LoadError> {
    clock::sharpen_sleep();
    let _guard = AbortOnPanic(shared);
    let cpu_start = clock::thread_cpu_ns();
    let result = run_slices(shared, slices, &mut desks);
    if result.is_err() {
        shared.abort();
    }
    let mut outcome = Outcome::default();
    for desk in desks {
        desk.out.recorder.finish();
        outcome.reconnects += desk.out.reconnects;
        outcome.tallies.extend(desk.tallies.into_iter().enumerate());
    }
    outcome.cpu_ns = clock::thread_cpu_ns() - cpu_start;
    result.map(|()| outcome)
}

type Session<'a> = Pin<Box<dyn Future<Output = Result<(), LoadError>> + 'a>>;

fn run_slices(shared: &Shared<'_>, slices: &[Slice], desks: &mut [Desk<'_>]) -> Result<(), LoadError> {
    let mut reactor = Reactor::new(desks.len()).map_err(LoadError::Reactor)?;
    let registry = reactor.registry().map_err(LoadError::Reactor)?;
    for (token, desk) in desks.iter().enumerate() {
        for link in desk.seats.iter().flatten().filter_map(|seat| seat.link.as_ref()) {
            watch(&registry, link, token).map_err(LoadError::Reactor)?;
        }
    }
    for slice in slices {
        let prepare = |start| prepare(shared, slice, start);
        let Some(start) = shared.gate.pass(&shared.clock, prepare, || shared.halted()) else {
            return Ok(());
        };
        let mut sessions: Vec<Session<'_>> = Vec::with_capacity(desks.len());
        let mut pulses = Vec::with_capacity(desks.len());
        for (token, desk) in desks.iter_mut().enumerate() {
            let Desk { seats, activity, out, tallies, pulse } = desk;
            let arm = usize::from(slice.arm);
            let (seat, tally, pulse) = (seats[arm].as_mut(), &mut tallies[arm], &*pulse);
            pulses.push(pulse);
            let activity = *activity;
            let turn = Turn { shared, slice, start, activity, pulse, registry: &registry, token };
            sessions.push(Box::pin(turn.take(seat, out, tally)));
        }
        shared.clock.sleep_until(start, || shared.halted());
        let results = reactor.run(&shared.clock, sessions, &pulses).map_err(LoadError::Reactor)?;
        results.into_iter().collect::<Result<(), LoadError>>()?;
    }
    Ok(())
}

/// One session's part in one slice.
struct Turn<'a> {
    shared: &'a Shared<'a>,
    slice: &'a Slice,
    start: i64,
    activity: &'a Activity,
    pulse: &'a Pulse,
    registry: &'a Registry,
    token: usize,
}

impl<'a> Turn<'a> {
    /// Takes the turn, if the arm has this session.
    async fn take(self, seat: Option<&'a mut Seat>, out: &mut Output<'_>, tally: &mut Tally) -> Result<(), LoadError> {
        let Some(seat) = seat else { return Ok(()) };
        self.activity.begin(self.slice.arm);
        std::mem::swap(&mut out.tally, tally);
        let result = self.play(seat, out).await;
        std::mem::swap(&mut out.tally, tally);
        self.activity.end();
        if result.is_err() {
            // The other sessions of this thread end, too.
            self.shared.abort();
        }
        result
    }

    async fn play(&self, seat: &'a mut Seat, out: &mut Output<'_>) -> Result<(), LoadError> {
        let Self { shared, slice, start, activity, pulse, registry, token } = *self;
        let arm = &shared.plan.arms[usize::from(slice.arm)];
        // Other arms write redo too: what the log grew by since an earlier slice is not ours.
        seat.redo = Redo::default();
        // Between its slices the session listened to its other connections.
        seat.link.as_mut().into_iter().for_each(Link::doubt);
        let before = out.tally.transactions();
        let mut runner = Runner {
            shared,
            arm,
            arm_number: slice.arm,
            slice: slice.slice,
            seat,
            out,
            activity,
            pulse,
            registry,
            token,
        };
        let mut progress = Progress { counted: before, shown_ns: start };
        let last = match &shared.arrivals[usize::from(slice.arm)] {
            Some(arrivals) => open_loop(&mut runner, slice, start, arrivals, &mut progress).await,
            None => closed_loop(&mut runner, bound(slice, start), &mut progress).await,
        };
        progress.show(shared, &runner.out.tally);
        if last.is_err() {
            // What the server still holds of the transaction ends with the connection.
            runner.seat.link = None;
        }
        let last = last?;
        if runner.out.tally.transactions() > before {
            runner.out.tally.busy_ns += (last - start).max(0) as u64;
        }
        Ok(())
    }
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
        shared.quota.left.store(count, Ordering::Relaxed);
    }
    if let Some(arrivals) = &shared.arrivals[usize::from(slice.arm)] {
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
async fn closed_loop(runner: &mut Runner<'_, '_, '_>, bound: Bound, progress: &mut Progress) -> Result<i64, LoadError> {
    let shared = runner.shared;
    let mut now = shared.clock.now_ns();
    loop {
        let go = match bound {
            Bound::Until(end) => now < end,
            Bound::Starts(_) => shared.quota.left.fetch_sub(1, Ordering::Relaxed) > 0,
        };
        if !go || shared.halted() {
            return Ok(now);
        }
        now = runner.transaction(now, NONE).await?;
        progress.tick(now, runner);
    }
}

/// Arrivals, each served by whichever session is free; returns when the last one ended.
async fn open_loop(
    runner: &mut Runner<'_, '_, '_>,
    slice: &Slice,
    start: i64,
    arrivals: &Mutex<Arrivals>,
    progress: &mut Progress,
) -> Result<i64, LoadError> {
    let (shared, spec) = (runner.shared, &runner.arm.spec);
    let cap = Arrivals::cap_ns(start, bound(slice, start), spec.rate_per_s.unwrap_or(1.0));
    let limit = spec.latency_limit_ns.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let mut now = shared.clock.now_ns();
    let mut last = now;
    loop {
        let arrival = arrivals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(intended) = arrival.filter(|_| !shared.halted()) else { return Ok(last) };
        let free = now;
        if now < intended {
            now = runner.pulse.sleep_until(&shared.clock, intended, || shared.halted()).await;
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
    /// Connects again after a loss, with growing pauses. Gives up early when told to stop. The
    /// other sessions of this thread wait meanwhile; they are clients of the same server.
    #[cold]
    pub(crate) async fn reconnect(&mut self) -> Result<(), LoadError> {
        let deadline = Instant::now() + RECONNECT_FOR;
        let mut pause = Duration::from_millis(20);
        while !self.shared.halted() {
            match self.shared.connect(self.arm_number, self.seat, Some(RECONNECT_TRY)) {
                Ok(()) => {
                    self.out.reconnects += 1;
                    if let Some(link) = &self.seat.link {
                        watch(self.registry, link, self.token).map_err(LoadError::Reactor)?;
                    }
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
                    let halted = || self.shared.halted();
                    self.pulse.sleep_until(self.clock(), wake, halted).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
        Ok(())
    }
}
